--
-- Aggregates that need no sort of their own, since their input is sorted
-- needs: sort_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
SET work_mem = '256kB';
SET pg_gpusort.work_mem = '64MB';
SET pg_gpusort.min_rows = 0;
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = off;
CREATE TABLE agg_rows AS
	SELECT g AS id, CASE WHEN g % 11 > 0 THEN hashint8extended(g, 1) END AS k,
		   CASE WHEN g % 7 > 0 THEN (hashint8extended(g, 2) & 1023)::int END AS few,
		   (ARRAY['NaN', '-0', '0', 'Infinity', '-Infinity', '1.5', '-2', NULL])[1 + (hashint8extended(g, 3) & 7)]::float8 AS special,
		   hashint8extended(g, 4) / 1e6::float8 AS f, (hashint8extended(g, 5) & 4095) / 100::numeric AS n,
		   'name ' || (hashint8extended(g, 6) & 4095) AS s, (hashint8extended(g, 7) & 7)::int AS grp,
		   (hashint8extended(g, 8) & 2047)::int AS many, date '2000-01-01' + (hashint8extended(g, 9) & 1023)::int AS d
	FROM generate_series(1, 20000::int8) g;
VACUUM ANALYZE agg_rows;
CREATE TABLE no_rows (LIKE agg_rows);

