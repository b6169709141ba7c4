--
-- GpuSort anywhere in a plan: joins, windows, groups, cursors, parallel plans
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET work_mem = '16MB';
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = off;
CREATE TABLE items AS
	SELECT g AS id, g * 7919 % 251 AS k, CASE WHEN g % 9 > 0 THEN g % 23 END AS grp,
		   (g * 31 % 1000) / 8.0::float8 AS d, md5(g::text) AS t
	FROM generate_series(1, 4000) g;
CREATE TABLE others AS
	SELECT g AS id, g * 104729 % 301 AS k, g % 7 = 0 AS flag FROM generate_series(1, 900) g;
ANALYZE items, others;

-- enable_sort counts for the final ORDER BY as well
CREATE INDEX items_k ON items (k);
SET pg_gpusort.min_rows = 0;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT k FROM items ORDER BY k;
RESET enable_sort;
RESET pg_gpusort.min_rows;
DROP INDEX items_k;

-- merge joins, with duplicates on both sides: mark and restore
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SET pg_gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT * FROM items i JOIN others o ON i.k = o.k;
RESET pg_gpusort.min_rows;
SELECT check_sort('SELECT i.k, i.id AS a, o.id AS b FROM items i JOIN others o ON i.k = o.k ORDER BY i.k', 'k');
SELECT check_sort('SELECT i.k, i.id AS a, o.id AS b, t FROM items i LEFT JOIN others o ON i.k = o.k AND i.id % 3 = o.id % 3 ORDER BY 1, 2, 3', 'k, a, b');
SELECT check_sort('SELECT o.k, i.id AS a, o.id AS b FROM items i FULL JOIN others o ON i.k = o.k ORDER BY 1, 2, 3', 'k, a, b');
SELECT check_sort('SELECT i.id FROM items i WHERE EXISTS (SELECT FROM others o WHERE o.k = i.k AND flag) ORDER BY 1', 'id');
SELECT check_sort('SELECT a.id AS a, b.id AS b, c.id AS c FROM others a JOIN others b USING (k) JOIN others c USING (k) ORDER BY 1, 2, 3', 'a, b, c');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;

-- windows, groups, distinct rows, set operations
SELECT check_sort('SELECT id, sum(d) OVER (PARTITION BY grp ORDER BY d, id) AS s, rank() OVER (ORDER BY k) AS r FROM items ORDER BY id', 'id, s, r');
SELECT check_sort('SELECT id, first_value(id) OVER (ORDER BY k DESC, id) AS f, count(*) OVER (PARTITION BY grp) AS c FROM items ORDER BY id', 'id, f, c');
SELECT check_sort('SELECT id, last_value(id) OVER (ORDER BY k, id ROWS BETWEEN 3 PRECEDING AND 5 FOLLOWING) AS l FROM items ORDER BY id', 'id, l');
SELECT check_sort('SELECT DISTINCT ON (k) k, id FROM items ORDER BY k, id DESC', 'k, id');
SET enable_hashagg = off;
SELECT check_sort('SELECT grp, count(*) AS c, sum(id) AS s FROM items GROUP BY grp ORDER BY grp', 'grp, c, s');
SELECT check_sort('SELECT grp, k % 5 AS m, count(*) AS c FROM items GROUP BY ROLLUP (1, 2) ORDER BY 1, 2, 3', 'grp, m, c');
SELECT check_sort('SELECT DISTINCT grp, k % 3 AS m FROM items ORDER BY 1 DESC, 2', 'grp, m');
SELECT check_sort('SELECT k FROM items UNION SELECT k FROM others ORDER BY 1', 'k');
-- (PostgreSQL 18 sorts the inputs of a set operation one by one)
CREATE FUNCTION stock_sorts(query text) RETURNS bigint LANGUAGE sql SET pg_gpusort.enable = off AS $$
	SELECT count(*) FROM explain_lines(query) line WHERE btrim(line, ' ->') = 'Sort'
$$;
SELECT replace(check_sort(query, 'k'), stock_sorts(query) || ' GpuSort', 'as many GpuSort as Sort')
FROM (VALUES ('(SELECT k FROM items INTERSECT SELECT k FROM others) ORDER BY 1'),
	  ('(SELECT k FROM others EXCEPT ALL SELECT k FROM items) ORDER BY 1')) v(query);
