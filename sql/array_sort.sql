--
-- gpu_sort: what it does with NULLs, directions, dimensions, and errors
-- needs: nothing
--
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
RESET client_min_messages;
-- what results are compared with is stock PostgreSQL
SET pg_gpusort.enable = off;

-- directions, and where NULLs go
SELECT gpu_sort('{3,1,NULL,2,NULL}'::int[]) AS ascending,
	   gpu_sort('{3,1,NULL,2,NULL}'::int[], true) AS descending;
SELECT gpu_sort('{3,1,NULL,2}'::int[], false, true) AS asc_first,
	   gpu_sort('{3,1,NULL,2}'::int[], false, false) AS asc_last,
	   gpu_sort('{3,1,NULL,2}'::int[], true, true) AS desc_first,
	   gpu_sort('{3,1,NULL,2}'::int[], true, false) AS desc_last;
SELECT gpu_sort('{3,1,NULL,2}'::int[], nulls_first => true) AS by_name,
	   gpu_sort('{3,1,NULL,2}'::int[], descending => true) AS by_name_desc;
SELECT gpu_sort('{3,1,NULL,2}'::text[], nulls_first => true) AS asc_first,
	   gpu_sort('{3,1,NULL,2}'::text[], true) AS descending,
	   gpu_sort('{3,1,NULL,2}'::text[], true, false) AS desc_last;

-- NULL arguments
SELECT gpu_sort(NULL::int[]) IS NULL AS no_array,
	   gpu_sort('{2,1}'::int[], NULL) IS NULL AS no_direction,
	   gpu_sort('{2,1,NULL}'::int[], false, NULL) AS default_nulls;

-- fewer than two elements are returned as they are
SELECT gpu_sort('{}'::int[]) AS empty, gpu_sort('{1}'::int[]) AS one,
	   gpu_sort('[7:7]={1}'::int[]) AS one_bound, gpu_sort('{NULL}'::text[]) AS one_null;
SELECT gpu_sort(ARRAY['{"a": 1}']::json[]) AS even_unsortable;

-- nothing but NULLs, and an array that has had NULLs
SELECT gpu_sort('{NULL,NULL,NULL}'::int[]) AS ints, gpu_sort('{NULL,NULL}'::text[], true) AS texts;
SELECT gpu_sort(array_remove('{3,NULL,1}'::int[], NULL)) AS removed,
	   gpu_sort(('{3,NULL,2,1}'::int[])[3:4]) AS slice;

-- lower bounds stay
SELECT gpu_sort('[5:8]={3,1,NULL,2}'::int[]) AS five,
	   gpu_sort('[-1:1]={c,a,b}'::text[], true) AS minus_one;
SELECT gpu_sort('3 1 2'::oidvector) AS oidvector, gpu_sort('3 1 2'::int2vector, true) AS int2vector;

-- several dimensions
SELECT gpu_sort('{{3,1},{2,5}}'::int[]);

-- values come back bit for bit, equal ones in the order they had
SELECT gpu_sort('{0,-0,1,-0,0,-1}'::float8[]) AS zeroes,
	   gpu_sort('{0,-0,1,-0,0,-1}'::float4[], true) AS zeroes_desc;
SELECT gpu_sort('{1.0,1.00,0,1,NaN,-1,1.000}'::numeric[]) AS scales,
	   gpu_sort('{1.0,1.00,0,1,NaN,-1,1.000}'::numeric[], true) AS scales_desc;
SELECT gpu_sort('{NaN,Infinity,0,-Infinity,NULL,1e-320,-1e-320}'::float8[]) AS edges;
SELECT n, float8send(x) AS bits
FROM unnest(gpu_sort(ARRAY[-('NaN'::float8), 1, 'NaN', '-0', 0, -('NaN'::float8)]))
	 WITH ORDINALITY AS sorted (x, n)
ORDER BY n;

-- collations
SELECT gpu_sort('{b,A,a,B}'::text[] COLLATE "C") AS c;
SELECT gpu_sort(ARRAY['b' COLLATE "C", 'a' COLLATE "POSIX"]);

