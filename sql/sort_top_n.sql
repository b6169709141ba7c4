--
-- LIMITs over more rows than were expected: rows that are not wanted are dropped
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
CREATE TABLE top_rows AS
	SELECT g AS id, g AS up, -g AS down, hashint4(g) AS random, hashint4(g) % 3 AS few, 1 AS one,
		   CASE WHEN g % 3 > 0 THEN hashint4(g + 1) END AS nulls,
		   CASE WHEN g % 50 > 0 THEN repeat('in common ', 4) || hashint4(g) % 5000 END COLLATE "C" AS t,
		   (hashint4(g) % 20000)::numeric / 7 AS n
	FROM generate_series(1, 30000) g;
-- The planner takes each condition to be true of one row in 200.
CREATE VIEW more_rows AS SELECT * FROM top_rows WHERE (id + 0) % 1 = 0 AND (id + 1) % 1 = 0;
ANALYZE top_rows;

-- Sort by a list of keys, with stock PostgreSQL also by id: of rows with equal keys, those are
-- wanted that come first.  Returns the method, and what is wrong.
CREATE FUNCTION check_top(keys text, n text, source text DEFAULT 'more_rows') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	require text := current_setting('pg_gpusort.debug_require');
	ours text;
	stocks text;
	method text;
BEGIN
	EXECUTE format('SELECT string_agg(s::text, '' '') FROM (SELECT * FROM %s ORDER BY %s LIMIT %s) s', source, keys, n) INTO ours;
	SELECT string_agg(DISTINCT substring(l, 'Sort (?:Method|Fallback): .*'), ', ') INTO method
	FROM explain_lines(format('SELECT * FROM %s ORDER BY %s LIMIT %s', source, keys, n), 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') l;
	SET LOCAL pg_gpusort.enable = off;
	SET LOCAL pg_gpusort.debug_require = off;
	EXECUTE format('SELECT string_agg(s::text, '' '') FROM (SELECT * FROM %s ORDER BY %s, id LIMIT %s) s', source, keys, n) INTO stocks;
	SET LOCAL pg_gpusort.enable = on;
	PERFORM set_config('pg_gpusort.debug_require', require, true);
	RETURN method || CASE WHEN ours IS DISTINCT FROM stocks THEN ', other rows: ' || left(ours, 300) || E'\n' || left(stocks, 300) ELSE '' END;
END $$;

-- in memory as in stock PostgreSQL: no file can be written
SET temp_file_limit = 0;
SET work_mem = '2MB';
SELECT keys, n, check_top(keys, n::text) FROM (VALUES ('up', 1), ('down', 1), ('t', 1), ('up', 600), ('down', 600), ('random', 600),
	('few', 600), ('one', 600), ('nulls', 600), ('nulls DESC', 600), ('nulls NULLS FIRST', 600), ('t', 600), ('t DESC NULLS LAST', 600),
	('n', 600), ('few DESC, t', 600), ('one, nulls', 600), ('down', 5000), ('random', 5000), ('few', 5000), ('t', 5000)) v(keys, n);
SET work_mem = '64kB';
SELECT keys, check_top(keys, '100') FROM unnest('{down,random,few,t}'::text[]) keys;
SET work_mem = '64MB';
SELECT check_top('random', '7000'), check_top('random', '29999'), check_top('random', '30000');
-- and if the estimate is right
SELECT keys, check_top(keys, '1000', 'top_rows') FROM unnest('{down,random,few,t}'::text[]) keys;
-- ties of the last row bound nothing
SELECT count(*), sum(id) FROM (SELECT * FROM more_rows ORDER BY few FETCH FIRST 600 ROWS WITH TIES) s;
RESET temp_file_limit;

-- with more rows wanted than fit in memory, and nearly as many
SET pg_gpusort.debug_require = node;
SET work_mem = '64kB';
SET pg_gpusort.debug_whole_tuples = off;
SELECT n, check_top('random', n::text, '(SELECT id, random FROM more_rows) s') FROM unnest('{1000,1400,1600,1800,2000,20000}'::int[]) n;
RESET pg_gpusort.debug_whole_tuples;
-- rows of many lengths: those wanted take more memory than all before
SET work_mem = '1MB';
SELECT n, check_top('up', n::text, '(SELECT id, down AS up, repeat(''x'', id % 3000) AS x FROM more_rows) s') FROM unnest('{10,300,500,5000}'::int[]) n;
SET work_mem = '2MB';

-- bounds that are not known before, and grow and shrink
PREPARE top_rows(int, int) AS SELECT count(*), sum(id), min(id), max(random) FROM (SELECT * FROM more_rows ORDER BY random LIMIT $1 OFFSET $2) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE top_rows(600, 0);
EXECUTE top_rows(3000, 2000);
EXECUTE top_rows(NULL, 29000);
EXECUTE top_rows(1, 0);
RESET plan_cache_mode;
DEALLOCATE top_rows;
CREATE FUNCTION check_bounds(require text) RETURNS TABLE (n int8, count int8, sum int8, last int) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('pg_gpusort.debug_require', require, true), set_config('pg_gpusort.enable', (require <> 'off')::text, true);
	RETURN QUERY SELECT v.n, s.* FROM unnest('{100,5000,600,600,599,NULL,300,601,0,1}'::int8[]) v(n),
		LATERAL (SELECT count(*), sum(l.id), max(l.random) FROM (SELECT * FROM more_rows ORDER BY random LIMIT v.n) l) s;
END $$;
SELECT * FROM check_bounds('node');
SELECT count(*) AS other FROM ((SELECT * FROM check_bounds('node')) EXCEPT (SELECT * FROM check_bounds('off'))) s;
-- cursors that move in both directions, beyond both ends
CREATE FUNCTION moves(most int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c SCROLL CURSOR FOR SELECT id FROM more_rows ORDER BY random LIMIT most;
	r int;
	result text := '';
BEGIN
	OPEN c;
	FOR i IN 1..40 LOOP
		MOVE RELATIVE (CASE WHEN i % 3 = 0 THEN -most / 3 ELSE most / 5 END) FROM c;
		FETCH PRIOR FROM c INTO r;
		result := result || coalesce(r, -1) || ' ';
	END LOOP;
	FETCH LAST FROM c INTO r;
	result := result || r;
	MOVE FORWARD ALL FROM c;
	FETCH PRIOR FROM c INTO r;
	CLOSE c;
	RETURN result || ' ' || r;
END $$;
SET pg_gpusort.debug_require = cpu;
SELECT moves(600) AS ours \gset
SELECT moves(5000) AS ours_5000 \gset
SET pg_gpusort.debug_require = off;
SET pg_gpusort.enable = off;
SELECT :'ours' = moves(600), :'ours_5000' = moves(5000);
SET pg_gpusort.enable = on;

-- the rows that were dropped are counted
SET pg_gpusort.debug_require = cpu;
CREATE TEMP TABLE before AS SELECT * FROM pg_stat_gpusort;
SELECT count(*) FROM (SELECT * FROM more_rows ORDER BY random LIMIT 600) s;
SELECT s.backend, s.sorts - b.sorts AS sorts, s.rows - b.rows AS rows FROM pg_stat_gpusort s JOIN before b USING (backend) WHERE s.sorts > b.sorts;
-- with stock ties, they are dropped as well
SET pg_gpusort.debug_require = node;
SET pg_gpusort.debug_stock_ties = on;
SELECT btrim(l) FROM explain_sorts('SELECT * FROM more_rows ORDER BY few LIMIT 600') l;
SELECT string_agg(id::text, ' ') AS ours FROM (SELECT * FROM more_rows ORDER BY few LIMIT 600) s \gset
SET pg_gpusort.debug_require = off;
SET pg_gpusort.enable = off;
SELECT :'ours' = string_agg(id::text, ' ') FROM (SELECT * FROM more_rows ORDER BY few LIMIT 600) s;
SET pg_gpusort.enable = on;
RESET pg_gpusort.debug_stock_ties;

-- each worker below a Gather Merge, and each partition, keeps the rows wanted
CREATE TABLE top_parts (LIKE top_rows) PARTITION BY LIST ((id % 2));
CREATE TABLE top_part0 PARTITION OF top_parts FOR VALUES IN (0);
CREATE TABLE top_part1 PARTITION OF top_parts FOR VALUES IN (1);
INSERT INTO top_parts SELECT * FROM top_rows;
ANALYZE top_parts;
SET pg_gpusort.debug_require = cpu;
SET temp_file_limit = 0;
SELECT check_top('random', '600', '((SELECT * FROM top_parts WHERE (id + 0) % 1 = 0 AND (id + 1) % 1 = 0)) p');
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
SET cpu_operator_cost = 1;
CREATE FUNCTION nodes(query text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(substring(l, '(Limit|Gather Merge|Gather|GpuSort|Merge Append|Append|Seq Scan)'), ' / ') FROM explain_lines(query) l
$$;
SELECT nodes('SELECT * FROM top_rows WHERE (id + 0) % 1 = 0 ORDER BY random, id LIMIT (SELECT 600)');
SET pg_gpusort.debug_require = node;
CREATE FUNCTION parallel_top(n text, source text DEFAULT 'more_rows') RETURNS TABLE (top_n boolean, other_rows boolean) LANGUAGE sql AS $$
	SELECT c ~ 'top-N', c ~ 'other rows' FROM check_top('random, id', n, source) c
$$;
SELECT n, p.* FROM unnest('{1,600}'::int[]) n, parallel_top(format('(SELECT %s)', n), 'top_rows WHERE (id + 0) % 1 = 0') p;
-- rows that go through a Gather: not more are written than are wanted
SET enable_gathermerge = off;
SET temp_file_limit = '1MB';
SELECT nodes('SELECT * FROM more_rows ORDER BY random, id LIMIT 600');
SELECT n, p.* FROM unnest('{1,600}'::int[]) n, parallel_top(n::text) p;
SELECT other_rows FROM parallel_top('3000');
SET parallel_leader_participation = on;
SELECT n, other_rows FROM unnest('{1,600}'::int[]) n, parallel_top(n::text) p;
-- also of what is on disk
RESET temp_file_limit;
SET work_mem = '64kB';
SELECT other_rows FROM parallel_top('3000');
DROP VIEW more_rows;
DROP TABLE top_rows, top_parts;
DROP FUNCTION parallel_top, check_top, check_bounds, moves, nodes;
