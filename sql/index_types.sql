--
-- Index builds: every type that can be encoded, its edge values, and NULLs
-- needs: index_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse

-- Build indexes of the values, a hundred times each and in a mixed order, and
-- of NULLs; what all of them say is said once.
CREATE FUNCTION check_index_type(type text, edge_values text[]) RETURNS SETOF text
LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE
	way text;
	result text;
	results text[] := '{}';
BEGIN
	EXECUTE format('CREATE TABLE typed AS
				   SELECT v::%s AS k, hashint4(n) AS n, md5(v || n) AS payload
				   FROM unnest(array_append(%L::text[], NULL)) v, generate_series(1, 100) n
				   ORDER BY md5(coalesce(v, '''') || n)', type, edge_values);
	ANALYZE typed;
	FOREACH way IN ARRAY ARRAY['(k)', '(k DESC)', '(k NULLS FIRST, n)', '(k DESC NULLS LAST, n DESC)',
							   '((n % 3), k)', '(n) INCLUDE (k)', '(k) WHERE k IS NOT NULL',
							   '(k) WITH (deduplicate_items = off, fillfactor = 40)'] LOOP
		result := check_build('CREATE INDEX built ON typed ' || way);
		IF result ~ '^same, level [012]$' THEN
			result := 'same';
		ELSE
			RETURN NEXT way || ': ' || result;
		END IF;
		results := results || result;
	END LOOP;
	DROP TABLE typed;
	RETURN NEXT type || ': ' || (SELECT string_agg(DISTINCT r, ', ') FROM unnest(results) r);
END $$;

SET lc_monetary = 'C';
SELECT check_index_type('bool', '{t,f}');
SELECT check_index_type('"char"', '{a,b,"\\001","\\177","\\200","\\377",""}');
SELECT check_index_type('int2', '{-32768,-32767,-256,-255,-1,0,1,255,256,32766,32767}');
SELECT check_index_type('int4', '{-2147483648,-2147483647,-65536,-65535,-1,0,1,65535,65536,2147483646,2147483647}');
SELECT check_index_type('int8', '{-9223372036854775808,-9223372036854775807,-4294967296,-4294967295,-1,0,1,4294967295,4294967296,9223372036854775806,9223372036854775807}');
SELECT check_index_type('oid', '{0,1,2147483647,2147483648,4294967294,4294967295}');
SELECT check_index_type('regtype', '{int4,text,bool,4294967295}');
-- -0 and +0 are one value, whose bits are kept
SELECT check_index_type('float4', '{-inf,-3.4028235e38,-1.1754944e-38,-1e-45,-0,0,1e-45,1.1754942e-38,1,1.0000001,3.4028235e38,inf,nan}');
SELECT check_index_type('float8', '{-inf,-1.7976931348623157e308,-2.2250738585072014e-308,-5e-324,-0,0,5e-324,2.225073858507201e-308,1,1.0000000000000002,1.7976931348623157e308,inf,nan}');
SELECT check_index_type('date', '{-infinity,4713-01-01 BC,0001-12-31 BC,0001-01-01,1999-12-31,2000-01-01,2000-01-02,5874897-12-31,infinity}');
SELECT check_index_type('time', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}');
SELECT check_index_type('timestamp', '{-infinity,4713-01-01 BC,1999-12-31 23:59:59.999999,2000-01-01,2000-01-01 00:00:00.000001,294276-12-31,infinity}');
SELECT check_index_type('timestamptz', '{-infinity,4713-01-01 BC,1999-12-31 23:59:59.999999+00,2000-01-01 01:00+01,2000-01-01 00:00:00.000001+00,294276-12-31,infinity}');
SELECT check_index_type('money', '{-92233720368547758.08,-0.01,0,0.01,92233720368547758.07}');
SELECT check_index_type('xid8', '{0,1,4294967295,4294967296,9223372036854775807,9223372036854775808,18446744073709551615}');
SELECT check_index_type('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,7f:ff:ff:ff:ff:ff,80:00:00:00:00:00,00:00:01:00:00:00,ff:ff:ff:ff:ff:ff}');
SELECT check_index_type('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,7f:ff:ff:ff:ff:ff:ff:ff,80:00:00:00:00:00:00:00,00:00:00:01:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}');
SELECT check_index_type('pg_lsn', '{0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}');
SELECT check_index_type('tid', '{"(0,0)","(0,1)","(0,65535)","(1,0)","(2147483648,1)","(4294967295,65535)"}');

-- two words
SELECT check_index_type('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,00000000-0000-0000-ffff-ffffffffffff,00000000-0000-0001-0000-000000000000,7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}');
-- one value that is written in several ways
SELECT check_index_type('interval', '{-178000000 years,-1 mon,-30 days -00:00:00.000001,-1 day -00:00:00.000001,-1 day,-24:00,-00:00:00.000001,0,00:00:00.000001,23:59:59.999999,1 day,24:00,1 day -00:00:00.000001,30 days,1 mon,31 days,1 mon 1 day -24:00:00.000001,178000000 years,2562047788:00:54.775807}');
SELECT check_index_type('timetz', '{00:00+15:59,00:00+00,00:00:00.000001+00,01:00+01,02:00+02,23:00-01,12:00+00,24:00+00,24:00-15:59}');

-- words without end
CREATE DOMAIN c_index_text AS text COLLATE "C";
CREATE DOMAIN c_index_char AS char(12) COLLATE "C";
SELECT check_index_type('c_index_text', '{"",a,aa,aaaaaaaa,aaaaaaab,aaaaaaaaa,aaaaaaaaaaaaaaaa,aaaaaaaaaaaaaaaab,B,b,é,ÿ,𝄞}');
SELECT check_index_type('c_index_char', '{"",a,"a ",aaaaaaaa,aaaaaaaaa,aaaaaaaab,"aaaaaaaa b",B}');
SELECT check_index_type('name', '{"",a,aaaaaaaa,aaaaaaaaa,aaaaaaaab,b,123456789012345678901234567890123456789012345678901234567890123,123456789012345678901234567890123456789012345678901234567890122}');
SELECT check_index_type('bytea', '{\\x,\\x00,\\x0000,\\x000001,\\x61,\\x6100,\\x61626364656667,\\x6162636465666700,\\x616263646566670000,\\x6162636465666768,\\x61626364656768,\\x80,\\xff}');
SELECT check_index_type('inet', '{0.0.0.0/0,0.0.0.0,0.0.0.1/8,10.0.0.0/8,10.0.0.1/8,10.255.255.255/8,10.0.0.0/9,10.0.0.0,10.128.0.0/9,192.168.1.7/24,192.168.1.0/24,192.168.1.0/25,255.255.255.255,::/0,::,::1,::1/64,2001:db8::/32,2001:db8::1/32,2001:db8::/33,2001:db8::,2001:db8::ffff,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}');
SELECT check_index_type('cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/9,10.0.0.0/32,10.128.0.0/9,2001:db8::/32,2001:db8::/33}');
-- equal numbers of different scale are not deduplicated
SELECT check_index_type('numeric', '{-Infinity,-1e250,-12345678901234567890123456789.5,-12345678901234567890123456789,-10000,-9999.9999,-1.00000000000000000001,-1,-0.0001,-1e-250,0,0.00,1e-250,1e-243,1e-240,0.0001,0.00010000000000000001,0.9999,1,1.0,1.00000000000000000001,1.000000000000000000010000000000000001,9999,10000,99999999.9999,1e240,1e243,1e244,1e250,2e250,Infinity,NaN}');
-- numerics of all magnitudes, with many digits
CREATE TABLE magnitudes AS
	SELECT g AS id, g % 3 AS few, CASE WHEN g / 16 % 2 = 0 THEN -1 ELSE 1 END *
		   (translate(md5((g % 700)::text), 'abcdef', '012345') || 'e' ||
			(ARRAY[-16383, -4000, -300, -274, -273, -272, -271, -270, 0, 211, 212, 213, 240, 300, 70000, 131000])[1 + g % 16])::numeric AS x
	FROM generate_series(1, 4000) g;
ANALYZE magnitudes;
SELECT way, check_build('CREATE INDEX built ON magnitudes ' || way)
FROM unnest('{(x),(x DESC),"(few, x)"}'::text[]) way;
DROP TABLE magnitudes;
SELECT check_index_type('bit(9)', '{000000000,000000001,011111111,100000000,111111111}');
SELECT check_index_type('varbit', '{"",0,00,000000000,1,10,1000000000,11111111,111111110,111111111}');

-- enums, with labels that were added later
CREATE TYPE index_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE index_mood ADD VALUE 'sadder' BEFORE 'sad';
ALTER TYPE index_mood ADD VALUE 'fine' AFTER 'ok';
SELECT check_index_type('index_mood', '{sadder,sad,ok,fine,happy}');

-- domains
CREATE DOMAIN small_index_domain AS int2;
CREATE DOMAIN float_index_domain AS float8 CHECK (VALUE <> 17);
SELECT check_index_type('small_index_domain', '{-32768,0,32767}');
SELECT check_index_type('float_index_domain', '{-inf,-0,0,nan}');

-- values that consist of others
CREATE TABLE nested AS
	SELECT CASE g % 4 WHEN 0 THEN to_jsonb(g % 70) WHEN 1 THEN jsonb_build_object('id', g % 90, 'b', NULL) ELSE jsonb_build_array(g % 3, 'é' || g) END AS j,
		   CASE WHEN g % 9 > 0 THEN ARRAY[g % 7, NULLIF(g, 300)] END AS a, ARRAY['x', 'y' || g % 80] COLLATE "C" AS t,
		   int4range(g % 10, g) AS r, int4multirange(int4range(g % 5, 5), int4range(6, g)) AS m, g % 5 AS n
	FROM generate_series(9, 5000) g;
ANALYZE nested;
SELECT * FROM check_builds('CREATE INDEX built ON nested',
	'(j); (a); (t DESC); (r, j); (m); ((nested)); (a DESC NULLS LAST, n) INCLUDE (j); (j, n) WHERE a > ARRAY[3]; (n, j); (n) INCLUDE (j, r); (n DESC, a DESC)');
DROP TABLE nested;

-- Types without an encoding follow others.  If they come first, the build is left to
-- stock PostgreSQL.
CREATE TABLE not_encoded AS
	SELECT to_tsvector('simple', (g % 70)::text) AS v, g % 5 AS n FROM generate_series(9, 5000) g;
ANALYZE not_encoded;
SELECT * FROM check_builds('CREATE INDEX built ON not_encoded', '(n, v); (n) INCLUDE (v); (n DESC, v DESC)');
SELECT check_build('CREATE INDEX built ON not_encoded (v, n)', 'off');
SET pg_gpusort.min_rows = 0;
SELECT error_of(format('SET pg_gpusort.debug_require = %s; CREATE INDEX ON not_encoded (v)', require))
FROM unnest('{node, cpu, gpu}'::text[]) require;
RESET pg_gpusort.debug_require;
DROP TABLE not_encoded;

-- other operator classes
CREATE TABLE other_classes AS
	SELECT 'key ' || g % 500 AS t, ('b' || g % 77)::char(9) AS c, g % 99 AS i FROM generate_series(1, 6000) g;
ANALYZE other_classes;
SELECT * FROM check_builds('CREATE INDEX built ON other_classes',
	'(t text_pattern_ops); (t varchar_pattern_ops DESC); (c bpchar_pattern_ops); (t COLLATE "POSIX" text_ops); (i int4_ops)');
DROP TABLE other_classes;

-- float8 bit for bit: NaNs with their sign and payload
CREATE FUNCTION float8_from_bits(int8) RETURNS float8 LANGUAGE internal IMMUTABLE STRICT AS 'int8up';
CREATE TABLE index_floats AS
	SELECT float8_from_bits(x::int8) AS f8
	FROM unnest(ARRAY[x'7ff8000000000000', x'fff8000000000000', x'7ff8000000000001',
					  x'7fc0000000012345', x'ffffffffffffffff', x'7fffffffffffffff',
					  x'7ff0000000000000', x'fff0000000000000', x'8000000000000000',
					  x'0000000000000000', x'8000000000000001', x'0000000000000001']::bit(64)[]) x,
		 generate_series(1, 200) g
	ORDER BY md5(x::text || g);
SELECT check_build('CREATE INDEX built ON index_floats (f8)');
SELECT check_build('CREATE INDEX built ON index_floats (f8 DESC NULLS LAST) WITH (fillfactor = 10)');
DROP TABLE index_floats;
DROP FUNCTION float8_from_bits;
DROP DOMAIN c_index_text, c_index_char, small_index_domain, float_index_domain;
DROP TYPE index_mood;
DROP FUNCTION check_index_type;
