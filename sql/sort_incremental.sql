--
-- Incremental Sort: which are taken over, rows in batches of whole groups
-- needs: sort_setup
--
LOAD 'pg_gpusort';
SET work_mem = '4MB';
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_sort = off;
SET pg_gpusort.min_rows = 5000;
CREATE TABLE presorted AS
	SELECT g AS id, g / 10 AS ten, g / 1000 AS thousand, nullif(g / 4000, 3) AS part, 'é' || lpad((g / 500)::text, 6, '0') AS name,
		   hashint4(g) AS k, CASE WHEN g % 7 > 0 THEN md5(g::text) END AS s, repeat('x', g % 50) AS pad
	FROM generate_series(0, 19999) g;
CREATE INDEX ON presorted (id);
CREATE INDEX ON presorted (ten);
CREATE INDEX ON presorted (thousand);
CREATE INDEX ON presorted (part);
CREATE INDEX ON presorted (name COLLATE "C" DESC);
VACUUM ANALYZE presorted;
-- How the sorts of a query are done, and how many rows an index scan has returned.
CREATE FUNCTION explain_incremental(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT regexp_replace(ltrim(line), 'Batches: \d\d+', 'Batches: N')
	FROM explain_lines(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') line
	WHERE line ~ '(Sort|Presorted Key|Index Scan)' AND line !~ 'Sort Groups';
$$;

-- large groups, small ones, and a LIMIT
EXPLAIN (COSTS OFF) SELECT thousand, k FROM presorted ORDER BY thousand, k;
EXPLAIN (COSTS OFF) SELECT ten, k FROM presorted ORDER BY ten, k;
-- values that consist of others take long to compare, as texts of a language do
EXPLAIN (COSTS OFF) SELECT ten, ARRAY[k] FROM presorted ORDER BY ten, ARRAY[k];
EXPLAIN (COSTS OFF) SELECT id, ARRAY[k] FROM presorted ORDER BY id, ARRAY[k];
-- but those that a window computes are the same in the rows of a group
SELECT btrim(l, ' ->') AS line FROM explain_lines('SELECT ten, first_value(ARRAY[k]) OVER (PARTITION BY ten) FROM presorted ORDER BY ten, 2') l
WHERE l ~ 'Incremental';
-- without that setting, what takes PostgreSQL a few milliseconds is taken over, whatever the number of rows
RESET pg_gpusort.min_rows;
EXPLAIN (COSTS OFF) SELECT part, k FROM presorted ORDER BY part, k;
EXPLAIN (COSTS OFF) SELECT ten, ARRAY[k] FROM presorted ORDER BY ten, ARRAY[k];
EXPLAIN (COSTS OFF) SELECT thousand, k FROM presorted WHERE thousand < 5 ORDER BY thousand, k;
SET pg_gpusort.min_rows = 5000;
EXPLAIN (COSTS OFF) SELECT thousand, k FROM presorted ORDER BY thousand, k LIMIT 5000;
EXPLAIN (COSTS OFF) SELECT thousand, k FROM presorted ORDER BY thousand, k LIMIT 300;
SET plan_cache_mode = force_generic_plan;
PREPARE first_rows (int8) AS SELECT thousand, k FROM presorted ORDER BY thousand, k LIMIT $1;
EXPLAIN (COSTS OFF) EXECUTE first_rows(5000);
DEALLOCATE first_rows;
RESET plan_cache_mode;
EXPLAIN (COSTS OFF, VERBOSE) SELECT name COLLATE "C" AS name, s FROM presorted ORDER BY 1 DESC, 2 NULLS FIRST;
SET pg_gpusort.enable = off;
EXPLAIN (COSTS OFF) SELECT thousand, k FROM presorted ORDER BY thousand, k;
SET pg_gpusort.enable = on;
SET pg_gpusort.debug_require = node;
SELECT error_of('SELECT ten, k FROM presorted ORDER BY ten, k');
RESET pg_gpusort.debug_require;

-- the rows: groups of all sizes, NULL, strings, whole tuples, narrow rows
SELECT check_sort('SELECT * FROM presorted ORDER BY id, k', 'id, k');
SELECT check_sort('SELECT * FROM presorted ORDER BY ten, k', 'ten, k');
SELECT check_sort('SELECT * FROM presorted ORDER BY thousand, s', 'thousand, s');
SELECT check_sort('SELECT * FROM presorted ORDER BY thousand, k % 3', 'thousand');
SELECT check_sort('SELECT part, k FROM presorted ORDER BY part, k DESC', 'part, k');
SELECT check_sort('SELECT part, s, pad FROM presorted ORDER BY part DESC, s, pad', 'part, s, pad');
SELECT check_sort('SELECT name COLLATE "C" AS name, s, pad FROM presorted ORDER BY 1 DESC, 2 NULLS FIRST, 3', 'name, s, pad');
SELECT check_sort('SELECT thousand, k FROM presorted WHERE id < 0 ORDER BY thousand, k', 'thousand, k');
SELECT check_sort('SELECT thousand, k FROM presorted WHERE id = 5 ORDER BY thousand, k', 'thousand, k');
SELECT check_sort('SELECT thousand, k FROM presorted ORDER BY thousand, k LIMIT 7777 OFFSET 3', 'thousand, k');
SET pg_gpusort.debug_whole_tuples = on;
SELECT check_sort('SELECT * FROM presorted ORDER BY part, k', 'part, k');
RESET pg_gpusort.debug_whole_tuples;
SELECT check_sort('SELECT part, k, s FROM (SELECT thousand, k, s, part FROM presorted ORDER BY part OFFSET 0) p ORDER BY part, k', 'part, k');

-- in little memory, groups go to disk
SELECT explain_incremental('SELECT thousand, k FROM presorted ORDER BY thousand, k');
SET work_mem = '64kB';
SELECT explain_incremental('SELECT part, k, s FROM presorted ORDER BY part, k');
SELECT check_sort('SELECT part, k, s, pad FROM presorted ORDER BY part, k', 'part, k', 'node');
SELECT check_sort('SELECT thousand, s FROM presorted ORDER BY thousand, s', 'thousand, s', 'node');
SET work_mem = '4MB';

-- a parent that stops early has few rows read, and the first batch is small
SELECT explain_incremental('SELECT (SELECT max(k) FROM (SELECT thousand, k FROM presorted ORDER BY thousand, k LIMIT 5000) p)');
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT thousand, k FROM presorted ORDER BY thousand, k;
FETCH 2 FROM c;
FETCH RELATIVE 2000 FROM c;
FETCH RELATIVE -2000 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
DECLARE forward CURSOR FOR SELECT thousand, k FROM presorted ORDER BY thousand, k;
FETCH 1 FROM forward;
SAVEPOINT backward;
FETCH BACKWARD 1 FROM forward;
ROLLBACK;

-- rescans, with the same rows and with others
SET pg_gpusort.min_rows = 0;
CREATE FUNCTION rescans() RETURNS text LANGUAGE sql AS $$
	SELECT md5(string_agg(format('%s %s %s', a, n, hash), ' ' ORDER BY a, n)) FROM (
		SELECT a, n, (SELECT md5(string_agg(format('%s %s', thousand, k), ' ')) FROM (
				SELECT thousand, k FROM presorted WHERE id % 97 >= a ORDER BY thousand, k LIMIT n) p) AS hash
		FROM generate_series(0, 2) a, unnest(ARRAY[1, 100, 3000, 2500, 19999]) n) r
$$;
CREATE TEMP TABLE rescanned AS SELECT rescans() AS hash;
SET pg_gpusort.enable = off;
SELECT hash = rescans() AS same FROM rescanned;
SET pg_gpusort.enable = on;
DROP TABLE rescanned;

-- windows and merge joins above it
SELECT check_sort('SELECT thousand, k, row_number() OVER (PARTITION BY thousand ORDER BY k, id) AS n FROM presorted', 'thousand, k, n');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT check_sort('SELECT a.id AS a, b.id AS b FROM (SELECT * FROM presorted WHERE id < 4000) a JOIN presorted b
	ON a.thousand = b.thousand AND a.k = b.k ORDER BY a.thousand, a.k', 'a, b');
RESET enable_hashjoin;
RESET enable_nestloop;

-- counted as one sort of all rows
SELECT pg_stat_gpusort_reset();
SELECT count(*) FROM (SELECT thousand, k FROM presorted ORDER BY thousand, k OFFSET 0) p;
SELECT backend, sorts, rows FROM pg_stat_gpusort WHERE sorts > 0;

-- in each of several processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SELECT explain_lines('SELECT part, k FROM presorted ORDER BY part, k');
SELECT check_sort('SELECT part, k FROM presorted ORDER BY part, k', 'part, k', 'node');

DROP FUNCTION explain_incremental, rescans;
DROP TABLE presorted;

-- One of all rows is charged more than PostgreSQL does, by strings above all, so that the planner
-- chooses a sort of the table.
RESET enable_seqscan;
RESET enable_sort;
RESET min_parallel_table_scan_size;
RESET min_parallel_index_scan_size;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE pages AS
	SELECT g / 20 AS visit, md5(g::text) COLLATE "C" AS page FROM generate_series(1, 100000) g;
CREATE INDEX ON pages (visit);
VACUUM ANALYZE pages;
EXPLAIN (COSTS OFF) SELECT visit, page FROM pages ORDER BY visit, page;
EXPLAIN (COSTS OFF) SELECT visit, page FROM pages ORDER BY visit, page LIMIT 100;
SELECT count_gpusorts('SELECT row_number() OVER (PARTITION BY visit ORDER BY page) FROM pages');
DROP TABLE pages;
