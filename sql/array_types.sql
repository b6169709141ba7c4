--
-- gpu_sort, gpu_argsort and gpu_sort_pairs against stock, type by type, and the
-- aggregates against them
-- needs: nothing
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
RESET client_min_messages;

CREATE TYPE array_mood AS ENUM ('sad', 'ok', 'happy', 'elated');
CREATE DOMAIN array_percent AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN array_word AS text;
CREATE TYPE array_pair AS (a int, b text);

-- Random arrays of a type, without and with NULLs, in all directions.  The
-- expression for an element can use "few" (0 to 20), "many" (an int8 of either
-- sign) and "digits" (32 hexadecimal digits).  Values are compared as text, so
-- that equal ones that look different must be where they belong, too.  The
-- results of aggregates must have the same bytes.
CREATE FUNCTION array_check(type text, element text,
							OUT arrays bigint, OUT wrong bigint)
LANGUAGE plpgsql AS $$
DECLARE
	direction text;
	descending bool;
	nulls_first bool;
	n bigint;
	bad bigint;
BEGIN
	arrays := 0;
	wrong := 0;
	EXECUTE format($query$
		CREATE TEMP TABLE array_inputs AS
		SELECT (SELECT array_agg(CASE WHEN random() < nulls THEN NULL ELSE (%2$s)::%1$s END)
				FROM (SELECT floor(random() * 21)::int AS few,
							 ((random() - 0.5) * 18e18)::int8 >> floor(random() * 60)::int AS many,
							 md5(random()::text) AS digits
					  FROM generate_series(1, length)) AS random_values) AS a
		FROM unnest('{0,1,2,3,7,32,33,100,1000}'::int[]) AS length,
			 unnest('{0,0.2}'::float8[]) AS nulls
		$query$, type, element);
	FOREACH direction IN ARRAY '{ASC NULLS LAST,ASC NULLS FIRST,DESC NULLS FIRST,DESC NULLS LAST}'::text[]
	LOOP
		descending := direction LIKE 'DESC%';
		nulls_first := direction LIKE '%FIRST';
		EXECUTE format($query$
			SELECT count(*), count(*) FILTER (WHERE
				gpu_sort(a, $1, $2)::text IS DISTINCT FROM expected::text OR
				gpu_argsort(a, $1, $2) IS DISTINCT FROM positions OR
				(pairs).sorted_keys::text IS DISTINCT FROM expected::text OR
				(pairs).sorted_vals::text IS DISTINCT FROM expected::text OR
				NOT (SELECT record_image_eq(ROW(gpu_sort_agg(x, $1, $2), gpu_argsort_agg(x, $1, $2)),
											ROW(gpu_sort(array_agg(x), $1, $2), gpu_argsort(array_agg(x), $1, $2)))
					 FROM unnest(a) AS x))
			FROM (SELECT coalesce(a, '{}') AS a,
						 gpu_sort_pairs(coalesce(a, '{}'), coalesce(a, '{}'), $1, $2) AS pairs,
						 ARRAY(SELECT x FROM (SELECT unnest(a) AS x, generate_series(1, cardinality(a)) AS n) AS u
							   ORDER BY x %1$s, n) AS expected,
						 ARRAY(SELECT n FROM (SELECT unnest(a) AS x, generate_series(1, cardinality(a)) AS n) AS u
							   ORDER BY x %1$s, n) AS positions
				  FROM array_inputs) AS results
			$query$, direction) USING descending, nulls_first INTO n, bad;
		arrays := arrays + n;
		wrong := wrong + bad;
	END LOOP;
	DROP TABLE array_inputs;
END
$$;

