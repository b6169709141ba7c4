--
-- LIMITs that are no constants
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = node;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE limited AS
	SELECT g AS id, g * 7919 % 1009 AS k, md5(g::text) AS t FROM generate_series(1, 1000) g;
ANALYZE limited;

-- How the rows of a query with a LIMIT of $1 and an OFFSET of $2 were sorted,
-- and whether they are those of stock PostgreSQL.
CREATE FUNCTION check_limit(query text, n bigint, skip bigint DEFAULT 0) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	methods text;
	arguments text := format('(%s, %s)', coalesce(n::text, 'NULL'), coalesce(skip::text, 'NULL'));
	ours text;
	stocks text;
BEGIN
	EXECUTE 'PREPARE limited_query(bigint, bigint) AS ' || query;
	FOR line IN SELECT l FROM explain_lines('EXECUTE limited_query' || arguments, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF') l
		WHERE l ~ '(GpuSort|Sort Method|Worker)' LOOP
		methods := concat_ws(' / ', methods, btrim(line, ' ->'));
	END LOOP;
	DEALLOCATE limited_query;
	EXECUTE format('PREPARE limited_query(bigint, bigint) AS SELECT string_agg(s::text, '','') FROM (%s) s', query);
	EXECUTE 'EXECUTE limited_query' || arguments INTO ours;
	DEALLOCATE limited_query;
	SET LOCAL pg_gpusort.enable = off;
	SET LOCAL pg_gpusort.debug_require = off;
	EXECUTE format('PREPARE limited_query(bigint, bigint) AS SELECT string_agg(s::text, '','') FROM (%s) s', query);
	EXECUTE 'EXECUTE limited_query' || arguments INTO stocks;
	DEALLOCATE limited_query;
	RESET pg_gpusort.enable;
	SET LOCAL pg_gpusort.debug_require = node;
	RETURN concat_ws(' / ', methods, CASE WHEN ours IS DISTINCT FROM stocks THEN ours || ' are not ' || stocks END);
END $$;
SELECT n, skip, check_limit('SELECT * FROM limited ORDER BY k LIMIT $1 OFFSET $2', n, skip)
FROM (VALUES (0, 0), (1, 0), (10, 5), (19, 0), (20, 0), (15, 5), (1000, 0), (5, 900), (NULL, 0), (10, NULL), (2000, 0),
	  (9223372036854775807, 9223372036854775807), (9223372036854775807, 3)) v(n, skip);
SELECT n, check_limit('SELECT * FROM limited ORDER BY k FETCH FIRST $1 ROWS WITH TIES', n) FROM (VALUES (10), (500)) v(n);
SELECT n, check_limit('SELECT * FROM limited ORDER BY k LIMIT (SELECT count(*) / 10 FROM limited WHERE id <= $1)', n) FROM (VALUES (1000), (99)) v(n);
-- the nodes through which the executor passes a bound, and one through which it does not
SELECT n, check_limit('SELECT * FROM (SELECT id, k FROM limited ORDER BY k OFFSET 0) s LIMIT $1', n) FROM (VALUES (7), (700)) v(n);
SELECT n, check_limit('SELECT * FROM ((SELECT id FROM limited ORDER BY k) UNION ALL (SELECT -id FROM limited ORDER BY k DESC)) s LIMIT $1', n) FROM (VALUES (7), (1300)) v(n);
SELECT n, check_limit('SELECT id + 1, (SELECT string_agg(i.id::text, $$ $$) FROM (SELECT id FROM limited WHERE id < 5 ORDER BY k OFFSET 0) i) FROM limited ORDER BY k LIMIT $1', n) FROM (VALUES (7)) v(n);
SELECT n, check_limit('SELECT id, row_number() OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) FROM limited LIMIT $1', n) FROM (VALUES (7)) v(n);
-- even few rows can be too many for memory
SET pg_gpusort.work_mem = '64kB';
SELECT check_limit('SELECT *, repeat(t, 200) FROM limited ORDER BY k LIMIT $1', 19);
RESET pg_gpusort.work_mem;

-- a bound that is another one in each rescan, above the same input
EXPLAIN (COSTS OFF) SELECT v.n, s.* FROM (VALUES (3), (900), (2), (2), (NULL), (0), (4)) v(n),
	LATERAL (SELECT count(*), sum(id) FROM (SELECT * FROM limited ORDER BY k LIMIT v.n) l) s;
SELECT v.n, s.* FROM (VALUES (3), (900), (2), (2), (NULL), (0), (4)) v(n),
	LATERAL (SELECT count(*), sum(id) FROM (SELECT * FROM limited ORDER BY k LIMIT v.n) l) s;
SET pg_gpusort.debug_require = off;
SET pg_gpusort.enable = off;
SELECT v.n, s.* FROM (VALUES (3), (900), (2), (2), (NULL), (0), (4)) v(n),
	LATERAL (SELECT count(*), sum(id) FROM (SELECT * FROM limited ORDER BY k LIMIT v.n) l) s;
RESET pg_gpusort.enable;
SET pg_gpusort.debug_require = node;
-- and one that is not: the rows are returned again
SET enable_material = off;
SELECT v.n, s.* FROM (VALUES (3), (900), (2)) v(n) LEFT JOIN
	(SELECT id, k FROM limited ORDER BY k LIMIT (SELECT 4)) s ON s.k <= v.n;
SELECT * FROM explain_sorts('SELECT v.n, s.* FROM (VALUES (3), (900), (2)) v(n) LEFT JOIN
	(SELECT id, k FROM limited ORDER BY k LIMIT (SELECT 4)) s ON s.k <= v.n');
RESET enable_material;

-- cursors, in both directions
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, id FROM limited ORDER BY k LIMIT (SELECT 4) OFFSET (SELECT 2);
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH BACKWARD ALL FROM c;
FETCH FIRST FROM c;
ROLLBACK;

-- what is required
SET pg_gpusort.debug_require = cpu;
SELECT error_of('SELECT * FROM limited ORDER BY k LIMIT (SELECT 10)');
RESET pg_gpusort.debug_require;
SET pg_gpusort.debug_require = node;

-- parallel workers that sort are told of the bound; with enable_sort = off there are no
-- paths over sorts at GpuSort's cost, and the plan has the sorts of a Gather Merge
SET enable_sort = off;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
CREATE FUNCTION same_workers(line text) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(line, '(rows=|Worker )\d+', '\1N', 'g')
$$;
SELECT n, same_workers(check_limit('SELECT id, k FROM limited WHERE id % 2 >= 0 ORDER BY k LIMIT $1', n))
FROM (VALUES (2), (700), (1)) v(n);
-- a Gather that is shut down by the Limit, and started again
SET enable_material = off;
SET pg_gpusort.debug_require = off;
CREATE FUNCTION joined(few int) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT DISTINCT same_workers(l) FROM explain_sorts('SELECT * FROM (VALUES (3), (900), (2)) v(n) LEFT JOIN
		(SELECT id, k FROM limited WHERE id % 2 >= 0 ORDER BY k LIMIT (SELECT ' || few || ')) s ON s.k <= v.n') l ORDER BY 1
$$;
SELECT joined(2);
SELECT joined(400);
DROP FUNCTION joined;
SELECT v.n, count(s.k), sum(s.k) FROM (VALUES (3), (900), (2)) v(n) LEFT JOIN
	(SELECT id, k FROM limited WHERE id % 2 >= 0 ORDER BY k LIMIT (SELECT 400)) s ON s.k <= v.n GROUP BY v.n ORDER BY v.n;
RESET enable_material;
SELECT btrim(l, ' ->') AS plan FROM explain_lines('SELECT id, k FROM limited WHERE id % 2 >= 0 ORDER BY k LIMIT (SELECT 4)') l
WHERE l ~ '(Limit|Gather|GpuSort|Seq Scan)';

-- LIMITs and OFFSETs that grow, shrink and repeat between the rescans of one subquery.  Workers of
-- PostgreSQL keep the bound of their first scan, and can return too few rows then, so the rows
-- are compared with those of stock PostgreSQL without workers.
CREATE TABLE limited_parts (LIKE limited) PARTITION BY LIST ((id % 2));
CREATE TABLE limited_part0 PARTITION OF limited_parts FOR VALUES IN (0);
CREATE TABLE limited_part1 PARTITION OF limited_parts FOR VALUES IN (1);
INSERT INTO limited_parts SELECT * FROM limited;
ANALYZE limited_parts;
-- The ids that a query returns for each of some bounds, a line for each.
CREATE FUNCTION ids_of(query text, bounds text) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT string_agg(s.ids, E''\n'' ORDER BY v.i)
		FROM (SELECT * FROM (VALUES %s) v(i, n, skip) OFFSET 0) v, LATERAL (SELECT string_agg(id::text, '','') AS ids FROM (%s) q) s', bounds, query)
$$;
-- What the plan of a query has, and in which of 3 sequences of bounds its rows differ
-- from those of stock PostgreSQL.
CREATE FUNCTION check_rescans(query text, bounds text DEFAULT '0 1 2 3 30 300 1200 NULL') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	list text;
	ours text;
	stocks text;
	workers text := current_setting('max_parallel_workers_per_gather');
BEGIN
	SELECT string_agg(DISTINCT node, ', ' ORDER BY node) INTO plan
	FROM explain_lines(ids_of(query, '(1, 1::int8, 0::int8), (2, 2, 0)')) l,
		 substring(l, '(Gather Merge|Gather|Merge Append|Append|Subquery Scan|GpuSort|WindowAgg)') node;
	PERFORM setseed(0.7);
	FOR i IN 1..3 LOOP
		SELECT string_agg(format('(%s, %s::int8, %s::int8)', j, word[1 + floor(random() * cardinality(word))::int],
				 CASE WHEN random() < 0.7 THEN 0 ELSE floor(random() * 40)::int END), ', ' ORDER BY j)
		INTO list FROM generate_series(1, 6) j, regexp_split_to_array(bounds, ' ') word;
		EXECUTE ids_of(query, list) INTO ours;
		SET LOCAL pg_gpusort.enable = off;
		SET LOCAL max_parallel_workers_per_gather = 0;
		EXECUTE ids_of(query, list) INTO stocks;
		IF ours IS DISTINCT FROM stocks THEN
			plan := plan || E'\nnot as stock: ' || list;
		END IF;
		SET LOCAL pg_gpusort.enable = on;
		PERFORM set_config('max_parallel_workers_per_gather', workers, true);
	END LOOP;
	RETURN plan;
END $$;
SET plan_cache_mode = auto;
SET cpu_operator_cost = 1;
SELECT check_rescans('SELECT id FROM limited ORDER BY k, id LIMIT v.n OFFSET v.skip');
SELECT check_rescans('SELECT id FROM limited WHERE id % 3 <> v.n % 3 ORDER BY k, id LIMIT v.n');
SELECT check_rescans('SELECT id + 0 AS id FROM (SELECT id, k, random() FROM limited ORDER BY k DESC, id OFFSET 0) s LIMIT v.n OFFSET v.skip');
SELECT check_rescans('SELECT id FROM limited ORDER BY k, id FETCH FIRST (v.n) ROWS WITH TIES', '0 1 2 3 30 300 1200');
SELECT check_rescans('SELECT id FROM limited_parts ORDER BY k, id LIMIT v.n OFFSET v.skip');
SELECT check_rescans('(SELECT id, k FROM limited ORDER BY k, id) UNION ALL (SELECT id, k FROM limited_parts ORDER BY k DESC, id) LIMIT v.n');
SELECT check_rescans('SELECT id * 10000 + row_number() OVER (ORDER BY k, id ROWS UNBOUNDED PRECEDING) AS id FROM limited LIMIT v.n OFFSET v.skip');
-- the same above a Gather
RESET enable_sort;
SET enable_gathermerge = off;
SELECT check_rescans('SELECT id FROM limited ORDER BY k, id LIMIT v.n OFFSET v.skip');
SELECT check_rescans('SELECT id FROM limited_parts ORDER BY k, id LIMIT v.n OFFSET v.skip');
RESET enable_gathermerge;
SET max_parallel_workers_per_gather = 0;
SELECT check_rescans('SELECT id FROM limited ORDER BY k, id LIMIT v.n OFFSET v.skip');
SELECT check_rescans('SELECT id FROM limited WHERE id % 3 <> v.n % 3 ORDER BY k, id LIMIT v.n');
CREATE INDEX ON limited_part0 (k, id);
DELETE FROM limited_part1 WHERE id > 500;
ANALYZE limited_parts;
SELECT check_rescans('SELECT id FROM limited_parts ORDER BY k, id LIMIT v.n OFFSET v.skip');

DROP TABLE limited, limited_parts;
DROP FUNCTION check_limit, same_workers, ids_of, check_rescans;
