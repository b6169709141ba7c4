--
-- ORDER BY: every type that can be encoded, its edge values, and where NULLs go
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse

-- Sort the values in all four ways, three times each and in a mixed order.
CREATE FUNCTION check_type(type text, edge_values text[]) RETURNS SETOF text
LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE
	way text;
	result text;
BEGIN
	DROP TABLE IF EXISTS pg_temp.typed;
	EXECUTE format('CREATE TEMP TABLE typed AS
				   SELECT v::%s AS k, md5(v || n) AS payload
				   FROM unnest(array_append(%L::text[], NULL)) v, generate_series(1, 3) n
				   ORDER BY md5(coalesce(v, '''') || n)', type, edge_values);
	FOREACH way IN ARRAY ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST'] LOOP
		result := check_sort('SELECT k, payload FROM typed ORDER BY k ' || way, 'k');
		IF result <> format('same %s rows, 1 GpuSort', 3 * (cardinality(edge_values) + 1)) THEN
			RETURN NEXT way || ': ' || result;
		END IF;
		-- a column of nothing but fixed width is kept in another way
		result := check_sort('SELECT k FROM typed ORDER BY k ' || way, 'k');
		IF result !~ '^same \d+ rows, 1 GpuSort$' THEN
			RETURN NEXT way || ', without payload: ' || result;
		END IF;
	END LOOP;
	-- the order of the last one, to be seen
	EXECUTE 'SELECT string_agg(regexp_replace(k::text, ''^-0$'', ''0''), '' '' ORDER BY place)
			FROM pg_temp.ours WHERE place % 3 = 1' INTO result;
	result := type || ': ' || result;
	RETURN NEXT result;
END $$;

SET datestyle = iso;
SET timezone = 'UTC';
SET lc_monetary = 'C';
SELECT check_type('bool', '{t,f}');
SELECT check_type('"char"', '{a,b,"\\001","\\177","\\200","\\377",""}');
SELECT check_type('int2', '{-32768,-32767,-256,-255,-1,0,1,255,256,32766,32767}');
SELECT check_type('int4', '{-2147483648,-2147483647,-65536,-65535,-1,0,1,65535,65536,2147483646,2147483647}');
SELECT check_type('int8', '{-9223372036854775808,-9223372036854775807,-4294967296,-4294967295,-1,0,1,4294967295,4294967296,9223372036854775806,9223372036854775807}');
SELECT check_type('oid', '{0,1,2147483647,2147483648,4294967294,4294967295}');
SELECT check_type('regtype', '{int4,text,bool,4294967295}');
SELECT check_type('float4', '{-inf,-3.4028235e38,-1.1754944e-38,-1e-45,-0,0,1e-45,1.1754942e-38,1,1.0000001,3.4028235e38,inf,nan}');
SELECT check_type('float8', '{-inf,-1.7976931348623157e308,-2.2250738585072014e-308,-5e-324,-0,0,5e-324,2.225073858507201e-308,1,1.0000000000000002,1.7976931348623157e308,inf,nan}');
SELECT check_type('date', '{-infinity,4713-01-01 BC,0001-12-31 BC,0001-01-01,1999-12-31,2000-01-01,2000-01-02,5874897-12-31,infinity}');
SELECT check_type('time', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}');
SELECT check_type('timestamp', '{-infinity,4713-01-01 BC,1999-12-31 23:59:59.999999,2000-01-01,2000-01-01 00:00:00.000001,294276-12-31,infinity}');
SELECT check_type('timestamptz', '{-infinity,4713-01-01 BC,1999-12-31 23:59:59.999999+00,2000-01-01 01:00+01,2000-01-01 00:00:00.000001+00,294276-12-31,infinity}');
SELECT check_type('money', '{-92233720368547758.08,-0.01,0,0.01,92233720368547758.07}');
SELECT check_type('xid8', '{0,1,4294967295,4294967296,9223372036854775807,9223372036854775808,18446744073709551615}');
SELECT check_type('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,7f:ff:ff:ff:ff:ff,80:00:00:00:00:00,00:00:01:00:00:00,ff:ff:ff:ff:ff:ff}');
SELECT check_type('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,7f:ff:ff:ff:ff:ff:ff:ff,80:00:00:00:00:00:00:00,00:00:00:01:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}');
-- which 19 prints with zeros
SELECT regexp_replace(
	check_type('pg_lsn', '{0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}'),
	'/0+(?=\w)', '/', 'g') AS check_type;
SELECT check_type('tid', '{"(0,0)","(0,1)","(0,65535)","(1,0)","(2147483648,1)","(4294967295,65535)"}');

-- two words
SELECT check_type('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,00000000-0000-0000-ffff-ffffffffffff,00000000-0000-0001-0000-000000000000,7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}');
SELECT check_type('interval', '{-178000000 years,-1 mon,-30 days -00:00:00.000001,-1 day -00:00:00.000001,-1 day,-24:00,-00:00:00.000001,0,00:00:00.000001,23:59:59.999999,1 day,24:00,1 day -00:00:00.000001,30 days,1 mon,31 days,1 mon 1 day -24:00:00.000001,178000000 years,2562047788:00:54.775807}');
SELECT check_type('timetz', '{00:00+15:59,00:00+00,00:00:00.000001+00,01:00+01,02:00+02,23:00-01,12:00+00,24:00+00,24:00-15:59}');

-- words without end
CREATE DOMAIN c_text AS text COLLATE "C";
CREATE DOMAIN c_char AS char(12) COLLATE "C";
SELECT check_type('c_text', '{"",a,aa,aaaaaaaa,aaaaaaab,aaaaaaaaa,aaaaaaaaaaaaaaaa,aaaaaaaaaaaaaaaab,B,b,é,ÿ,𝄞}');
SELECT check_type('c_char', '{"",a,"a ",aaaaaaaa,aaaaaaaaa,aaaaaaaab,"aaaaaaaa b",B}');
SELECT check_type('name', '{"",a,aaaaaaaa,aaaaaaaaa,aaaaaaaab,b,123456789012345678901234567890123456789012345678901234567890123,123456789012345678901234567890123456789012345678901234567890122}');
SELECT check_type('bytea', '{\\x,\\x00,\\x0000,\\x000001,\\x61,\\x6100,\\x61626364656667,\\x6162636465666700,\\x616263646566670000,\\x6162636465666768,\\x61626364656768,\\x80,\\xff}');
SELECT check_type('inet', '{0.0.0.0/0,0.0.0.0,0.0.0.1/8,10.0.0.0/8,10.0.0.1/8,10.255.255.255/8,10.0.0.0/9,10.0.0.0,10.128.0.0/9,192.168.1.7/24,192.168.1.0/24,192.168.1.0/25,255.255.255.255,::/0,::,::1,::1/64,2001:db8::/32,2001:db8::1/32,2001:db8::/33,2001:db8::,2001:db8::ffff,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}');
SELECT check_type('cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/9,10.0.0.0/32,10.128.0.0/9,2001:db8::/32,2001:db8::/33}');
SELECT check_type('numeric', '{-Infinity,-1e250,-12345678901234567890123456789.5,-12345678901234567890123456789,-10000,-9999.9999,-1.00000000000000000001,-1,-0.0001,-1e-250,0,0.00,1e-250,1e-243,1e-240,0.0001,0.00010000000000000001,0.9999,1,1.0,1.00000000000000000001,1.000000000000000000010000000000000001,9999,10000,99999999.9999,1e240,1e243,1e244,1e250,2e250,Infinity,NaN}');
-- numerics of all magnitudes, with many digits
CREATE TABLE magnitudes AS
	SELECT g AS id, g % 3 AS few, CASE WHEN g / 16 % 2 = 0 THEN -1 ELSE 1 END *
		   (translate(md5((g % 700)::text), 'abcdef', '012345') || 'e' ||
			(ARRAY[-16383, -4000, -300, -274, -273, -272, -271, -270, 0, 211, 212, 213, 240, 300, 70000, 131000])[1 + g % 16])::numeric AS x
	FROM generate_series(1, 4000) g;
SELECT keys, check_sort('SELECT * FROM magnitudes ORDER BY ' || keys, regexp_replace(keys, ' desc', '', 'gi'))
FROM unnest('{"x, id","x DESC, id","few, x, id"}'::text[]) keys;
SELECT check_sort('SELECT id, rank() OVER (ORDER BY x) AS r FROM magnitudes ORDER BY r', 'r');
DROP TABLE magnitudes;
SELECT check_type('bit(9)', '{000000000,000000001,011111111,100000000,111111111}');
SELECT check_type('varbit', '{"",0,00,000000000,1,10,1000000000,11111111,111111110,111111111}');

-- enums, with labels that were added later
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'sadder' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok';
SELECT check_type('mood', '{sadder,sad,ok,fine,happy}');

-- domains
CREATE DOMAIN small_domain AS int2;
CREATE DOMAIN float_domain AS float8 CHECK (VALUE <> 17);
CREATE DOMAIN domain_of_domain AS float_domain;
SELECT check_type('small_domain', '{-32768,0,32767}');
SELECT check_type('domain_of_domain', '{-inf,-0,0,nan}');

-- A type of one's own, sorted by one of core's shared comparators.
CREATE TYPE own_int;
SET client_min_messages = warning;
CREATE FUNCTION own_int_in(cstring) RETURNS own_int LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION own_int_out(own_int) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE FUNCTION own_int_send(own_int) RETURNS bytea LANGUAGE internal IMMUTABLE STRICT AS 'int4send';
RESET client_min_messages;
CREATE TYPE own_int (INPUT = own_int_in, OUTPUT = own_int_out, SEND = own_int_send, LIKE = int4);
CREATE FUNCTION own_int_lt(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION own_int_le(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4le';
CREATE FUNCTION own_int_eq(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION own_int_ge(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4ge';
CREATE FUNCTION own_int_gt(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
CREATE FUNCTION own_int_cmp(own_int, own_int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE FUNCTION own_int_sort(internal) RETURNS void LANGUAGE internal IMMUTABLE STRICT AS 'btint4sortsupport';
CREATE OPERATOR < (FUNCTION = own_int_lt, LEFTARG = own_int, RIGHTARG = own_int, COMMUTATOR = >, NEGATOR = >=);
CREATE OPERATOR <= (FUNCTION = own_int_le, LEFTARG = own_int, RIGHTARG = own_int, COMMUTATOR = >=, NEGATOR = >);
CREATE OPERATOR = (FUNCTION = own_int_eq, LEFTARG = own_int, RIGHTARG = own_int, COMMUTATOR = =);
CREATE OPERATOR >= (FUNCTION = own_int_ge, LEFTARG = own_int, RIGHTARG = own_int, COMMUTATOR = <=, NEGATOR = <);
CREATE OPERATOR > (FUNCTION = own_int_gt, LEFTARG = own_int, RIGHTARG = own_int, COMMUTATOR = <, NEGATOR = <=);
CREATE OPERATOR CLASS own_int_ops DEFAULT FOR TYPE own_int USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 own_int_cmp(own_int, own_int), FUNCTION 2 own_int_sort(internal);
SELECT check_type('own_int', '{-2147483648,-1,0,1,2147483647}');

-- A prepared plan outlives the encoding of its key.
CREATE TABLE own_rows AS SELECT (g * 7919 % 3001)::text::own_int AS k, g AS id FROM generate_series(1, 4000) g;
ANALYZE own_rows;
PREPARE own_order AS SELECT md5(string_agg(k::text || ' ' || id, ', ')) FROM (SELECT * FROM own_rows ORDER BY k, id OFFSET 0) r;
SET plan_cache_mode = force_generic_plan;
SET pg_gpusort.min_rows = 0;
SELECT count_gpusorts('EXECUTE own_order');
EXECUTE own_order;
ALTER OPERATOR FAMILY own_int_ops USING btree DROP FUNCTION 2 (own_int);
SELECT count_gpusorts('EXECUTE own_order');
EXECUTE own_order;
RESET pg_gpusort.min_rows;
RESET plan_cache_mode;
DEALLOCATE own_order;
DROP TABLE own_rows;

-- Values come back bit for bit: -0, and NaNs with their sign and payload.
CREATE FUNCTION float8_of_bits(int8) RETURNS float8 LANGUAGE internal IMMUTABLE STRICT AS 'int8up';
CREATE FUNCTION float4_of_bits(int4) RETURNS float4 LANGUAGE internal IMMUTABLE STRICT AS 'int4up';
CREATE TABLE float_bits AS
	SELECT float8_of_bits(b) AS f8, float4_of_bits((b >> 32)::int4) AS f4, b AS bits
	FROM unnest(ARRAY[x'7ff8000000000000', x'fff8000000000000', x'7ff8000000000001',
					  x'7fc0000000012345', x'ffffffffffffffff', x'7fffffffffffffff',
					  x'7ff0000000000000', x'fff0000000000000', x'8000000000000000',
					  x'0000000000000000', x'8000000000000001', x'0000000000000001',
					  x'7fbfffff00000000', x'ffbfffff00000000', x'7f80000100000000',
					  x'ff80000100000000']::bit(64)[]) x, LATERAL (SELECT x::int8 AS b) y;
SELECT check_sort('SELECT f8, f4, bits FROM float_bits ORDER BY f8', 'f8');
SELECT check_sort('SELECT f8, f4, bits FROM float_bits ORDER BY f4 DESC', 'f4');
SELECT check_sort('SELECT f8, f4, bits FROM float_bits ORDER BY f4, f8 DESC', 'f4, f8');
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SELECT encode(float8send(f8), 'hex') AS f8, encode(float4send(f4), 'hex') AS f4,
	   float8send(f8) = int8send(bits) AS same
FROM (SELECT * FROM float_bits ORDER BY f8, bits) s;
RESET pg_gpusort.debug_require;
RESET pg_gpusort.min_rows;

-- No rows, one, all of them NULL, all alike, many.
CREATE TABLE few (k int8, v text);
SELECT check_sort('SELECT * FROM few ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM few ORDER BY k DESC', 'k');
INSERT INTO few VALUES (1, 'one');
SELECT check_sort('SELECT * FROM few ORDER BY k', 'k');
TRUNCATE few;
INSERT INTO few VALUES (NULL, 'none');
SELECT check_sort('SELECT * FROM few ORDER BY k', 'k');
INSERT INTO few SELECT NULL, g FROM generate_series(2, 1000) g;
SELECT check_sort('SELECT * FROM few ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM few ORDER BY k NULLS FIRST', 'k');
SELECT check_sort('SELECT * FROM few ORDER BY k DESC, length(v)', 'k');
TRUNCATE few;
INSERT INTO few SELECT 42, g FROM generate_series(1, 1000) g;
SELECT check_sort('SELECT * FROM few ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM few ORDER BY k DESC', 'k');
INSERT INTO few SELECT CASE WHEN g % 10 > 0 THEN g * 7919 % 10007 - 5000 END, g
	FROM generate_series(1, 20000) g;
SELECT check_sort('SELECT * FROM few ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM few ORDER BY k DESC NULLS LAST', 'k');

DROP TABLE float_bits, few;
SET client_min_messages = warning;
DROP TYPE own_int CASCADE;
DROP TYPE mood CASCADE;
