--
-- gpu_sort_agg and gpu_argsort_agg: as gpu_sort and gpu_argsort of array_agg
-- needs: nothing
--
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pg_gpusort;
RESET client_min_messages;
-- what results are compared with is stock PostgreSQL
SET pg_gpusort.enable = off;
SET max_parallel_workers_per_gather = 0;

SELECT gpu_sort_agg(x) AS sorted, gpu_sort_agg(x, true) AS descending, gpu_sort_agg(x, true, false) AS nulls_last,
	   gpu_sort_agg(x, false, true) AS nulls_first, gpu_sort_agg(x, false, NULL) AS defaults
FROM (VALUES (3), (1), (NULL), (2)) AS v (x);
SELECT gpu_argsort_agg(x) AS sorted, gpu_argsort_agg(x, true) AS descending, gpu_argsort_agg(x, true, false) AS nulls_last,
	   gpu_argsort_agg(x, false, true) AS nulls_first
FROM (VALUES ('c' COLLATE "C"), ('a'), (NULL), ('b')) AS v (x);
-- no row, one, one NULL, no direction
SELECT gpu_sort_agg(x), gpu_argsort_agg(x) FROM (SELECT 1 LIMIT 0) AS v (x);
SELECT gpu_sort_agg(x) AS one, gpu_argsort_agg(x), gpu_sort_agg(x::json) AS no_order_needed FROM (VALUES ('1')) AS v (x);
SELECT gpu_sort_agg(x) AS one_null, gpu_argsort_agg(x) FROM (VALUES (NULL::text)) AS v (x);
SELECT gpu_sort_agg(x, NULL) IS NULL AS no_direction, gpu_argsort_agg(x, NULL) IS NULL FROM (VALUES (2), (1)) AS v (x);

-- errors
SELECT gpu_sort_agg(x::json) FROM (VALUES ('1'), ('2')) AS v (x);
SELECT gpu_sort_agg(x, x > 1) FROM (VALUES (1), (2)) AS v (x);
SELECT gpu_argsort_agg(x, false, x > 1) FROM (VALUES (1), (2)) AS v (x);
SELECT gpu_sort_agg(x, nullif(x > 1, true)) FROM (VALUES (1), (2)) AS v (x);
SELECT gpu_sort_agg(ARRAY[1]);

-- a table with values of all kinds: NULLs, ties that differ, long, compressed and toasted values
CREATE TABLE agg_rows (id int, g int, i2 int2, k int8, f float8, n numeric, c "char", t text, u uuid, na name, b bytea, v interval);
ALTER TABLE agg_rows ALTER b SET STORAGE EXTERNAL;
INSERT INTO agg_rows
SELECT i, i % 7, i * 31 % 1000, CASE WHEN i % 11 > 0 THEN hashint8(i) END, ('{0,-0,NaN,1,-1}'::float8[])[i % 5 + 1],
	round(i % 50, i % 4), chr(33 + i % 90)::"char",
	CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN repeat('same', i % 40) WHEN 2 THEN repeat(chr(97 + i % 26), 5000 + i % 3) ELSE md5(i::text) END,
	md5(i::text)::uuid, 'name ' || i % 100, CASE WHEN i % 200 = 0 THEN decode(repeat(md5(i::text), 200), 'hex') END,
	CASE WHEN i % 3 > 0 THEN (i % 70) * '1 h'::interval END
