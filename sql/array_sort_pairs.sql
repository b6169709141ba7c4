--
-- gpu_sort_pairs: an array sorted, and another one alongside
-- needs: nothing
--
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
RESET client_min_messages;
-- what results are compared with is stock PostgreSQL
SET pg_gpusort.enable = off;

SELECT * FROM gpu_sort_pairs('{3,1,2}'::int[], '{three,one,two}'::text[]);
SELECT * FROM gpu_sort_pairs('{3,1,2}'::int[], '{three,one,two}'::text[], true);
SELECT * FROM gpu_sort_pairs('{c,a,b}'::text[], '{3.0,1.00,2}'::numeric[]);
SELECT (gpu_sort_pairs(keys => '{2,1}'::int[], vals => '{t,f}'::bool[])).sorted_vals;
SELECT pg_typeof(sorted_keys) AS keys, pg_typeof(sorted_vals) AS vals
FROM gpu_sort_pairs('{2,1}'::int2[], '{t,f}'::bool[]);

-- NULL keys go where NULLs go, NULL vals where their keys go
SELECT * FROM gpu_sort_pairs('{3,NULL,2,NULL}'::int[], '{a,b,NULL,d}'::text[]);
SELECT * FROM gpu_sort_pairs('{3,NULL,2,NULL}'::int[], '{a,b,NULL,d}'::text[], true);
SELECT * FROM gpu_sort_pairs('{3,NULL,2,NULL}'::int[], '{a,b,NULL,d}'::text[], true, false);
SELECT * FROM gpu_sort_pairs('{3,NULL,2,NULL}'::int[], '{1,NULL,3,4}'::int[], nulls_first => true);
SELECT * FROM gpu_sort_pairs('{b,NULL,a}'::text[], '{NULL,NULL,NULL}'::int[]);

-- stable
SELECT * FROM gpu_sort_pairs('{1,0,1,0,1}'::int[], '{1,2,3,4,5}'::int[]);
SELECT * FROM gpu_sort_pairs('{1,0,1,0,1}'::int[], '{1,2,3,4,5}'::int[], true);

-- vals need no order of their own
SELECT * FROM gpu_sort_pairs('{2,1,3}'::int[], ARRAY['{"b": 2}', NULL, '{"c": 3}']::json[]);
SELECT * FROM gpu_sort_pairs('{2,1}'::int[], '{"(1,2)","(3,4)"}'::point[]);
-- the same array twice
SELECT * FROM gpu_sort_pairs('{2,1,NULL}'::int[], '{2,1,NULL}'::int[]);

-- both keep their lower bounds
SELECT * FROM gpu_sort_pairs('[0:2]={3,1,2}'::int[], '[7:9]={c,a,b}'::text[]);

-- NULL and small arguments
SELECT * FROM gpu_sort_pairs(NULL::int[], '{1}'::int[]);
SELECT * FROM gpu_sort_pairs('{1}'::int[], NULL::int[]);
SELECT * FROM gpu_sort_pairs('{2,1}'::int[], '{2,1}'::int[], NULL);
SELECT * FROM gpu_sort_pairs('{}'::int[], '{}'::text[]);
SELECT * FROM gpu_sort_pairs('{1}'::int[], '{NULL}'::text[]);

-- errors
SELECT gpu_sort_pairs('{{1,2}}'::int[], '{1,2}'::int[]);
SELECT gpu_sort_pairs('{1,2}'::int[], '{{1,2}}'::int[]);
SELECT gpu_sort_pairs(ARRAY['{}', '{}']::json[], '{1,2}'::int[]);
\set VERBOSITY default
SELECT gpu_sort_pairs('{1,2}'::int[], '{1,2,3}'::int[]);
SELECT gpu_sort_pairs('{}'::int[], '{1}'::int[]);

-- many elements
WITH input AS (
	SELECT array_agg(nullif(i * 7919 % 1009, 5) ORDER BY i) AS keys,
		   array_agg(nullif(i, 77)::text ORDER BY i) AS vals
	FROM generate_series(1, 100000::int8) i),
expected AS (
	SELECT array_agg(k ORDER BY k DESC NULLS LAST, n) AS keys,
		   array_agg(v ORDER BY k DESC NULLS LAST, n) AS vals
	FROM input, unnest(keys, vals) WITH ORDINALITY AS u (k, v, n))
SELECT sorted_keys = expected.keys AS keys, sorted_vals = expected.vals AS vals
FROM input, expected,
	 gpu_sort_pairs(input.keys, input.vals, descending => true, nulls_first => false);
