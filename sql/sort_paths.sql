--
-- Plans that are chosen for what a GpuSort costs: groups, DISTINCT, windows,
-- merge joins
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
SET work_mem = '32MB';
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = off;
SET pg_gpusort.min_rows = 10000;
CREATE TABLE facts AS
	SELECT g AS id, (g::int8 * 7919 % 149993)::int AS many, g % 100 AS few,
		   g::int8 * 104729 % 150001 AS other, (g % 1000) / 8.0::float8 AS d, repeat('x', g % 40) AS pad
	FROM generate_series(1, 200000) g;
CREATE TABLE dims AS
	SELECT g::int8 AS id, g % 17 AS kind FROM generate_series(1, 150000) g ORDER BY hashint4(g);
CREATE TABLE small AS
	SELECT g AS id, g % 3 AS kind FROM generate_series(1, 200) g;
VACUUM ANALYZE facts, dims, small;
CREATE FUNCTION sum_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || '' rows, '' || coalesce(sum(hash_record_extended(a_row, 0)), 0) FROM (%s) a_row', query)
	INTO result;
	RETURN result;
END $$;
-- Compare the rows, in any order, with those of stock PostgreSQL.
CREATE FUNCTION check_rows(query text) RETURNS text LANGUAGE plpgsql
SET pg_gpusort.enable = on
AS $$
DECLARE
	gpusorts integer := count_gpusorts(query);
	ours text := sum_of(query);
	stocks text;
BEGIN
	SET LOCAL pg_gpusort.enable = off;
	stocks := sum_of(query);
	RETURN format('%s, %s GpuSort', CASE ours WHEN stocks THEN 'same ' || split_part(ours, ',', 1)
				  ELSE ours || ', not ' || stocks END, gpusorts);
END $$;
SELECT check_rows('SELECT random() FROM small') ~ 'not';

-- groups: many of them, few, none
EXPLAIN (COSTS OFF) SELECT many, count(*), sum(id) FROM facts GROUP BY many;
EXPLAIN (COSTS OFF) SELECT few, count(*) FROM facts GROUP BY few;
EXPLAIN (COSTS OFF) SELECT count(*) FROM facts;
SELECT check_rows('SELECT many, count(*) AS c, sum(id) AS s, avg(d) AS a FROM facts GROUP BY many');
-- a hash table with the states of aggregates needs more memory
CREATE TABLE sold AS SELECT many % 25000 AS customer, d::numeric AS total FROM facts;
ANALYZE sold;
EXPLAIN (COSTS OFF) SELECT customer, count(total) FROM sold GROUP BY customer;
EXPLAIN (COSTS OFF) SELECT customer, sum(total) FROM sold GROUP BY customer;
SELECT check_rows('SELECT customer, sum(total) AS s FROM sold GROUP BY customer');
-- no aggregate, a condition on groups, several columns, an aggregate that sorts
EXPLAIN (COSTS OFF) SELECT many, other FROM facts GROUP BY many, other;
EXPLAIN (COSTS OFF) SELECT many, few, max(d) FROM facts GROUP BY many, few HAVING max(d) > 50;
SELECT check_rows('SELECT many, few, max(d) AS m FROM facts GROUP BY many, few HAVING max(d) > 50');
SELECT check_rows('SELECT many, other FROM facts GROUP BY many, other');
SELECT check_rows('SELECT few, count(DISTINCT many) AS c FROM facts GROUP BY few ORDER BY few');
-- a text of few values: most rows would be sorted again for the next key, so aggregates sort instead
CREATE TABLE kinds AS SELECT 'kind ' || few AS kind, few, d, many FROM facts;
ANALYZE kinds;
SELECT DISTINCT keys, btrim(l) AS line FROM (VALUES ('kind'), ('few'), ('kind || d')) k (keys),
	explain_lines(format('SELECT %1$s, percentile_disc(0.3) WITHIN GROUP (ORDER BY many) FROM kinds GROUP BY %1$s', keys)) l
WHERE l ~ 'Sort Key' ORDER BY 1;
SELECT check_rows('SELECT kind, percentile_disc(0.3) WITHIN GROUP (ORDER BY many) AS p, mode() WITHIN GROUP (ORDER BY d) AS m FROM kinds GROUP BY kind');
-- the order serves twice
EXPLAIN (COSTS OFF) SELECT many, sum(id) FROM facts GROUP BY many ORDER BY many DESC;
-- grouping sets are left alone
SELECT check_rows('SELECT many, few, count(*) AS c FROM facts GROUP BY ROLLUP (many, few)');

