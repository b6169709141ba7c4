--
-- gpu_argsort: positions of the elements in sorted order
-- needs: nothing
--
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
RESET client_min_messages;
-- what results are compared with is stock PostgreSQL
SET pg_gpusort.enable = off;

SELECT gpu_argsort('{30,10,20}'::int[]) AS ascending,
	   gpu_argsort('{30,10,20}'::int[], true) AS descending,
	   gpu_argsort('{c,a,b}'::text[]) AS texts;

-- NULLs
SELECT gpu_argsort('{30,NULL,20,NULL}'::int[]) AS asc_last,
	   gpu_argsort('{30,NULL,20,NULL}'::int[], nulls_first => true) AS asc_first,
	   gpu_argsort('{30,NULL,20,NULL}'::int[], true) AS desc_first,
	   gpu_argsort('{30,NULL,20,NULL}'::int[], true, false) AS desc_last;
SELECT gpu_argsort('{c,NULL,b,NULL}'::text[]) AS asc_last,
	   gpu_argsort('{c,NULL,b,NULL}'::text[], true) AS desc_first;
SELECT gpu_argsort('{NULL,NULL,NULL}'::int[]) AS nothing_else;
SELECT gpu_argsort(NULL::int[]) IS NULL AS no_array,
	   gpu_argsort('{2,1}'::int[], NULL) IS NULL AS no_direction;

-- equal elements keep their order in both directions
SELECT gpu_argsort('{1,2,1,2,1}'::int[]) AS ascending,
	   gpu_argsort('{1,2,1,2,1}'::int[], true) AS descending;
SELECT gpu_argsort('{0,-0,0,NaN,-0,NaN}'::float8[]) AS zeroes,
	   gpu_argsort('{1.0,1,1.00,0}'::numeric[]) AS scales,
	   gpu_argsort('{1.0,1,1.00,0}'::numeric[], true) AS scales_desc;
SELECT gpu_argsort('{b,a,b,a,b}'::text[], true) AS texts;

-- positions count from 1, whatever the lower bound
SELECT gpu_argsort('[-5:-3]={30,10,20}'::int[]) AS positions;

-- few elements
SELECT gpu_argsort('{}'::int[]) AS empty, gpu_argsort('{7}'::int[]) AS one,
	   gpu_argsort('{NULL}'::text[]) AS one_null, gpu_argsort('{2,1}'::int[]) AS two;

-- to reorder another array
SELECT ARRAY(SELECT ('{c,a,b}'::text[])[p]
			 FROM unnest(gpu_argsort('{30,10,20}'::int[])) WITH ORDINALITY AS u (p, n)
			 ORDER BY n) AS reordered;

-- errors
SELECT gpu_argsort('{{1,2},{3,4}}'::int[]);
SELECT gpu_argsort('{{1}}'::int[]);
SELECT gpu_argsort(ARRAY['{}', '{}']::json[]);

-- many elements, against stock
WITH input AS (
	SELECT array_agg(i * 7919 % 1009 ORDER BY i) AS numbers
	FROM generate_series(1, 100000::int8) i)
SELECT gpu_argsort(numbers) =
	   ARRAY(SELECT n::int FROM unnest(numbers) WITH ORDINALITY AS u (x, n) ORDER BY x, n) AS ascending,
	   gpu_argsort(numbers, true) =
	   ARRAY(SELECT n::int FROM unnest(numbers) WITH ORDINALITY AS u (x, n) ORDER BY x DESC, n) AS descending
FROM input;
