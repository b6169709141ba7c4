--
-- ORDER BY several keys: directions, NULLs, and how wide they can be together
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
CREATE TABLE keys AS
	SELECT CASE WHEN g % 11 > 0 THEN g * 7 % 5 - 2 END::int2 AS s,
		   CASE WHEN g % 13 > 0 THEN g * 31 % 17 - 8 END AS i,
		   CASE WHEN g % 17 > 0 THEN (g * 7919 % 101 - 50) * 10000000000 END AS l,
		   CASE WHEN g % 19 > 0 THEN (g * 104729 % 37) / 7.0 - 2 END::float8 AS d,
		   CASE WHEN g % 5 > 0 THEN g % 3 = 0 END AS b,
		   CASE WHEN g % 7 > 0 THEN timestamptz '2000-01-01 00:00+00' + g * 997 % 89 * interval '1 hour' END AS t,
		   g AS id
	FROM generate_series(1, 3000) g;

-- all combinations of directions and NULLs of two and three keys
SELECT result, count(*) FROM
	unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) w1,
	unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) w2,
	LATERAL check_sort(format('SELECT * FROM keys ORDER BY s %s, l %s', w1, w2), 's, l') result
GROUP BY result;
SELECT result, count(*) FROM
	unnest(ARRAY['', 'DESC NULLS LAST']) w1,
	unnest(ARRAY['DESC', 'NULLS FIRST']) w2,
	unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) w3,
	LATERAL check_sort(format('SELECT * FROM keys ORDER BY b %s, i %s, d %s', w1, w2, w3), 'b, i, d') result
GROUP BY result;

-- keys of all widths one behind the other, across the borders of words
SELECT check_sort('SELECT * FROM keys ORDER BY b, s, i, b, s', 'b, s, i');
SELECT check_sort('SELECT * FROM keys ORDER BY b, l', 'b, l');
SELECT check_sort('SELECT * FROM keys ORDER BY s, b, d DESC', 's, b, d');
SELECT check_sort('SELECT * FROM keys ORDER BY b, i, l, s', 'b, i, l, s');
SELECT check_sort('SELECT * FROM keys ORDER BY b DESC, s, i DESC, t, d DESC', 'b, s, i, t, d');
SELECT check_sort('SELECT * FROM keys ORDER BY l, s NULLS FIRST, b, i', 'l, s, b, i');
SELECT check_sort('SELECT * FROM keys ORDER BY b, t DESC, d NULLS FIRST, l', 'b, t, d, l');
SELECT check_sort('SELECT * FROM keys ORDER BY i, d, s DESC, b, id DESC', 'i, d, s, b, id');

-- the same with the first key all NULL, and without any
SELECT check_sort('SELECT * FROM keys WHERE s IS NULL ORDER BY s, l DESC, i', 's, l, i');
SELECT check_sort('SELECT NULL::int8 AS k, * FROM keys ORDER BY k, s, i DESC', 'k, s, i');
SELECT check_sort('SELECT * FROM keys WHERE s IS NOT NULL AND l IS NOT NULL ORDER BY s DESC, l', 's, l');

-- 256 bits are encoded at first, and what is behind them for equal keys only;
-- each key after the first takes one more bit, for NULLs
CREATE TABLE wide AS
	SELECT nullif(g % 2, 1)::int8 AS a, nullif(g % 3, 1)::float8 AS b, nullif(g % 5, 1)::int8 AS c,
		   ('00:00:00:00:00:0' || g % 4)::macaddr AS d, (g % 3)::text::"char" AS e,
		   g % 7 = 0 AS f, nullif(g % 9 = 0, true) AS g, g % 11 = 0 AS h, g AS id
	FROM generate_series(1, 2000) g;
SELECT check_sort('SELECT * FROM wide ORDER BY a, b, c, d, e, f, g', 'a, b, c, d, e, f, g');
SELECT check_sort('SELECT * FROM wide ORDER BY a DESC, b, c DESC, d DESC, e, f DESC, g NULLS FIRST', 'a, b, c, d, e, f, g');
SELECT check_sort('SELECT * FROM wide ORDER BY a, b, c, d, e, f, g, h', 'a, b, c, d, e, f, g, h');
SELECT check_sort('SELECT * FROM wide ORDER BY a, c, b, b DESC, a, c, d, h, g, f DESC, e, id DESC', 'a, b, c, d, e, f, g, h, id');
SELECT check_sort('SELECT * FROM wide ORDER BY a, b, c, a DESC, b + 1, c + 1, b + 2, c + 2 DESC, a + 1 NULLS FIRST, d, id % 5, id', 'a, b, c, d, id');

-- of keys whose first ones tell nearly all rows apart, only these are encoded at first; so they are when the statistics are out of date
CREATE TABLE apart AS
	SELECT g * 7919 % 20011 AS u, g % 3 AS f, g % 5 AS h, 'text ' || g % 7 AS s, g AS id FROM generate_series(1, 20000) g;
VACUUM ANALYZE apart;
CREATE FUNCTION kilobytes_of(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Sort Space Used';
END $$;
SET max_parallel_workers_per_gather = 0;
SELECT check_sort('SELECT * FROM apart ORDER BY u, f, h, id', 'u, f, h, id');
SELECT check_sort('SELECT * FROM apart ORDER BY u DESC, s, f', 'u, s, f');
SELECT check_sort('SELECT * FROM apart ORDER BY f, u, h DESC, s', 'f, u, h, s');
SELECT check_sort('SELECT * FROM apart JOIN generate_series(1, 3) n ON id < 5000 ORDER BY u, n DESC, s', 'u, n, s');
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.backend = cpu;
SET pg_gpusort.work_mem = '64MB';
SELECT kilobytes_of('SELECT * FROM apart ORDER BY u, f, h, id') < kilobytes_of('SELECT * FROM apart ORDER BY u + 0, f, h, id') AS less;
RESET pg_gpusort.backend;
RESET pg_gpusort.work_mem;
UPDATE apart SET u = CASE WHEN u % 4 > 0 THEN u % 100 END;
SELECT check_sort('SELECT * FROM apart ORDER BY u, f, h, id', 'u, f, h, id');
SELECT check_sort('SELECT * FROM apart ORDER BY u DESC, s, f DESC, h', 'u, s, f, h');
SELECT check_sort('SELECT * FROM apart ORDER BY f, u, h DESC, s DESC NULLS LAST, id', 'f, u, h, s, id');
DROP FUNCTION kilobytes_of;
DROP TABLE keys, wide, apart;