-- DISTINCT
EXPLAIN (COSTS OFF) SELECT DISTINCT many, few FROM facts;
EXPLAIN (COSTS OFF) SELECT DISTINCT few FROM facts;
EXPLAIN (COSTS OFF) SELECT DISTINCT few, many FROM facts ORDER BY many DESC;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (many) many, id FROM facts ORDER BY many, id DESC;
SELECT check_rows('SELECT DISTINCT few, many FROM facts ORDER BY many DESC, few');
SELECT check_rows('SELECT DISTINCT ON (many) many, id FROM facts ORDER BY many, id DESC');
SELECT count(*), sum(many), sum(few) FROM (SELECT DISTINCT many, few FROM facts) s;

-- set operations: of many values and of few, with hash tables and without
EXPLAIN (COSTS OFF) SELECT many FROM facts UNION SELECT id FROM facts;
SELECT check_rows('SELECT many FROM facts UNION SELECT id FROM facts');
SELECT check_rows('SELECT few FROM facts UNION SELECT few + 1 FROM facts');
SELECT check_rows('SELECT many, few FROM facts WHERE id % 2 = 0 UNION SELECT other::int, few FROM facts UNION SELECT id, 7 FROM facts');
SELECT check_rows('SELECT few, count(*) AS n FROM facts GROUP BY few UNION SELECT id, other FROM facts');
SELECT check_rows('SELECT FROM facts UNION SELECT FROM small');
SET enable_hashagg = off;
SELECT query, check_rows(query) ~ '^same [0-9]+ rows, [1-9] GpuSort' AS same FROM (VALUES
	('SELECT many, d FROM facts INTERSECT SELECT many, d FROM facts WHERE id % 3 = 0'),
	('SELECT pad, few FROM facts INTERSECT SELECT pad, few FROM facts WHERE id % 3 = 0'),
	('SELECT few, d FROM facts INTERSECT ALL SELECT few, d FROM facts WHERE id % 3 = 0'),
	('SELECT many FROM facts EXCEPT SELECT id FROM facts'),
	('SELECT few, pad FROM facts EXCEPT ALL SELECT few, pad FROM facts WHERE id % 3 = 0'),
	('(SELECT many FROM facts UNION SELECT few FROM facts) EXCEPT SELECT id::int8 FROM facts WHERE id % 5 = 0'),
	('(SELECT many FROM facts EXCEPT SELECT few FROM facts) UNION ALL SELECT kind FROM small'),
	('SELECT other, many FROM facts EXCEPT SELECT id, kind FROM small')) v (query);
RESET enable_hashagg;

