--
-- Which sorts of rows that are in order already are left to PostgreSQL
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
SET pg_gpusort.min_rows = 10000;
SET work_mem = '1MB';
SET max_parallel_workers_per_gather = 0;
-- Autovacuum must not change the statistics.  So many rows are all in the sample of
-- ANALYZE.
CREATE TABLE logged (
	id bigint, back bigint, day bigint, k8 bigint, one_more bigint, holes bigint,
	name text COLLATE "C", code varchar(20) COLLATE "C")
	WITH (autovacuum_enabled = off);
INSERT INTO logged
	SELECT g, -g, g / 100, hashint8(g), g % 7, nullif(g, 15000),
		   'name ' || lpad(g::text, 8, '0'), 'c' || lpad(g::text, 8, '0')
	FROM generate_series(1, 30000) g;
ANALYZE logged;
-- Compare the rows, too, with those of stock PostgreSQL.
CREATE FUNCTION node_of(columns text, keys text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT %s FROM logged WHERE id > 0 ORDER BY %s', columns, keys);
	rows_of text := format('SELECT md5(string_agg(a_row::text, '','')) FROM (%s) a_row', query);
	node text := CASE count_gpusorts(query) WHEN 0 THEN 'Sort' ELSE 'GpuSort' END;
	ours text;
	stocks text;
BEGIN
	EXECUTE rows_of INTO ours;
	SET LOCAL pg_gpusort.enable = off;
	EXECUTE rows_of INTO stocks;
	SET LOCAL pg_gpusort.enable = on;
	RETURN node || CASE ours WHEN stocks THEN '' ELSE ', other rows' END;
END $$;
CREATE FUNCTION show_nodes() RETURNS TABLE (keys text, node text)
LANGUAGE sql AS $$
	SELECT k, node_of('id, back, day, k8, one_more, holes', k)
	FROM unnest(ARRAY['id, one_more', 'id, one_more NULLS FIRST', 'back DESC, one_more',
					  'id, k8 DESC', 'day, id', 'k8, id', 'day, k8, id', 'one_more, id', 'holes, id',
					  'id + 0, one_more', 'day, back DESC, k8', 'day, back, k8']) WITH ORDINALITY AS u (k, n)
	ORDER BY n
$$;

-- In order are those by a column that rises and is unique, whatever follows, by one that
-- falls if the sort is descending, and by columns that rise together.
SELECT * FROM show_nodes();
-- our sort has memory, and PostgreSQL's has not
SELECT node_of('id, back, day, k8', 'id');
BEGIN;
SET LOCAL pg_gpusort.work_mem = '64MB';
SELECT node_of('id, back, day, k8', 'id');
ROLLBACK;
-- with min_rows = 0 nothing counts
BEGIN;
SET LOCAL pg_gpusort.min_rows = 0;
SELECT node_of('id, back, day, k8, one_more, holes', 'id, one_more');
ROLLBACK;
-- strings, which take stock PostgreSQL long if they are reversed; a cast that changes nothing
SELECT node_of('id, name', 'name DESC, id');
SELECT node_of('*', 'code, one_more'), node_of('*', 'name, one_more');
-- another order than that of the column: nothing is known of it
SELECT node_of('*', 'name COLLATE "POSIX", one_more'), node_of('*', 'name USING ~<~, one_more');

-- Paths are made at the cost of a GpuSort in any case, and each Sort is judged in the plan.
BEGIN;
SET LOCAL enable_hashagg = off;
SELECT explain_lines('SELECT id, one_more, k8, day, back, count(*) FROM logged GROUP BY id, one_more, k8, day, back', 'COSTS OFF');
SELECT explain_lines('SELECT k8, one_more, id, day, back, count(*) FROM logged GROUP BY k8, one_more, id, day, back', 'COSTS OFF');
SELECT explain_lines('SELECT id, day, back, holes, row_number() OVER (ORDER BY id, one_more) FROM logged', 'COSTS OFF');
ROLLBACK;

-- Few rows are expected.  There may be more above an input that takes long, unless that groups by
-- columns, which have statistics, or a LIMIT is wanted.
CREATE FUNCTION count_of_few() RETURNS SETOF int LANGUAGE sql AS $$
	SELECT count_gpusorts(q) FROM unnest(ARRAY[
		'SELECT k8 FROM logged WHERE id % 7 = one_more ORDER BY k8',
		'SELECT k8 FROM logged WHERE id % 7 = one_more ORDER BY k8 LIMIT 100',
		'SELECT one_more, count(*) FROM logged GROUP BY one_more ORDER BY one_more',
		'SELECT n, count(*) FROM (SELECT count(*) AS n FROM logged GROUP BY day) s GROUP BY n ORDER BY n'
	]) WITH ORDINALITY AS u (q, n) ORDER BY n
$$;
BEGIN;
SET LOCAL pg_gpusort.min_rows = -1;
SELECT count_of_few();
SET LOCAL cpu_operator_cost = 0.0001;
SELECT count_of_few();
ROLLBACK;
DROP FUNCTION count_of_few;

-- The reason, and a plan without statistics.
BEGIN;
SET LOCAL pg_gpusort.debug_require = node;
SELECT count(*) FROM (SELECT id, back, day, k8, one_more, holes FROM logged WHERE id > 0 ORDER BY id, one_more OFFSET 0) s;
ROLLBACK;
DELETE FROM pg_statistic WHERE starelid = 'logged'::regclass AND staattnum = 1;
SELECT node_of('id, back, day, k8, one_more, holes', 'id, one_more');

DROP TABLE logged;
DROP FUNCTION node_of, show_nodes;