FROM generate_series(1, 8000) i;
ANALYZE agg_rows;
-- record_image_eq compares bytes
CREATE FUNCTION agg_check(groups text, OUT results bigint, OUT wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	same text := (SELECT string_agg(format('record_image_eq(ROW(gpu_sort_agg(%1$s), gpu_sort_agg(%1$s, true), gpu_sort_agg(%1$s, true, false), gpu_argsort_agg(%1$s)),
			ROW(gpu_sort(array_agg(%1$s)), gpu_sort(array_agg(%1$s), true), gpu_sort(array_agg(%1$s), true, false), gpu_argsort(array_agg(%1$s))))', x), ' AND ')
		FROM unnest('{i2,k,f,n,c,t,u,na,b,v,"t COLLATE \"C\""}'::text[]) x);
BEGIN
	EXECUTE 'SELECT count(*), count(*) FILTER (WHERE NOT same) FROM (SELECT ' || same || ' AS same FROM agg_rows ' || groups || ') s' INTO results, wrong;
END $$;
SELECT * FROM agg_check('');
SELECT * FROM agg_check('WHERE false');
-- groups, sorted and hashed, small ones, grouping sets, and hash tables on disk
SET enable_hashagg = off;
SELECT * FROM agg_check('GROUP BY g');
RESET enable_hashagg;
SET enable_sort = off;
SELECT * FROM agg_check('GROUP BY g');
SELECT * FROM agg_check('GROUP BY GROUPING SETS ((g), (i2 % 3), ())');
SET work_mem = '64kB';
SELECT * FROM agg_check('GROUP BY id % 2000');
RESET work_mem;
RESET enable_sort;

-- FILTER, DISTINCT, ORDER BY
SELECT bool_and(filter) AS filter, bool_and(nothing_left) AS nothing_left, bool_and("distinct") AS "distinct", bool_and("order by") AS "order by"
FROM (SELECT record_image_eq(ROW(gpu_sort_agg(k) FILTER (WHERE id % 2 = 0)), ROW(gpu_sort(array_agg(k) FILTER (WHERE id % 2 = 0)))) AS filter,
		gpu_sort_agg(k) FILTER (WHERE id < 0) IS NULL AS nothing_left,
		record_image_eq(ROW(gpu_sort_agg(DISTINCT n)), ROW(gpu_sort(array_agg(DISTINCT n)))) AS "distinct",
		record_image_eq(ROW(gpu_argsort_agg(t ORDER BY id DESC)), ROW(gpu_argsort(array_agg(t ORDER BY id DESC)))) AS "order by"
	FROM agg_rows GROUP BY g) s;

-- windows: the state is used further after each result
SELECT count(*), count(*) FILTER (WHERE NOT record_image_eq(ROW(sorted, positions), ROW(gpu_sort(a), gpu_argsort(a)))) AS wrong
FROM (SELECT gpu_sort_agg(t) OVER w AS sorted, gpu_argsort_agg(t) OVER w AS positions, array_agg(t) OVER w AS a FROM agg_rows
	WHERE id % 100 < 3 WINDOW w AS (PARTITION BY g ORDER BY id)) s;
SELECT count(*), count(*) FILTER (WHERE NOT record_image_eq(ROW(sorted), ROW(gpu_sort(a)))) AS wrong
FROM (SELECT gpu_sort_agg(k) OVER w AS sorted, array_agg(k) OVER w AS a FROM agg_rows
	WHERE id % 100 < 3 WINDOW w AS (ORDER BY id ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)) s;

-- parallel plans: all processes have rows, among them of groups that others do not have
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
CREATE FUNCTION agg_plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Aggregate|Gather|Scan' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END $$;
SELECT agg_plan('SELECT gpu_sort_agg(k), gpu_argsort_agg(t), gpu_sort_agg(n, true, false) FROM agg_rows');
CREATE TEMP TABLE serial AS
	SELECT coalesce(g, -1) AS g, gpu_sort(array_agg(k)) AS k, gpu_sort(array_agg(t)) AS t, gpu_sort(array_agg(i2), true) AS i2, gpu_sort(array_agg(u), false, true) AS u, gpu_sort(array_agg(b)) AS b, gpu_sort(array_agg(c)) AS c, gpu_sort(array_agg(na)) AS na,
		gpu_sort(array_agg(ROW(id, t)))::text AS r
	FROM agg_rows GROUP BY GROUPING SETS ((g), ());
CREATE TEMP TABLE parallel_groups AS
	SELECT g, gpu_sort_agg(k) AS k, gpu_sort_agg(t) AS t, gpu_sort_agg(i2, true) AS i2, gpu_sort_agg(u, false, true) AS u, gpu_sort_agg(b) AS b, gpu_sort_agg(c) AS c, gpu_sort_agg(na) AS na,
		gpu_sort_agg(ROW(id, t))::text AS r
	FROM agg_rows GROUP BY g;
CREATE TEMP TABLE parallel_all AS
	SELECT -1 AS g, gpu_sort_agg(k) AS k, gpu_sort_agg(t) AS t, gpu_sort_agg(i2, true) AS i2, gpu_sort_agg(u, false, true) AS u, gpu_sort_agg(b) AS b, gpu_sort_agg(c) AS c, gpu_sort_agg(na) AS na,
		gpu_sort_agg(ROW(id, t))::text AS r
	FROM agg_rows;
SELECT count(*), count(*) FILTER (WHERE record_image_eq(s, p)) AS same
FROM serial s FULL JOIN (TABLE parallel_groups UNION ALL TABLE parallel_all) p USING (g);
-- NULLs only in some processes, or only NULLs
SELECT record_image_eq(ROW(gpu_sort_agg(x)), ROW(gpu_sort((SELECT array_agg(x) FROM (SELECT CASE WHEN id > 6000 THEN id END AS x FROM agg_rows ORDER BY id) s)))) AS same
FROM (SELECT CASE WHEN id > 6000 THEN id END AS x FROM agg_rows) s;
SELECT cardinality(gpu_sort_agg(x)), array_remove(gpu_sort_agg(x), NULL) FROM (SELECT nullif(id, id)::text AS x FROM agg_rows) s;
SELECT gpu_sort_agg(k) FROM agg_rows WHERE id < 0;
SELECT gpu_sort_agg(id, id > 100) FROM agg_rows;

DROP TABLE agg_rows;
DROP FUNCTION agg_check, agg_plan;