-- types without an order
SELECT gpu_sort(ARRAY['{}', '{}']::json[]);
SELECT gpu_sort('{"(0,0)","(1,1)"}'::point[]);
CREATE TYPE array_sort_unsortable AS (a int, b json);
SELECT gpu_sort(ARRAY[(1, '{}'), (2, '{}')]::array_sort_unsortable[]);
\set VERBOSITY default
SELECT gpu_sort('{1,2}'::xid[]);
\set VERBOSITY terse
SELECT gpu_sort(1);
DROP TYPE array_sort_unsortable;

-- any element type where the argument is declared anyarray
CREATE TABLE array_sort_stats AS
SELECT i % 3 AS ints, (i % 3)::float8 AS floats, (i % 3)::numeric AS numerics
FROM generate_series(1, 100) i;
ANALYZE array_sort_stats;
SELECT attname, gpu_sort(most_common_vals, true) AS sorted, gpu_argsort(gpu_sort(most_common_vals, true)) AS positions
FROM pg_stats WHERE tablename = 'array_sort_stats' ORDER BY attname;
DROP TABLE array_sort_stats;

-- one call site, both directions and many lengths
SELECT i, gpu_sort(items, i % 2 = 0, i % 4 < 2) AS sorted
FROM (SELECT i, ARRAY(SELECT nullif(j * 7 % 5, 2) FROM generate_series(1, i) j) AS items
	  FROM generate_series(0, 8) i) AS arrays
ORDER BY i;

-- PL/pgSQL keeps arrays in expanded form
DO $$
DECLARE
	items int[] := '{3,1}';
BEGIN
	items := items || 2;
	items[5] := 0;
	items := gpu_sort(items);
	RAISE NOTICE '%', items;
END
$$;

-- toasted arrays: compressed, and out of line
CREATE TABLE array_sort_toast (id int, numbers int[], texts text[]);
ALTER TABLE array_sort_toast ALTER texts SET STORAGE EXTERNAL;
INSERT INTO array_sort_toast
SELECT 1, array_agg(i % 100), array_agg(repeat(chr(65 + i % 26), i % 50))
FROM generate_series(1, 5000) i;
SELECT gpu_sort(numbers) = ARRAY(SELECT unnest(numbers) ORDER BY 1) AS numbers,
	   gpu_sort(texts) = ARRAY(SELECT unnest(texts) ORDER BY 1) AS texts,
	   gpu_sort(texts, true) = ARRAY(SELECT unnest(texts) ORDER BY 1 DESC) AS texts_desc
FROM array_sort_toast;
DROP TABLE array_sort_toast;

-- the argument stays as it is, whether the result can take its place or not
SELECT a AS before, gpu_sort(a) AS sorted, gpu_sort(a, true) AS descending, a AS after
FROM (SELECT array_agg(i * 7 % 10) AS a FROM generate_series(0, 9) i OFFSET 0) AS input;
CREATE TABLE array_sort_place AS SELECT array_agg(i * 7919 % 5003) AS a FROM generate_series(1, 5000) i;
ALTER TABLE array_sort_place ALTER a SET STORAGE EXTERNAL;
UPDATE array_sort_place SET a = a || 0;
SELECT a[1:3] AS before, (gpu_sort(a))[1:3] AS sorted, a[1:3] AS after,
	   record_image_eq(ROW(gpu_sort(a)), ROW(ARRAY(SELECT unnest(a) ORDER BY 1))) AS same_bytes
FROM array_sort_place;
DROP TABLE array_sort_place;