-- groups whose order nobody asks for: the keys with most values, and fixed length, come first
EXPLAIN (COSTS OFF) SELECT DISTINCT few, many FROM facts;
EXPLAIN (COSTS OFF) SELECT few, many, count(*) FROM facts GROUP BY few, many;
EXPLAIN (COSTS OFF) SELECT few, many, count(*) FROM facts GROUP BY few, many ORDER BY few;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (few, many) few, many, id FROM facts;
SELECT check_sort('SELECT * FROM (SELECT DISTINCT few, many, d FROM facts OFFSET 0) s ORDER BY few, many, d', 'few, many, d');
-- also of set operations, by the statistics of their inputs, and where the planner sorts by itself
CREATE FUNCTION sort_keys(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT DISTINCT regexp_replace(line, '(^ +|("[^"]*"|\w+)\.)', '', 'g') FROM explain_lines(query) line
	WHERE line ~ 'Sort Key'
$$;
SET work_mem = '1MB';
SELECT sort_keys('SELECT DISTINCT pad, few, many FROM facts');
SELECT sort_keys('SELECT pad, few, many, count(*) FROM facts GROUP BY pad, few, many');
SET enable_hashagg = off;
SELECT operation, sort_keys(query), check_rows(query) ~ '^same [0-9]+ rows, [1-9] GpuSort' AS same
FROM (VALUES ('UNION'), ('INTERSECT'), ('EXCEPT ALL')) o (operation),
	LATERAL (SELECT format('SELECT pad, few, many, d FROM facts %s SELECT pad, few, many, d FROM facts WHERE id %% 3 > 0', operation)) q (query);
SET work_mem = '32MB';
-- with another type, several levels, groups; not of few rows, and not if the order serves an ORDER BY
SELECT query, (SELECT bool_and(keys ~ 'few$') FROM sort_keys(query) keys) AS few_last,
	   check_rows(query) ~ '^same [0-9]+ rows, [1-9] GpuSort' AS same FROM (VALUES
	('SELECT few, many FROM facts UNION SELECT few, other FROM facts'),
	('(SELECT few, other FROM facts UNION SELECT kind, id FROM dims) EXCEPT SELECT few, many FROM facts'),
	('SELECT few, count(*) FROM facts GROUP BY few UNION SELECT few, many FROM facts'),
	('SELECT few, many FROM facts WHERE id <= 20000 UNION SELECT few, id FROM facts WHERE id <= 20000'),
	('SELECT few, many FROM facts UNION SELECT few, id FROM facts ORDER BY few, many')) v (query);
RESET enable_hashagg;

-- A hash table has only the rows of the first input, so a sort of all rows is for many of them, and
-- not for strings.
SELECT query, (SELECT bool_or(l ~ 'HashSetOp') FROM explain_lines(query) l) AS hashed FROM (VALUES
	('SELECT many FROM facts INTERSECT SELECT id FROM facts'),
	('SELECT id FROM facts WHERE id <= 20000 INTERSECT SELECT many FROM facts'),
	('SELECT id FROM facts WHERE id <= 20000 EXCEPT SELECT many FROM facts'),
	('SELECT many::text FROM facts INTERSECT SELECT id::text FROM facts')) v (query);

-- of columns that depend on each other the planner expects far too many groups;
-- its own statistics of them are believed
CREATE TABLE dependent AS
	SELECT g % 1000 AS a, g % 1000 * 7 AS b, 'x' || g % 1000 AS c, g % 1000 / 8.0::float8 AS d
	FROM generate_series(1, 300000) g;
CREATE TABLE independent AS
	SELECT (g::int8 * 7919 % 499)::int AS a, (g::int8 * 104729 % 503)::int AS b, g % 500 / 8.0::float8 AS d
	FROM generate_series(1, 300000) g;
VACUUM ANALYZE dependent, independent;
SET work_mem = '1MB';
EXPLAIN (COSTS OFF) SELECT a, b, d FROM dependent GROUP BY a, b, d;
EXPLAIN (COSTS OFF) SELECT DISTINCT a, b, c, d FROM dependent;
SELECT check_rows('SELECT a, b, d, count(*) AS n FROM dependent GROUP BY a, b, d');
SET work_mem = '32MB';
EXPLAIN (COSTS OFF) SELECT a, b, d FROM independent GROUP BY a, b, d;
CREATE STATISTICS independent_groups (ndistinct) ON a, b, d FROM independent;
ANALYZE independent;
EXPLAIN (COSTS OFF) SELECT a, b, d FROM independent GROUP BY a, b, d;
EXPLAIN (COSTS OFF) SELECT DISTINCT a, b, d FROM independent;
SELECT check_rows('SELECT a, b, d, count(*) AS n FROM independent GROUP BY a, b, d');

-- windows: a sort instead of an index, where that is expensive
CREATE INDEX facts_other ON facts (other, id);
SET random_page_cost = 6;
SET pg_gpusort.enable = off;
SELECT explain_lines('SELECT *, row_number() OVER (PARTITION BY other ORDER BY id) FROM facts');
SET pg_gpusort.enable = on;
SELECT explain_lines('SELECT *, row_number() OVER (PARTITION BY other ORDER BY id) FROM facts');
SELECT explain_lines('SELECT *, row_number() OVER (PARTITION BY other ORDER BY id), count(*) OVER (PARTITION BY few),
	rank() OVER (PARTITION BY other) FROM facts');
SELECT check_rows('SELECT other, id, row_number() OVER (PARTITION BY other ORDER BY id) AS r, count(*) OVER (PARTITION BY few) AS c,
				  rank() OVER (PARTITION BY other) AS k, pad FROM facts');
RESET random_page_cost;
DROP INDEX facts_other;

-- a scan of an index takes less than the planner charges if the table is in its order
CREATE TABLE lines AS
	SELECT g / 4 AS id, g % 4 AS line, (g % 90)::numeric AS price, repeat('x', 120) AS pad FROM generate_series(1, 200000) g;
CREATE TABLE shuffled AS SELECT * FROM lines ORDER BY hashint4(id * 4 + line);
ALTER TABLE lines ADD PRIMARY KEY (id, line);
ALTER TABLE shuffled ADD PRIMARY KEY (id, line);
VACUUM ANALYZE lines, shuffled;
SET enable_hashagg = off;
EXPLAIN (COSTS OFF) SELECT id, sum(price) FROM lines GROUP BY id HAVING sum(price) > 99;
EXPLAIN (COSTS OFF) SELECT id, sum(price) FROM shuffled GROUP BY id HAVING sum(price) > 99;
EXPLAIN (COSTS OFF) SELECT id, line, price FROM lines ORDER BY id, line;
EXPLAIN (COSTS OFF) SELECT id, line, price FROM shuffled ORDER BY id, line;
-- nor if the first column of the index has few values
CREATE TABLE days AS
	SELECT g / 40000 AS day, hashint4(g) AS code, g % 17 AS kind, repeat('x', 120) AS pad FROM generate_series(1, 200000) g;
CREATE INDEX ON days (day, code);
VACUUM ANALYZE days;
EXPLAIN (COSTS OFF) SELECT day, code, kind FROM days ORDER BY day, code;
SELECT check_rows('SELECT id, sum(price) AS s FROM lines GROUP BY id HAVING sum(price) > 99');
RESET enable_hashagg;
DROP TABLE lines, shuffled, days;

-- merge joins; not with a table that makes a small hash table
EXPLAIN (COSTS OFF) SELECT * FROM facts JOIN dims ON other = dims.id;
EXPLAIN (COSTS OFF) SELECT * FROM facts JOIN small ON many = small.id;
EXPLAIN (COSTS OFF) SELECT * FROM facts LEFT JOIN dims ON other = dims.id;
EXPLAIN (COSTS OFF) SELECT * FROM facts FULL JOIN dims ON other = dims.id AND few = kind;
EXPLAIN (COSTS OFF) SELECT * FROM facts WHERE EXISTS (SELECT FROM dims WHERE other = dims.id);
EXPLAIN (COSTS OFF) SELECT * FROM facts WHERE NOT EXISTS (SELECT FROM dims WHERE other = dims.id AND few = kind);
SELECT check_rows('SELECT facts.id, kind FROM facts JOIN dims ON other = dims.id');
SELECT check_rows('SELECT facts.id, dims.id AS did, kind FROM facts JOIN dims ON many = dims.id');
SELECT check_rows('SELECT facts.id, kind FROM facts LEFT JOIN dims ON other = dims.id AND kind < 9');
SELECT check_rows('SELECT facts.id, dims.id AS did FROM dims LEFT JOIN facts ON other = dims.id AND few > 50');
SELECT check_rows('SELECT facts.id, dims.id AS did FROM facts FULL JOIN dims ON other = dims.id AND few = kind');
SELECT check_rows('SELECT id FROM facts WHERE EXISTS (SELECT FROM dims WHERE other = dims.id)');
SELECT check_rows('SELECT id FROM facts WHERE NOT EXISTS (SELECT FROM dims WHERE other = dims.id AND few = kind)');
-- many rows to be read again, and joins above joins
EXPLAIN (COSTS OFF) SELECT count(*) FROM facts a JOIN facts b ON a.many = b.many JOIN dims ON dims.id = a.many;
SELECT check_rows('SELECT a.id AS a, b.id AS b FROM facts a JOIN facts b ON a.many = b.many JOIN dims ON dims.id = a.many WHERE a.few < 30');
SELECT check_rows('SELECT a.id AS a, b.id AS b FROM facts a JOIN facts b ON a.few = b.few AND a.d = b.d AND a.many > b.many WHERE a.id <= 20000 AND b.id <= 20000');
-- the order of a join serves a group above it
EXPLAIN (COSTS OFF) SELECT dims.id, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY dims.id;
-- few rows of a join are faster by a hash table, and so is a cursor that stops early
EXPLAIN (COSTS OFF) SELECT * FROM facts JOIN dims ON other = dims.id LIMIT 100;
BEGIN;
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT facts.id FROM facts JOIN dims ON other = dims.id;
DECLARE c CURSOR FOR SELECT facts.id FROM facts JOIN dims ON other = dims.id ORDER BY dims.id, facts.id;
FETCH 2 FROM c;
CLOSE c;
COMMIT;

-- costs that are lowered are those of all nodes: a sort costs something, and no node less than its inputs
CREATE FUNCTION costly(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 10000 AS 'BEGIN RETURN true; END';
CREATE FUNCTION strange_costs(query text) RETURNS TABLE (gpusorts bigint, strange bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN QUERY WITH RECURSIVE nodes (node, cost, inputs) AS (
			SELECT n, (n->>'Total Cost')::float8, (SELECT sum((c->>'Total Cost')::float8) FROM json_array_elements(n->'Plans') c)
			FROM (SELECT plan->0->'Plan') p (n)
		UNION ALL
			SELECT n, (n->>'Total Cost')::float8, (SELECT sum((c->>'Total Cost')::float8) FROM json_array_elements(n->'Plans') c)
			FROM nodes, json_array_elements(node->'Plans') n)
	SELECT count(*) FILTER (WHERE node->>'Custom Plan Provider' = 'GpuSort'), count(*) FILTER (WHERE cost <= inputs) FROM nodes;
END $$;
SELECT s.*, query FROM (VALUES ('SELECT * FROM facts JOIN dims ON other = dims.id'), ('SELECT * FROM facts LEFT JOIN dims ON other = dims.id'),
	('SELECT many, count(*), sum(id) FROM facts GROUP BY many'), ('SELECT DISTINCT many, few FROM facts'),
	('SELECT many FROM facts UNION SELECT id FROM facts'), ('SELECT many, count(DISTINCT d) FROM facts GROUP BY many'),
	('SELECT few, count(DISTINCT many) FROM facts WHERE costly(id) GROUP BY few')) v (query), strange_costs(query) s;
DROP FUNCTION strange_costs;

-- where no such path is made
SET pg_gpusort.min_rows = 300000;
EXPLAIN (COSTS OFF) SELECT many, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY many;
SET pg_gpusort.min_rows = 10000;
SET pg_gpusort.debug_hide = on;
EXPLAIN (COSTS OFF) SELECT many, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY many;
RESET pg_gpusort.debug_hide;
SET pg_gpusort.enable = off;
EXPLAIN (COSTS OFF) SELECT many, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY many;
RESET pg_gpusort.enable;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT many, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY many;
RESET enable_sort;
SET geqo_threshold = 2;
SELECT count_gpusorts('SELECT dims.id, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY dims.id');
RESET geqo_threshold;
SELECT count_gpusorts('SELECT dims.id, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY dims.id');
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT many, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY many;
RESET enable_mergejoin;
EXPLAIN (COSTS OFF) SELECT many, count(*) FROM facts JOIN dims ON other = dims.id GROUP BY many;
-- a key that has no encoding
EXPLAIN (COSTS OFF) SELECT count(*) FROM facts GROUP BY many::text::oidvector;

-- the parts of a partitioned table are left alone, the whole is not
CREATE TABLE halves (id int, k int) PARTITION BY RANGE (k);
CREATE TABLE half1 PARTITION OF halves FOR VALUES FROM (0) TO (75000);
CREATE TABLE half2 PARTITION OF halves FOR VALUES FROM (75000) TO (150000);
INSERT INTO halves SELECT id, many FROM facts;
ANALYZE halves;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT check_rows('SELECT a.k, count(*) AS c, sum(b.id) AS s FROM halves a JOIN halves b USING (k) GROUP BY a.k');
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
EXPLAIN (COSTS OFF) SELECT k, count(*) FROM halves GROUP BY k;

-- processes that sort their shares are not replaced by one that sorts all
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0.04;
SET pg_gpusort.enable = off;
EXPLAIN (COSTS OFF) SELECT * FROM facts ORDER BY d, id;
SET pg_gpusort.enable = on;
SELECT bool_or(l ~ 'Gather') AS parallel FROM explain_lines('SELECT * FROM facts ORDER BY d, id') l;
RESET pg_gpusort.enable;
RESET parallel_tuple_cost;
RESET parallel_setup_cost;
RESET min_parallel_table_scan_size;

DROP TABLE facts, dims, small, halves, dependent, independent;
DROP FUNCTION check_rows, sum_of;
RESET enable_incremental_sort;
RESET max_parallel_workers_per_gather;
RESET work_mem;
