--
-- More rows than fit into pg_gpusort.work_mem: they go to a stock tuplesort
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64kB';
-- rows that the planner knows nothing of
CREATE FUNCTION unforeseen(n int, OUT id int, OUT k int8, OUT t text) RETURNS SETOF record
LANGUAGE plpgsql ROWS 10 AS $$
BEGIN
	RETURN QUERY SELECT g, CASE WHEN g % 10 > 0 THEN g * 7919::int8 % 10007 - 5000 END, md5(g::text)
		FROM generate_series(1, n) g;
END $$;

SELECT check_sort('SELECT * FROM unforeseen(10000) ORDER BY k', 'k', 'node');
SELECT check_sort('SELECT * FROM unforeseen(10000) ORDER BY k DESC', 'k', 'node');
SELECT check_sort('SELECT * FROM unforeseen(10000) ORDER BY k NULLS FIRST, id DESC', 'k, id', 'node');
SELECT check_sort('SELECT k FROM unforeseen(10000) ORDER BY k', 'k', 'node');
SELECT check_sort('SELECT nullif(id, id) AS k, id FROM unforeseen(10000) ORDER BY 1', 'k', 'node');
SELECT check_sort('SELECT id, repeat(t, 500) AS t FROM unforeseen(300) ORDER BY id DESC', 'id', 'node');
-- a row that alone is larger than the memory
SELECT check_sort('SELECT id, repeat(t, 5000) AS t FROM unforeseen(30) ORDER BY id DESC', 'id', 'node');
SELECT check_sort('SELECT id, CASE WHEN id % 100 = 0 THEN repeat(t, 3000) END AS t FROM unforeseen(900) ORDER BY id DESC', 'id', 'node');
-- about as many as fit, and one more, at the end of a chunk or not
SELECT result, count(*) FROM generate_series(1, 30) n,
	LATERAL regexp_replace(check_sort(format('SELECT id, k FROM unforeseen(%s) ORDER BY k', n * 64 + n % 3 - 1), 'k', 'node'), '\d+ rows', 'rows') result
GROUP BY result;

SET pg_gpusort.min_rows = 0;
-- what EXPLAIN says of it, and that this is an error if the memory has to do
SELECT * FROM explain_sorts('SELECT * FROM unforeseen(10000) ORDER BY k');
SELECT * FROM explain_sorts('SELECT * FROM unforeseen(100) ORDER BY k');
SET pg_gpusort.debug_require = cpu;
SELECT error_of('SELECT * FROM unforeseen(10000) ORDER BY k');
SET pg_gpusort.work_mem = '8MB';
SELECT error_of('SELECT * FROM unforeseen(10000) ORDER BY k');
RESET pg_gpusort.work_mem;
SET pg_gpusort.debug_require = node;

-- backward scans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM unforeseen(5000) ORDER BY id;
FETCH 2 FROM c;
FETCH ABSOLUTE 4000 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH RELATIVE 1234 FROM c;
COMMIT;

-- mark and restore
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT * FROM unforeseen(4000) a JOIN unforeseen(4000) b ON a.k / 100 = b.k / 100;
RESET pg_gpusort.debug_require;
SELECT check_sort('SELECT a.id AS a, b.id AS b FROM unforeseen(1500) a JOIN unforeseen(1500) b ON a.k / 100 = b.k / 100 ORDER BY 1, 2', 'a, b', 'node');
SELECT check_sort('SELECT a.id AS a, b.id AS b FROM unforeseen(1500) a LEFT JOIN unforeseen(1500) b ON a.k = b.k AND a.id < b.id ORDER BY 1, 2', 'a, b', 'node');

-- rescans: of the same input, which the tuplesort has to keep, and of others
SET enable_mergejoin = off;
RESET enable_nestloop;
SELECT check_sort('SELECT o AS o, s.id FROM generate_series(1, 5) o LEFT JOIN (SELECT id, k FROM unforeseen(3000) ORDER BY k, id OFFSET 0) s ON s.k % 1000 = o ORDER BY 1, 2', 'o, id', 'node');
SELECT check_sort('SELECT o AS o, s.id FROM generate_series(1, 5) o, LATERAL (SELECT id FROM unforeseen(o * 900) ORDER BY k, id OFFSET o * 880) s ORDER BY 1, 2', 'o, id', 'node');
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET enable_material;

-- abandoned halfway
SELECT count(*) FROM (SELECT id FROM unforeseen(10000) ORDER BY k LIMIT 3 OFFSET 3000) s;
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM unforeseen(5000) ORDER BY id;
FETCH 1 FROM c;
SAVEPOINT s;
DECLARE d CURSOR FOR SELECT id, 1 / (200 - id) AS e FROM unforeseen(5000) ORDER BY id DESC;
FETCH 1 FROM d;
ROLLBACK TO s;
FETCH 1 FROM c;
COMMIT;

-- temporary files do not outlive the statement
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
DROP FUNCTION unforeseen;