SET pg_gpusort.enable = off;
SELECT setseed(0.5);
SELECT type, arrays, wrong
FROM (VALUES
	('bool', 'few % 2 = 0'),
	('"char"', 'chr(few + 48)'),
	('int2', 'CASE WHEN few < 10 THEN few ELSE many % 32768 END'),
	('int4', 'CASE WHEN few < 10 THEN few ELSE many % 2147483648 END'),
	('int8', 'CASE WHEN few < 10 THEN few ELSE many END'),
	('oid', 'CASE WHEN few < 10 THEN few ELSE abs(many) % 4294967296 END'),
	('regtype', '(16 + few)::oid'),
	('xid8', 'abs(many)::text'),
	('float4', '(''{0,-0,NaN,Infinity,-Infinity,1e-42,-1e-42}''::float4[])[few % 8 + 1]'),
	('float4', 'many::float4 / 1e18'),
	('float8', '(''{0,-0,NaN,Infinity,-Infinity,1e-320,-1e-320}''::float8[])[few % 8 + 1]'),
	('float8', 'many::float8 / 1e18'),
	('date', 'CASE few WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity'' ELSE ''2000-01-01''::date + (many % 100000)::int END'),
	('time', '''00:00''::time + (many % 86400) * ''1 s''::interval'),
	('timetz', 'make_time(few, 0, 0) || CASE WHEN many % 2 = 0 THEN ''+01'' ELSE ''-01'' END'),
	('timestamp', 'CASE few WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity'' ELSE ''2000-01-01''::timestamp + (many % 1000000000) * ''1 s''::interval END'),
	('timestamptz', 'CASE few WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity'' ELSE ''2000-01-01''::timestamptz + few * ''1 h''::interval END'),
	('interval', 'CASE WHEN few < 10 THEN few * ''1 day''::interval ELSE few * ''24 h''::interval END'),
	('money', 'few - 10'),
	('numeric', 'CASE few WHEN 0 THEN ''NaN'' WHEN 1 THEN ''Infinity'' WHEN 2 THEN ''-Infinity'' ELSE round(few - 10, few / 2) END'),
	('numeric', 'many'),
	('numeric(10,2)', 'many % 1000 / 7.0'),
	('text', 'CASE few WHEN 0 THEN '''' ELSE repeat(''ab'', few) || left(digits, 2) END'),
	('text', 'digits'),
	('text', '''the same start '' || few'),
	('varchar', 'left(digits, few)'),
	('bpchar', 'left(digits, few % 3) || repeat('' '', few % 5)'),
	('char(5)', 'left(digits, few % 3)'),
	('name', 'left(digits, few % 4)'),
	('bytea', 'decode(repeat(''00'', few % 3) || left(digits, few / 3 * 2), ''hex'')'),
	('uuid', 'CASE WHEN few < 10 THEN md5(few::text) ELSE digits END'),
	('macaddr', 'left(CASE WHEN few < 10 THEN md5(few::text) ELSE digits END, 12)'),
	('macaddr8', 'left(CASE WHEN few < 10 THEN md5(few::text) ELSE digits END, 16)'),
	('inet', '''10.0.0.0''::inet + few * 1000'),
	('cidr', '''10.'' || few || ''.0.0/'' || 16 + few % 3'),
	('bit(8)', '(many % 256)::int::bit(8)'),
	('varbit', 'substr((many % 256)::int::bit(8)::text, 1, few)'),
	('jsonb', 'json_build_object(''a'', few, ''b'', left(digits, 1))'),
	('tsvector', 'left(digits, 2)'),
	('tsquery', '''x'' || left(digits, 2)'),
	('pg_lsn', '''0/'' || left(digits, 6)'),
	('tid', '''('' || few || '','' || few % 3 || '')'''),
	('int4range', 'int4range(few, few + 1 + abs(many % 5)::int)'),
	('int4multirange', 'int4multirange(int4range(few, few + 3), int4range(30, 30 + few))'),
	('array_mood', '(enum_range(NULL::array_mood))[few % 4 + 1]'),
	('array_percent', 'few'),
	('array_word', 'left(digits, few % 4)'),
	('array_pair', '(few % 4, left(digits, 2))'),
	('array_pair', '(NULL, left(digits, 1))')
) AS types (type, element), array_check(type, element);

-- a collation other than that of the type or the database
SELECT bool_and(gpu_sort(a COLLATE "C") = ARRAY(SELECT x FROM unnest(a) x ORDER BY x COLLATE "C")) AS ascending,
	   bool_and(gpu_sort(a COLLATE "C", true) = ARRAY(SELECT x FROM unnest(a) x ORDER BY x COLLATE "C" DESC)) AS descending
FROM (SELECT array_agg(chr(33 + i * 31 % 90) || chr(33 + i * 17 % 80)) AS a
	  FROM generate_series(1, 1000) i) AS input;

-- records, whose type has a name only while the query runs
SELECT gpu_sort(ARRAY[ROW(2, 0.5), ROW(1, 9), ROW(2, 0.25), NULL]) AS records;

DROP FUNCTION array_check;
DROP TYPE array_mood, array_pair;
DROP DOMAIN array_percent, array_word;