DROP FUNCTION stock_sorts;
RESET enable_hashagg;

-- rescans: with parameters that change the input, and ones that do not
SELECT check_sort('SELECT o.id, s.id AS i, s.d FROM (SELECT * FROM others WHERE id <= 40) o,
				  LATERAL (SELECT id, d FROM items WHERE items.k = o.k ORDER BY d DESC OFFSET 1) s ORDER BY 1, 2', 'id, i');
SELECT check_sort('SELECT o.id, (SELECT array_agg(id) FROM (SELECT id FROM items WHERE k = o.k ORDER BY d, id OFFSET 0) s) AS ids
				  FROM others o WHERE id <= 60 ORDER BY 1', 'id, ids');
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT check_sort('SELECT o.id, s.id AS i FROM (SELECT * FROM others WHERE id <= 30) o LEFT JOIN
				  (SELECT id, k FROM items ORDER BY d DESC, id OFFSET 100) s ON s.k > o.k + 200 ORDER BY 1, 2', 'id, i');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
SET enable_hashjoin = off;
SELECT check_sort('WITH c AS MATERIALIZED (SELECT id, k FROM items ORDER BY k, id DESC) SELECT a.id, a.k FROM c a JOIN c b ON a.id = b.id + 1 ORDER BY a.k, a.id', 'k, id');
RESET enable_hashjoin;
SELECT check_sort('WITH RECURSIVE r AS (SELECT 1 AS n, 0 AS id UNION ALL SELECT n + 1, (SELECT id FROM (SELECT id FROM items WHERE k = r.n ORDER BY d, id OFFSET 0) s OFFSET 2 LIMIT 1) FROM r WHERE n < 30) SELECT * FROM r ORDER BY n', 'n, id', 'off');

SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;

-- statements that write
CREATE TABLE copied (n serial, id int, k int);
INSERT INTO copied (id, k) SELECT id, k FROM items ORDER BY k DESC, id;
SELECT count(*), bool_and(k <= before) AS sorted FROM (SELECT k, lag(k, 1, k) OVER (ORDER BY n) AS before FROM copied) s;
UPDATE copied SET k = -s.row FROM (SELECT id, row_number() OVER (ORDER BY k, id) AS row FROM copied) s WHERE s.id = copied.id;
DELETE FROM copied WHERE id IN (SELECT id FROM copied ORDER BY k OFFSET 10);
SELECT array_agg(k) FROM (SELECT k FROM copied ORDER BY k OFFSET 0) s;
SELECT id, k FROM copied ORDER BY k FOR UPDATE;
WITH gone AS (DELETE FROM copied RETURNING id, k) SELECT array_agg(k) FROM (SELECT k FROM gone ORDER BY k DESC OFFSET 0) s;
DROP TABLE copied;

-- prepared statements, with plans of their own and generic ones
PREPARE of_group(int, float8) AS SELECT id, d FROM items WHERE grp = $1 ORDER BY d + $2 DESC, id OFFSET 150;
SET plan_cache_mode = force_custom_plan;
EXECUTE of_group(3, 1.5);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE of_group(3, 1.5);
EXECUTE of_group(3, 1.5);
EXECUTE of_group(4, 0);
-- a kept plan is made anew
RESET pg_gpusort.debug_require;
SET pg_gpusort.enable = off;
EXPLAIN (COSTS OFF) EXECUTE of_group(4, 0);
EXECUTE of_group(4, 0);
RESET pg_gpusort.enable;
SET pg_gpusort.debug_require = cpu;
DEALLOCATE of_group;
RESET plan_cache_mode;

-- cursors
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, id FROM items WHERE id <= 12 ORDER BY k;
FETCH BACKWARD 1 FROM c;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH FIRST FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE 5 FROM c;
FETCH RELATIVE -3 FROM c;
FETCH RELATIVE 0 FROM c;
FETCH ABSOLUTE -2 FROM c;
FETCH ABSOLUTE 13 FROM c;
FETCH BACKWARD 1 FROM c;
MOVE BACKWARD ALL FROM c;
FETCH 1 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD ALL FROM c;
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT k, id FROM items WHERE id <= 12 ORDER BY k DESC;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;
BEGIN;
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT k, id FROM items WHERE id <= 6 ORDER BY k;
FETCH 2 FROM h;
COMMIT;
FETCH ALL FROM h;
FETCH BACKWARD 2 FROM h;
CLOSE h;
-- one that is never run
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM items ORDER BY k;
CLOSE c;
COMMIT;

-- loops in PL/pgSQL
DO $$
DECLARE
	row record;
	last int := NULL;
	n int := 0;
	c refcursor;
BEGIN
	FOR row IN SELECT k, id FROM items ORDER BY k DESC LOOP
		IF last < row.k THEN
			RAISE 'not in order: % after %', row.k, last;
		END IF;
		last := row.k;
		n := n + 1;
		EXIT WHEN n = 3000;
	END LOOP;
	OPEN c SCROLL FOR SELECT k, id FROM items ORDER BY id;
	FETCH LAST FROM c INTO row;
	RAISE NOTICE '% rows, the last of them %', n, row.id;
	MOVE RELATIVE -10 FROM c;
	FETCH c INTO row;
	RAISE NOTICE '%', row.id;
	CLOSE c;
	-- an error in the middle
	BEGIN
		FOR row IN SELECT 1 / (2000 - id) AS e FROM items ORDER BY k LOOP
			NULL;
		END LOOP;
	EXCEPTION WHEN division_by_zero THEN
		RAISE NOTICE 'caught';
	END;
END $$;
RESET pg_gpusort.debug_require;
RESET pg_gpusort.min_rows;

-- partitions, and MergeAppend over them
CREATE TABLE parted (k int, v text) PARTITION BY LIST ((k % 3));
CREATE TABLE parted0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES IN (2, NULL);
INSERT INTO parted SELECT g * 7919 % 997, g FROM generate_series(1, 2000) g;
CREATE INDEX ON parted0 (k);
ANALYZE parted;
SELECT check_sort('SELECT * FROM parted ORDER BY k', 'k');
SELECT check_sort('SELECT * FROM parted ORDER BY k DESC, v::int', 'k, v');
SET enable_seqscan = off;
SET cpu_tuple_cost = 0.5;
SELECT check_sort('SELECT * FROM (SELECT k, v FROM parted0 UNION ALL SELECT k, v FROM parted1) s ORDER BY k', 'k');
RESET enable_seqscan;
RESET cpu_tuple_cost;

-- the inputs of a MergeAppend, below a limit
SET pg_gpusort.min_rows = 0;
SELECT array_agg(k) FROM (SELECT k FROM parted ORDER BY k LIMIT 10) s;
RESET pg_gpusort.min_rows;

-- groups that a hash table makes
SET pg_gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT grp, count(*) FROM items GROUP BY grp, d ORDER BY grp;
RESET pg_gpusort.min_rows;

-- parallel plans
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = on;
SET pg_gpusort.min_rows = 0;
SET enable_hashagg = off;
CREATE FUNCTION plan_shape(query text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(btrim(replace(line, '->', '')), ' > ') FROM explain_lines(query) line
	WHERE line ~ '(Gather|Sort\)|Sort$|Seq Scan)'
$$;
-- each process sorts, since there is no path over a sort at GpuSort's cost
SET enable_sort = off;
SELECT plan_shape('SELECT grp, d FROM items ORDER BY grp, d LIMIT (SELECT 4000)');
RESET enable_sort;
RESET pg_gpusort.min_rows;
-- a group above one sort of all rows
SET pg_gpusort.debug_divide = off;
SELECT check_sort('SELECT grp, d, count(*) AS c, sum(id) AS s FROM items GROUP BY grp, d ORDER BY grp, d', 'grp, d, c, s');
SET parallel_leader_participation = off;
SELECT check_sort('SELECT grp, d, count(*) AS c, sum(id) AS s FROM items GROUP BY grp, d ORDER BY grp, d', 'grp, d, c, s');
RESET parallel_leader_participation;
RESET pg_gpusort.debug_divide;
RESET enable_hashagg;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT check_sort('SELECT i.id AS a, o.id AS b, t FROM items i JOIN others o ON i.k = o.k ORDER BY 1, 2', 'a, b');
RESET enable_hashjoin;
RESET enable_nestloop;

DROP TABLE items, others, parted;
DROP FUNCTION plan_shape;