-- The rows of a query, in any order, and how many blocks of temporary files it
-- wrote: an aggregate's own sort does not fit into this work_mem.
CREATE FUNCTION rows_of(query text, OUT result text, OUT wrote bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE format('SELECT count(*) || '' rows, '' || coalesce(sum(hash_record_extended(a_row, 0)), 0) FROM (%s) a_row', query)
	INTO result;
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	wrote := (plan->0->'Plan'->>'Temp Written Blocks')::bigint;
END $$;
CREATE FUNCTION check_aggs(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	gpusorts integer := count_gpusorts(query);
	ours record;
	stocks record;
BEGIN
	ours := rows_of(query);
	SET LOCAL pg_gpusort.enable = off;
	stocks := rows_of(query);
	SET LOCAL pg_gpusort.enable = on;
	RETURN format('%s, %s GpuSort, temporary files: %s, stock: %s',
				  CASE ours.result WHEN stocks.result THEN 'same ' || split_part(ours.result, ',', 1)
				  ELSE ours.result || ', not ' || stocks.result END,
				  gpusorts, ours.wrote > 0, stocks.wrote > 0);
END $$;
SELECT check_aggs('SELECT random() FROM agg_rows') ~ 'not';

-- DISTINCT and ORDER BY
EXPLAIN (COSTS OFF) SELECT count(DISTINCT k) FROM agg_rows;
SELECT check_aggs('SELECT count(DISTINCT k) AS c FROM agg_rows');
SELECT check_aggs('SELECT count(DISTINCT special) AS c, count(*) AS n FROM agg_rows');
SELECT check_aggs('SELECT sum(DISTINCT few) AS s, avg(DISTINCT few) AS a, count(DISTINCT few) AS c, max(id) AS m FROM agg_rows');
SELECT check_aggs('SELECT array_agg(DISTINCT few ORDER BY few DESC NULLS LAST) AS a FROM agg_rows');
SELECT check_aggs('SELECT array_agg(id ORDER BY k, id) AS a FROM agg_rows');
SELECT check_aggs('SELECT string_agg(DISTINCT s, '','') AS a, string_agg(DISTINCT s, '','') FILTER (WHERE id < 100) AS b FROM agg_rows');
SELECT check_aggs('SELECT string_agg(s, '','' ORDER BY s DESC) AS a FROM agg_rows');
SELECT check_aggs('SELECT json_agg(few ORDER BY few)::text AS a FROM agg_rows');
SELECT check_aggs('SELECT count(DISTINCT k + 1) AS c FROM agg_rows');
-- counts that do not begin with 0
CREATE AGGREGATE count_from_10(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '10');
CREATE AGGREGATE count_values_from_10("any") (SFUNC = int8inc_any, STYPE = int8, INITCOND = '10');
CREATE AGGREGATE count_from_first_value(int8) (SFUNC = int8inc_any, STYPE = int8);
SELECT check_aggs('SELECT count_values_from_10(DISTINCT few) AS a FROM agg_rows');
SELECT check_aggs('SELECT count(DISTINCT few) AS a, count_from_10(*) AS b FROM agg_rows');
SELECT check_aggs('SELECT mode() WITHIN GROUP (ORDER BY few) AS a, count_from_10(*) AS b FROM agg_rows');
SELECT split_part(check_aggs('SELECT count_from_first_value(DISTINCT k) AS a FROM agg_rows'), ',', 1);
DROP AGGREGATE count_from_10(*), count_values_from_10("any"), count_from_first_value(int8);

-- percentiles and mode, which share their values
EXPLAIN (COSTS OFF) SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM agg_rows;
SELECT check_aggs('SELECT percentile_cont(0.123) WITHIN GROUP (ORDER BY f) AS a, percentile_disc(0.5) WITHIN GROUP (ORDER BY f) AS b,
				  percentile_cont(ARRAY[[0, 0.3, NULL], [1, 0.7, 0.99]]) WITHIN GROUP (ORDER BY f) AS c,
				  percentile_disc(ARRAY[1, 0, 0.3]) WITHIN GROUP (ORDER BY f) AS d, mode() WITHIN GROUP (ORDER BY f) AS e FROM agg_rows');
SELECT check_aggs('SELECT percentile_cont(ARRAY[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]) WITHIN GROUP (ORDER BY special DESC) AS a,
				  mode() WITHIN GROUP (ORDER BY special DESC) AS m FROM agg_rows');
SELECT check_aggs('SELECT percentile_disc(0.7) WITHIN GROUP (ORDER BY d) AS a, mode() WITHIN GROUP (ORDER BY d) AS b FROM agg_rows');
SELECT check_aggs('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS a FROM agg_rows');
-- of values passed by reference
SELECT check_aggs('SELECT percentile_disc(0.3) WITHIN GROUP (ORDER BY s) AS a, mode() WITHIN GROUP (ORDER BY s) AS b,
				  percentile_disc(ARRAY[[0.9, 0.1], [NULL, 1], [0, 0.5]]) WITHIN GROUP (ORDER BY s) AS c FROM agg_rows');
SELECT check_aggs('SELECT percentile_disc(ARRAY[0, 0.25, 1]) WITHIN GROUP (ORDER BY n DESC) AS a, mode() WITHIN GROUP (ORDER BY n DESC) AS b FROM agg_rows');
SELECT check_aggs('SELECT grp, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS a, mode() WITHIN GROUP (ORDER BY n) AS b FROM agg_rows GROUP BY grp');
SELECT check_aggs('SELECT many, percentile_disc(0.5) WITHIN GROUP (ORDER BY repeat(s, grp)) AS a FROM agg_rows GROUP BY many');
SELECT check_aggs('SELECT percentile_cont(0.123) WITHIN GROUP (ORDER BY make_interval(days => few, secs => f)) AS a,
				  percentile_cont(ARRAY[0, 0.3, NULL, 1, 0.77]) WITHIN GROUP (ORDER BY make_interval(days => few, secs => f)) AS b,
				  percentile_disc(0.3) WITHIN GROUP (ORDER BY make_interval(days => few, secs => f)) AS c FROM agg_rows');
SELECT check_aggs('SELECT grp, percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY make_interval(months => few, hours => -few)) AS a FROM agg_rows GROUP BY grp');
-- of many fractions, whose product with the number of rows is rounded as in PostgreSQL
SELECT check_aggs('SELECT many, percentile_cont(many / 2100::float8) WITHIN GROUP (ORDER BY f) AS a,
				  percentile_cont(ARRAY[many / 2100::float8, 1 - many / 2099::float8]) WITHIN GROUP (ORDER BY f) AS b FROM agg_rows GROUP BY many');
SELECT split_part(check_aggs('SELECT grp > 3 AS g, percentile_disc(0.999) WITHIN GROUP (ORDER BY md5(s)::uuid) AS a, mode() WITHIN GROUP (ORDER BY md5(s)::uuid) AS b
				  FROM agg_rows GROUP BY grp > 3'), ', temporary', 1);
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY s), percentile_cont(0.5) WITHIN GROUP (ORDER BY make_interval(days => few)),
	   mode() WITHIN GROUP (ORDER BY n), percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY s) FROM no_rows;
SELECT percentile_cont(NULL) WITHIN GROUP (ORDER BY f), percentile_disc('{}'::float8[]) WITHIN GROUP (ORDER BY f),
	   percentile_cont('{}'::float8[]) WITHIN GROUP (ORDER BY f), percentile_disc(NULL::float8[]) WITHIN GROUP (ORDER BY f) FROM agg_rows;
SELECT percentile_cont(1.1) WITHIN GROUP (ORDER BY f) FROM agg_rows;
SELECT percentile_disc('NaN') WITHIN GROUP (ORDER BY f) FROM agg_rows;
SELECT percentile_cont('{0.5,-1}'::float8[]) WITHIN GROUP (ORDER BY f) FROM agg_rows;
SELECT percentile_cont(2) WITHIN GROUP (ORDER BY f) FROM agg_rows WHERE f IS NULL;
-- values that do not fit in memory
SET work_mem = '64kB';
SET pg_gpusort.work_mem = '64kB';
SELECT check_aggs('SELECT percentile_cont(ARRAY[0.9, 0.001, 0.5, 1, 0]) WITHIN GROUP (ORDER BY f) AS a, mode() WITHIN GROUP (ORDER BY f) AS b FROM agg_rows');
SELECT check_aggs('SELECT grp > 3 AS g, percentile_disc(ARRAY[0.9, 0.001, 0.5, 1, 0]) WITHIN GROUP (ORDER BY f) AS a FROM agg_rows GROUP BY grp > 3');
SELECT check_aggs('SELECT percentile_disc(ARRAY[0.9, 0.1, 1]) WITHIN GROUP (ORDER BY s) AS a, mode() WITHIN GROUP (ORDER BY n) AS b FROM agg_rows');
SELECT check_aggs('SELECT grp > 3 AS g, percentile_disc(ARRAY[0.9, 0.1, 1]) WITHIN GROUP (ORDER BY s) AS a, mode() WITHIN GROUP (ORDER BY s) AS b
				  FROM agg_rows GROUP BY grp > 3');
SET work_mem = '256kB';
SET pg_gpusort.work_mem = '64MB';

-- hypothetical-set aggregates stay stock, also beside others
EXPLAIN (COSTS OFF) SELECT dense_rank(500) WITHIN GROUP (ORDER BY few) FROM agg_rows;
SELECT check_aggs('SELECT rank(500) WITHIN GROUP (ORDER BY few) AS a, dense_rank(NULL) WITHIN GROUP (ORDER BY few) AS b,
				  percent_rank(500) WITHIN GROUP (ORDER BY few) AS c, percentile_disc(0.5) WITHIN GROUP (ORDER BY few) AS d FROM agg_rows');
SELECT check_aggs('SELECT grp, cume_dist(''name 7'') WITHIN GROUP (ORDER BY s) AS a, count(DISTINCT s) AS b FROM agg_rows GROUP BY ROLLUP (grp)');

-- groups
EXPLAIN (COSTS OFF) SELECT grp, count(DISTINCT k) FROM agg_rows GROUP BY grp ORDER BY grp;
SELECT check_aggs('SELECT many, count(DISTINCT few) AS c, array_agg(few ORDER BY few) AS a FROM agg_rows GROUP BY many');
SELECT check_aggs('SELECT many, percentile_disc(0.3) WITHIN GROUP (ORDER BY few) AS a, mode() WITHIN GROUP (ORDER BY few) AS b FROM agg_rows GROUP BY many HAVING count(*) > 5');
SELECT check_aggs('SELECT few, string_agg(DISTINCT s, ''-'') AS a, count(DISTINCT s) AS c FROM agg_rows GROUP BY few');
SELECT check_aggs('SELECT grp, few, count(DISTINCT grp) AS a, count(DISTINCT d) AS c FROM agg_rows GROUP BY grp, few');
SELECT check_aggs('SELECT grp, sum(count(DISTINCT few)) OVER (ORDER BY grp) AS a FROM agg_rows GROUP BY grp');

-- grouping sets, whose rows are sorted for each set
EXPLAIN (COSTS OFF) SELECT grp, count(DISTINCT k) FROM agg_rows GROUP BY ROLLUP (grp);
SELECT check_aggs('SELECT grp, many, count(DISTINCT few) AS a, sum(DISTINCT few) AS b, count(*) AS c FROM agg_rows GROUP BY ROLLUP (grp, many)');
SELECT check_aggs('SELECT grp, many, array_agg(id ORDER BY k, id) AS a, array_agg(DISTINCT few ORDER BY few DESC NULLS LAST) AS b,
				  json_agg(few ORDER BY few)::text AS c, string_agg(s, '','' ORDER BY s DESC, id) AS d FROM agg_rows GROUP BY ROLLUP (grp, many)');
SELECT check_aggs('SELECT grp, percentile_cont(0.123) WITHIN GROUP (ORDER BY f) AS a, percentile_disc(ARRAY[[1, 0], [NULL, 0.3]]) WITHIN GROUP (ORDER BY f) AS b,
				  mode() WITHIN GROUP (ORDER BY special) AS c, dense_rank(500) WITHIN GROUP (ORDER BY few) AS d, dense_rank(500, 7) WITHIN GROUP (ORDER BY few, id) AS e,
				  rank(500) WITHIN GROUP (ORDER BY few DESC) AS f, percentile_cont(NULL) WITHIN GROUP (ORDER BY f) AS g FROM agg_rows GROUP BY ROLLUP (grp)');
SELECT check_aggs('SELECT few, percentile_disc(0.5) WITHIN GROUP (ORDER BY s) AS a, mode() WITHIN GROUP (ORDER BY n) AS b, string_agg(DISTINCT s, ''-'') AS c,
				  min(DISTINCT s) AS d FROM agg_rows GROUP BY ROLLUP (few) HAVING count(DISTINCT s) > 3');
SELECT check_aggs('SELECT grp, array_agg(id ORDER BY k, id) FILTER (WHERE id % 3 > 0) AS a, count(DISTINCT k) FILTER (WHERE id < 0) AS b,
				  GROUPING(grp) AS c, sum(count(DISTINCT few)) OVER () AS d FROM agg_rows GROUP BY ROLLUP (grp)') ~ 'same.*files: f, stock: t';
SELECT check_aggs('SELECT count(DISTINCT grp + few) AS a, grp FROM agg_rows WHERE id < 0 GROUP BY GROUPING SETS (grp, ())');
-- sets that the executor sorts again; more memory than there is; all in arrays; few of the values in order
SELECT split_part(check_aggs('SELECT grp, d, many, count(DISTINCT k) AS a, percentile_disc(0.9) WITHIN GROUP (ORDER BY n) AS b, string_agg(DISTINCT s, '','') AS c
				  FROM agg_rows GROUP BY CUBE (grp, d), GROUPING SETS (many, ())'), ',', 1);
SET pg_gpusort.work_mem = '256kB';
SELECT check_aggs('SELECT grp, array_agg(s ORDER BY s, id) AS a, count(DISTINCT k) AS b FROM agg_rows GROUP BY ROLLUP (grp)');
SET pg_gpusort.work_mem = '64MB';
SELECT split_part(check_aggs('SELECT id / 5 AS g, few, count(DISTINCT k) AS a, array_agg(s ORDER BY s, few, n, id) AS b, percentile_disc(0.3) WITHIN GROUP (ORDER BY s) AS c
				  FROM agg_rows GROUP BY ROLLUP (id / 5, few)'), ',', 1);
SELECT split_part(check_aggs('SELECT grp, array_agg(id ORDER BY id) AS a, array_agg(id ORDER BY id DESC) AS b, count(DISTINCT grp) AS c FROM agg_rows GROUP BY ROLLUP (grp)'), ',', 1);
-- without an encoding, of other operators and collations, several arguments
SELECT split_part(check_aggs('SELECT grp, count(DISTINCT ARRAY[few, grp]) AS a, array_agg(s ORDER BY ROW(few, id)) AS b, array_agg(few ORDER BY few USING >) AS c,
				  array_agg(s ORDER BY s USING ~>~) AS d, string_agg(DISTINCT s, few::text) AS e, count(DISTINCT (s COLLATE "C")) AS f FROM agg_rows GROUP BY ROLLUP (grp)'), ',', 1);
-- each of them can be rescanned, stop early, and fail
SELECT split_part(check_aggs('SELECT x, l.* FROM generate_series(0, 8) x, LATERAL (SELECT few % 3 AS g, count(DISTINCT k) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS b,
				  array_agg(DISTINCT s) AS c FROM agg_rows WHERE grp = x GROUP BY ROLLUP (few % 3)) l'), ',', 1);
SELECT grp, count(DISTINCT k), percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM agg_rows GROUP BY ROLLUP (grp) LIMIT 1;
SELECT percentile_disc(id % 2 * 2) WITHIN GROUP (ORDER BY f) FROM agg_rows GROUP BY ROLLUP (id % 2);
-- of those that have not returned all rows, temporary files are closed: there are no warnings, and temp_file_limit allows any number of them
SET work_mem = '64kB';
SET pg_gpusort.work_mem = '64kB';
SET temp_file_limit = '1200kB';
SELECT count(*), sum(a), sum(b), sum(c) FROM (SELECT grp, count(DISTINCT k) AS a, percentile_disc(0.5) WITHIN GROUP (ORDER BY hashint8(id)) AS b,
	length(min(DISTINCT s)) AS c FROM agg_rows GROUP BY ROLLUP (grp) LIMIT 3) r;
SELECT count(*), sum(a) FROM generate_series(1, 20) x, LATERAL (SELECT grp, count(DISTINCT k) AS a FROM agg_rows WHERE id > x GROUP BY ROLLUP (grp) LIMIT 3) r;
BEGIN;
DECLARE some_groups CURSOR FOR SELECT grp, count(DISTINCT k) AS a FROM agg_rows GROUP BY ROLLUP (grp);
FETCH 2 FROM some_groups;
COMMIT;
RESET temp_file_limit;
-- and so is that of a list, when a sort takes its rows
SET pg_gpusort.work_mem = '64MB';
BEGIN;
DECLARE some_groups CURSOR FOR SELECT id > 0 AS g, count(DISTINCT CASE WHEN id < 15000 THEN id ELSE -id END) AS a FROM agg_rows GROUP BY ROLLUP (id > 0);
FETCH 1 FROM some_groups;
SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid());
ROLLBACK;
SET work_mem = '256kB';
-- they are counted: the sort of the rows, and one for each aggregate
SELECT sum(sorts) AS sorts_before, sum(rows) AS rows_before FROM pg_stat_gpusort \gset
SELECT count(*) FROM (SELECT grp, count(DISTINCT k) AS a, mode() WITHIN GROUP (ORDER BY f) AS b FROM agg_rows GROUP BY ROLLUP (grp) OFFSET 0) r WHERE a + b > -1e300;
SELECT sum(sorts) - :sorts_before AS sorts, sum(rows) - :rows_before AS rows FROM pg_stat_gpusort;

-- columns that are constant have no part in the order: either the sort serves, or none is made
SET work_mem = '64kB';
SELECT check_aggs('SELECT grp, array_agg(s ORDER BY s) AS a FROM agg_rows WHERE grp = 3 GROUP BY grp') !~ '[1-9] GpuSort, temporary files: t|not',
	   check_aggs('SELECT array_agg(s ORDER BY grp, s) AS a FROM agg_rows WHERE grp = 3') !~ '[1-9] GpuSort, temporary files: t|not',
	   check_aggs('SELECT grp, array_agg(s ORDER BY s) AS a FROM agg_rows WHERE grp = few & 7 GROUP BY grp, few & 7') !~ 'not';
SET work_mem = '256kB';
SELECT split_part(check_aggs('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY few) AS a FROM agg_rows WHERE grp = 3 GROUP BY grp'), ',', 1);
SELECT split_part(check_aggs('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY f) AS a FROM (SELECT *, 1 AS one FROM agg_rows) r WHERE id + 0 <> id GROUP BY one'), ',', 1);
SELECT split_part(check_aggs('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY f) AS a FROM (SELECT *, 1 AS one FROM agg_rows) r GROUP BY one'), ',', 1);
SELECT split_part(check_aggs('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY f) AS a FROM agg_rows WHERE id + 0 <> id'), ',', 1);

-- no rows, and groups without values
SELECT count(DISTINCT k), array_agg(k ORDER BY k), percentile_cont(0.5) WITHIN GROUP (ORDER BY f), mode() WITHIN GROUP (ORDER BY f) FROM no_rows;
SELECT check_aggs('SELECT few, percentile_cont(0.5) WITHIN GROUP (ORDER BY nullif(special, ''NaN'')) AS a FROM agg_rows WHERE special = ''NaN'' OR few < 10 GROUP BY few');

-- for aggregates that want other orders, the rows are sorted for each group; in all versions if some of the rows are not wanted
SELECT check_aggs('SELECT grp, count(DISTINCT k) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS b, mode() WITHIN GROUP (ORDER BY n) AS c,
				  percentile_disc(0.2) WITHIN GROUP (ORDER BY s) FILTER (WHERE id % 3 > 0) AS d FROM agg_rows GROUP BY grp');
SELECT check_aggs('SELECT count(DISTINCT k) FILTER (WHERE id % 9 > 0) AS a, sum(DISTINCT id) FILTER (WHERE few > 9) AS b FROM agg_rows') ~ 'same.*files: f, stock: t';
SELECT check_aggs('SELECT count(DISTINCT k) AS a, count(DISTINCT few) AS b, array_agg(id ORDER BY s, id) AS c,
				  percentile_disc(0.5) WITHIN GROUP (ORDER BY s) AS d, rank(500) WITHIN GROUP (ORDER BY few) AS e,
				  percentile_cont(0.5) WITHIN GROUP (ORDER BY f DESC) AS f, percentile_cont(0.5) WITHIN GROUP (ORDER BY d - date ''2000-01-01'') AS g FROM agg_rows');
-- the order is that whose sorts cost most: strings, or most rows; several percentiles share a sort
CREATE FUNCTION sort_key(aggregates text, groups text DEFAULT '') RETURNS text LANGUAGE sql AS $$
	SELECT substring(l, 'Sort Key: (.*)') FROM explain_lines(format('SELECT %s FROM agg_rows %s', aggregates, groups)) l WHERE l ~ 'Sort Key'
$$;
SELECT sort_key('percentile_disc(0.5) WITHIN GROUP (ORDER BY few), mode() WITHIN GROUP (ORDER BY s), percentile_cont(0.5) WITHIN GROUP (ORDER BY f)'),
	   sort_key('percentile_disc(0.5) WITHIN GROUP (ORDER BY few), percentile_disc(0.5) WITHIN GROUP (ORDER BY k)'),
	   sort_key('percentile_disc(0.5) WITHIN GROUP (ORDER BY few), percentile_disc(0.6) WITHIN GROUP (ORDER BY few), percentile_disc(0.5) WITHIN GROUP (ORDER BY k)'),
	   sort_key('mode() WITHIN GROUP (ORDER BY few), mode() WITHIN GROUP (ORDER BY s)', 'GROUP BY grp');
-- one of many orders is not worth a sort
SELECT n, (SELECT sort_key(string_agg(format('mode() WITHIN GROUP (ORDER BY few + %s)', i), ', ')) FROM generate_series(1, n) AS i) FROM (VALUES (16), (17)) AS v(n);
DROP FUNCTION sort_key;
-- rows are not reordered for these, because the order matters to another aggregate
SELECT count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), sum(special) FROM agg_rows'),
	   count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), array_agg(id) FROM agg_rows'),
	   count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), max(n) FROM agg_rows'),
	   count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), max(s), sum(n), count(s), bool_or(id > 5) FROM agg_rows'),
	   count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), max((''0/'' || id)::pg_lsn), every(id > 5) FROM agg_rows'),
	   count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), min(make_interval(id::int)) FROM agg_rows');
-- of few rows, or of volatile values, or without the nodes
SELECT count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FILTER (WHERE grp = 1) FROM agg_rows'),
	   count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f + random()) FROM agg_rows');
SET pg_gpusort.min_rows = 20001;
SELECT count_gpusorts('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM agg_rows');
SET pg_gpusort.min_rows = 0;

-- strict transition functions that begin with the first value
CREATE AGGREGATE product_of(numeric) (SFUNC = numeric_mul, STYPE = numeric);
CREATE AGGREGATE concat_of(text) (SFUNC = textcat, STYPE = text, INITCOND = '');
SELECT check_aggs('SELECT many, product_of(DISTINCT few % 9 + 1.5) AS a, min(DISTINCT few) AS b FROM agg_rows GROUP BY many');
SELECT split_part(check_aggs('SELECT many, product_of(DISTINCT few % 9 + 1.5) AS a, concat_of(DISTINCT s) AS b, max(DISTINCT k) AS c FROM agg_rows GROUP BY ROLLUP (many)'), ',', 1);
SELECT check_aggs('SELECT grp, concat_of(DISTINCT s) AS a, concat_of(s ORDER BY s) AS b FROM agg_rows GROUP BY grp');
DROP AGGREGATE product_of(numeric), concat_of(text);
-- functions in other languages, with settings of their own, or that return NULL; arguments that are NULL; states that are expanded arrays
CREATE FUNCTION append_setting(text, integer) RETURNS text LANGUAGE plpgsql SET work_mem = '64kB'
	AS $$ BEGIN RETURN concat($1, $2, current_setting('work_mem')); END $$;
CREATE FUNCTION add_or_null(integer, integer) RETURNS integer LANGUAGE sql
	AS 'SELECT CASE WHEN $2 % 3 > 0 OR $2 IS NULL THEN coalesce($1, 0) + coalesce($2, 7) END';
CREATE FUNCTION fail_at_9(integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT coalesce($1, 0) + 1 / ($2 - 9)';
CREATE AGGREGATE settings_of(integer) (SFUNC = append_setting, STYPE = text);
CREATE AGGREGATE sum_or_null(integer) (SFUNC = add_or_null, STYPE = integer);
CREATE AGGREGATE elements_of(integer) (SFUNC = array_append, STYPE = integer[]);
CREATE AGGREGATE fails_at_9(integer) (SFUNC = fail_at_9, STYPE = integer);
SELECT check_aggs('SELECT grp, settings_of(DISTINCT few % 5) AS a, sum_or_null(DISTINCT few % 5) AS b, elements_of(DISTINCT few % 5) AS c,
				  elements_of(few % 5 ORDER BY few % 5) AS d FROM agg_rows GROUP BY grp');
SELECT split_part(check_aggs('SELECT grp, settings_of(DISTINCT few % 5) AS a, sum_or_null(DISTINCT few % 5) AS b, elements_of(DISTINCT few % 5) AS c,
				  elements_of(few % 5 ORDER BY few % 5) AS d FROM agg_rows GROUP BY ROLLUP (grp)'), ',', 1);
DO $$ BEGIN
	PERFORM fails_at_9(DISTINCT few) FROM agg_rows;
EXCEPTION WHEN division_by_zero THEN
	RAISE NOTICE 'failed, and goes on with %', (SELECT count(DISTINCT few) FROM agg_rows);
END $$;
DROP AGGREGATE settings_of(integer), sum_or_null(integer), elements_of(integer), fails_at_9(integer);
DROP FUNCTION append_setting, add_or_null, fail_at_9;

-- arguments of types with other operators, several arguments, expressions of groups
SELECT check_aggs('SELECT array_agg(few ORDER BY few USING >) AS a FROM agg_rows');
SELECT split_part(check_aggs('SELECT array_agg(s ORDER BY s USING ~>~) AS a, count(DISTINCT s COLLATE "C") AS b FROM agg_rows'), ',', 1);
SELECT split_part(check_aggs('SELECT string_agg(DISTINCT s, few::text) AS a, string_agg(s, few::text ORDER BY s, few) AS b FROM agg_rows'), ',', 1);
SELECT check_aggs('SELECT grp % 4 AS g, count(DISTINCT grp % 4 + few) AS a, mode() WITHIN GROUP (ORDER BY few % 2 = 0) AS b FROM agg_rows GROUP BY grp % 4');
SELECT split_part(check_aggs('SELECT rank(3, ''name 1'') WITHIN GROUP (ORDER BY few, s) AS a, cume_dist(500) WITHIN GROUP (ORDER BY few) AS b,
				  count(DISTINCT few) AS c FROM agg_rows'), ',', 1);

-- a sort that the query asks for serves as well; an order that is too short or different does not
SELECT split_part(check_aggs('SELECT count(DISTINCT k) AS a, sum(special) AS s FROM (SELECT * FROM agg_rows WHERE special <> ''NaN'' ORDER BY k, id) r'), ',', 1);
SELECT split_part(check_aggs('SELECT array_agg(id ORDER BY few, k, id) AS a, max(special) AS m FROM (SELECT * FROM agg_rows ORDER BY few OFFSET 0) r'), ',', 1);
SELECT split_part(check_aggs('SELECT array_agg(few ORDER BY few DESC) AS a, max(special) AS m FROM (SELECT * FROM agg_rows ORDER BY few OFFSET 0) r'), ',', 1);
SELECT split_part(check_aggs('SELECT array_agg(few ORDER BY few NULLS FIRST) AS a, max(special) AS m FROM (SELECT * FROM agg_rows ORDER BY few OFFSET 0) r'), ',', 1);

-- subqueries that run again, prepared statements, subplans in aggregates, compiled expressions
SELECT check_aggs('SELECT x, a, b, c FROM generate_series(0, 8) x, LATERAL (SELECT count(DISTINCT few) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY few) AS b,
				  array_agg(DISTINCT few) AS c FROM agg_rows WHERE grp = x) l');
PREPARE distinct_ids(int) AS SELECT count(DISTINCT k), count(DISTINCT k) FILTER (WHERE id % 2 = 0) FROM agg_rows WHERE grp >= $1;
EXECUTE distinct_ids(0);
EXECUTE distinct_ids(7);
SET pg_gpusort.enable = off;
EXECUTE distinct_ids(0);
DEALLOCATE distinct_ids;
RESET pg_gpusort.enable;
-- a cursor that ends early, a subtransaction that is rolled back while values are in a file
SET work_mem = '64kB';
BEGIN;
DECLARE some_groups CURSOR FOR SELECT id > 10000 AS later, percentile_disc(0.5) WITHIN GROUP (ORDER BY id), count(DISTINCT few) FROM agg_rows GROUP BY id > 10000 ORDER BY 1;
SAVEPOINT before;
FETCH 1 FROM some_groups;
ROLLBACK TO before;
FETCH 1 FROM some_groups;
FETCH 1 FROM some_groups;
ROLLBACK;
SET work_mem = '256kB';
SELECT split_part(check_aggs('SELECT count(DISTINCT few + (SELECT min(i) FROM no_rows n(i))) AS a, max((SELECT few)) AS m FROM agg_rows'), ',', 1);
SET jit = on;
SET jit_above_cost = 0;
SELECT check_aggs('SELECT count(DISTINCT k) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY few) AS b FROM agg_rows');
SELECT check_aggs('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS b FROM agg_rows');
SELECT check_aggs('SELECT rank(500) WITHIN GROUP (ORDER BY few) AS a, cume_dist(0) WITHIN GROUP (ORDER BY k) AS b FROM agg_rows');
SELECT check_aggs('SELECT grp, rank(500) WITHIN GROUP (ORDER BY few) AS a, count(*) AS n FROM agg_rows GROUP BY ROLLUP (grp)');
SELECT check_aggs('SELECT grp, array_agg(id ORDER BY s, id) AS a, count(DISTINCT k) FILTER (WHERE id > 5) AS n FROM agg_rows GROUP BY ROLLUP (grp)');
RESET jit_above_cost;
RESET jit;

-- processes that sort together, or write runs if workers get rows in time
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT split_part(check_aggs('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS a FROM agg_rows'), ', temporary', 1);
SELECT split_part(check_aggs('SELECT count(DISTINCT k) AS a FROM agg_rows'), ', temporary', 1);
SELECT split_part(check_aggs('SELECT many, count(DISTINCT s) AS a, sum(few) AS b FROM agg_rows GROUP BY many'), ', temporary', 1);

-- expressions are computed once for each row, and what only they need is not kept with the rows; 16 and later compute them twice below a Gather Merge
SET enable_gathermerge = off;
CREATE FUNCTION dear(text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN upper($1); END';
CREATE FUNCTION kept_for(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_array(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort").Output');
END $$;
SELECT aggregates, kept_for('SELECT ' || aggregates || ' FROM agg_rows')
FROM unnest(ARRAY[
	'count(DISTINCT dear(s))', 'count(DISTINCT dear(s)), count(s)', 'count(DISTINCT dear(s)), count(dear(s))',
	'count(DISTINCT dear(s)), count(*) FILTER (WHERE s > few::text)', 'mode() WITHIN GROUP (ORDER BY dear(s))',
	'string_agg(dear(s), s ORDER BY dear(s))', 'string_agg(dear(s), grp::text ORDER BY dear(s))']) aggregates;
SELECT kept_for('SELECT count(DISTINCT dear(s)) FROM agg_rows HAVING count(s) > 0');
-- With all processes, each would compute it for sorts of its own.
SET max_parallel_workers_per_gather = 0;
SELECT kept_for('SELECT s, count(DISTINCT dear(s)) FROM agg_rows GROUP BY s');
SET max_parallel_workers_per_gather = 2;
SELECT split_part(check_aggs('SELECT grp + few AS a, count(DISTINCT dear(s)) AS b, min(few) AS c FROM agg_rows GROUP BY 1 HAVING max(dear(s)) < min(s)'), ', temporary', 1);
SET track_functions = 'all';
SELECT count(DISTINCT dear(s)), count(*) FROM agg_rows;
SELECT count(*) FROM (SELECT id FROM agg_rows ORDER BY dear(s) OFFSET 0) rows;
SELECT count(*) FROM (SELECT rank() OVER (PARTITION BY dear(s) ORDER BY id) FROM agg_rows) rows WHERE rank = 1;
SELECT count(*) FROM (SELECT dear(s), count(DISTINCT k) FROM agg_rows GROUP BY 1) groups;
RESET track_functions;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_get_function_calls('dear(text)'::regprocedure) / 20000.0 AS for_each_row;

DROP FUNCTION check_aggs, rows_of, dear, kept_for;
DROP TABLE agg_rows, no_rows;