-- many elements; the settings of sorts in queries do not matter
CREATE TABLE array_sort_large AS
SELECT array_agg((i * 7919) % 300007) AS numbers
FROM generate_series(1, 300006::int8) i;
SET work_mem = '64kB';
SET pg_gpusort.work_mem = '64kB';
SELECT gpu_sort(numbers) = ARRAY(SELECT unnest(numbers) ORDER BY 1) AS ascending,
	   gpu_sort(numbers, true) = ARRAY(SELECT unnest(numbers) ORDER BY 1 DESC) AS descending,
	   gpu_sort(numbers || NULL::int8, true, false) =
	   ARRAY(SELECT unnest(numbers || NULL::int8) ORDER BY 1 DESC NULLS LAST) AS with_null,
	   gpu_sort(numbers::int4[]) = ARRAY(SELECT unnest(numbers::int4[]) ORDER BY 1) AS int4s,
	   gpu_sort(numbers::text[]) = ARRAY(SELECT unnest(numbers::text[]) ORDER BY 1) AS texts
FROM array_sort_large;
RESET pg_gpusort.work_mem;
RESET work_mem;

-- numbers of both signs, evenly and not, and -0 or a NaN among many
SELECT kind, gpu_sort(a)::text = ARRAY(SELECT x FROM unnest(a) WITH ORDINALITY AS u (x, n) ORDER BY x, n)::text AS ascending,
	   gpu_sort(a, true)::text = ARRAY(SELECT x FROM unnest(a) WITH ORDINALITY AS u (x, n) ORDER BY x DESC, n)::text AS descending
FROM (SELECT kind, array_agg(CASE WHEN kind = 'few' THEN n % 7
								  WHEN kind = 'exponents' THEN n * 10.0::float8 ^ (n % 300)
								  WHEN kind = 'minus zero' AND n % 50000 = 0 THEN '-0'
								  WHEN kind = 'nan' AND n = 778 THEN 'NaN'
								  ELSE n END) AS a
	  FROM array_sort_large, unnest(numbers) AS i,
		   LATERAL (SELECT i - 150000 AS n) AS moved,
		   unnest('{few,exponents,minus zero,nan,plain}'::text[]) AS kind
	  WHERE i % 2 = 0
	  GROUP BY kind) AS arrays
ORDER BY kind;

-- cancelled, after which the next one works; the timeout ends with the transaction
BEGIN;
SET LOCAL statement_timeout = '1ms';
SELECT array_length(gpu_sort(gpu_sort(numbers, true)), 1) FROM array_sort_large;
ROLLBACK;
SELECT (gpu_sort(numbers))[1:5] AS first_five FROM array_sort_large;
DROP TABLE array_sort_large;

-- the order of a type changes between two calls at one place
CREATE FUNCTION cid_lt(cid, cid) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION cid_gt(cid, cid) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
CREATE FUNCTION cid_cmp(cid, cid) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE FUNCTION cid_sort(internal) RETURNS void LANGUAGE internal IMMUTABLE STRICT AS 'btint4sortsupport';
CREATE OPERATOR < (FUNCTION = cid_lt, LEFTARG = cid, RIGHTARG = cid);
CREATE OPERATOR > (FUNCTION = cid_gt, LEFTARG = cid, RIGHTARG = cid);
CREATE OPERATOR CLASS cid_ops DEFAULT FOR TYPE cid USING btree AS OPERATOR 1 <, OPERATOR 5 >;
ALTER OPERATOR FAMILY cid_ops USING btree ADD FUNCTION 1 (cid, cid) cid_cmp(cid, cid), FUNCTION 2 (cid) cid_sort(internal);
DO $$
DECLARE
	items cid[] := '{2,3,1}';
	sorted cid[];
BEGIN
	FOR step IN 1 .. 2 LOOP
		sorted := gpu_sort(items);
		RAISE NOTICE '%', sorted;
		CONTINUE WHEN step = 2;
		ALTER OPERATOR FAMILY cid_ops USING btree DROP FUNCTION 2 (cid);
		CREATE OR REPLACE FUNCTION cid_cmp(cid, cid) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS
			'SELECT btint4cmp($2::text::int, $1::text::int)';
	END LOOP;
END
$$;
SELECT gpu_sort('{2,3,1}'::cid[]);
DROP OPERATOR FAMILY cid_ops USING btree;
DROP OPERATOR < (cid, cid);
DROP OPERATOR > (cid, cid);
DROP FUNCTION cid_lt, cid_gt, cid_cmp, cid_sort;
