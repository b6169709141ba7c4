--
-- Types of the random tables, and functions that make their values
--
CREATE DOMAIN a_domain AS int4;
CREATE TYPE a_pair AS (h int8, t text);
CREATE TYPE a_level AS ENUM ('low', 'highest');
ALTER TYPE a_level ADD VALUE 'high' BEFORE 'highest';
ALTER TYPE a_level ADD VALUE 'middle' BEFORE 'high';
-- so many values that PostgreSQL has renumbered them in pg_enum
CREATE TYPE a_rank AS ENUM ('rank 0', 'rank 61');
DO $$ BEGIN
	FOR i IN 1 .. 60 LOOP
		EXECUTE format('ALTER TYPE a_rank ADD VALUE %L BEFORE %L', 'rank ' || i, 'rank 61');
	END LOOP;
END $$;
CREATE FUNCTION float8_of_bits(int8) RETURNS float8 LANGUAGE internal IMMUTABLE STRICT AS 'int8up';
CREATE FUNCTION float4_of_bits(int4) RETURNS float4 LANGUAGE internal IMMUTABLE STRICT AS 'int4up';

-- Returns one of the values of an array.
CREATE FUNCTION one_of(list anyarray, n int8) RETURNS anyelement LANGUAGE sql IMMUTABLE AS
	'SELECT list[1 + abs(n % cardinality(list))]';

-- Numerics of all magnitudes, many of which have their first digits in common.
CREATE FUNCTION numeric_of_all_sizes(n int8) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
	SELECT (CASE WHEN n % 3 = 0 THEN '-' ELSE '' END ||
			CASE WHEN n % 5 < 3 THEN '123456789012345' ELSE '1' END ||
			substr(translate(md5(n::text), 'abcdef', '012345'), 1, (abs(n / 16) % 33)::int) || 'e' ||
			CASE abs(n / 1000) % 6 WHEN 0 THEN 0 WHEN 1 THEN abs(n / 7) % 40 - 20 WHEN 2 THEN 205 + abs(n / 7) % 50
								   WHEN 3 THEN -235 - abs(n / 7) % 50 WHEN 4 THEN abs(n / 7) % 131020 ELSE -(abs(n / 7) % 16384) END)::numeric;
$$;

-- These exist since PostgreSQL 17.
SELECT current_setting('server_version_num')::int4 >= 170000 AS newer \gset
\if :newer
CREATE FUNCTION infinite_intervals() RETURNS interval[] LANGUAGE sql IMMUTABLE AS
	'SELECT ''{-infinity,infinity}''::interval[]';
\else
CREATE FUNCTION infinite_intervals() RETURNS interval[] LANGUAGE sql IMMUTABLE AS
	'SELECT ''{}''::interval[]';
\endif
