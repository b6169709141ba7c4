--
-- Sorts that are left to stock PostgreSQL, and the reason that is given
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY default
SET max_parallel_workers_per_gather = 0;
CREATE TABLE refused AS
	SELECT g AS i, g::text AS t, g::numeric AS n, g::text::varchar AS v, to_tsvector('simple', lpad(g::text, 4, '0')) AS a,
		   make_interval(days => g) AS iv
	FROM generate_series(1, 1000) g ORDER BY hashint4(g);
ANALYZE refused;
SET pg_gpusort.debug_require = node;

-- too few rows
EXPLAIN (COSTS OFF) SELECT * FROM refused ORDER BY i;
SET pg_gpusort.min_rows = 1001;
EXPLAIN (COSTS OFF) SELECT * FROM refused ORDER BY i;
SET pg_gpusort.min_rows = 1000;
EXPLAIN (COSTS OFF) SELECT * FROM refused ORDER BY i;

-- as many as take PostgreSQL some milliseconds: fewer if a library compares strings
RESET pg_gpusort.min_rows;
SELECT rows, error_of(format('SELECT * FROM generate_series(1, %s) i ORDER BY i', rows)) AS number,
	error_of(format('SELECT * FROM generate_series(1, %s) i ORDER BY i::text COLLATE "en-x-icu"', rows)) AS text,
	error_of(format('SELECT * FROM generate_series(1, %s) i ORDER BY i LIMIT %s', rows, rows / 20)) AS bounded
FROM (VALUES (1900), (3000), (14000), (15000), (40000)) v(rows);

-- switched off
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.enable = off;
EXPLAIN (COSTS OFF) SELECT * FROM refused ORDER BY i;
RESET pg_gpusort.enable;

-- types that have no encoding, unless they are behind others
\set VERBOSITY terse
SELECT keys, error_of('SELECT * FROM refused ORDER BY ' || keys)
FROM unnest('{a,i,"a, i",row(i),row(a),strip(a),array[a],"int4range(i, i + 1)",to_jsonb(i),"i, a",n,i + 1}'::text[]) keys;

-- the estimated size is none: such a sort uses the disk
\set VERBOSITY default
SET pg_gpusort.min_rows = 1;
SET pg_gpusort.work_mem = '64kB';
EXPLAIN (COSTS OFF) SELECT * FROM refused ORDER BY i;
SELECT * FROM explain_sorts('SELECT * FROM refused ORDER BY i');
RESET pg_gpusort.work_mem;
SET work_mem = '64kB';
EXPLAIN (COSTS OFF) SELECT * FROM refused ORDER BY i;
RESET work_mem;
SET pg_gpusort.min_rows = 0;

-- LIMIT: small ones want a top-N heap; ones that are not known yet are seen to by the node
\set VERBOSITY terse
SELECT clause, error_of('SELECT * FROM refused ORDER BY i ' || clause)
FROM unnest('{LIMIT 10,LIMIT 0,LIMIT 19,LIMIT 20,LIMIT 1000,LIMIT 5 OFFSET 10,LIMIT 10 OFFSET 20,LIMIT ALL,LIMIT NULL,OFFSET 10,LIMIT 5 OFFSET NULL,FETCH FIRST 5 ROWS ONLY,FETCH FIRST 5 ROWS WITH TIES,LIMIT (SELECT 5)}'::text[]) clause;
PREPARE with_parameter(int) AS SELECT count(*) FROM (SELECT * FROM refused ORDER BY i LIMIT $1) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE with_parameter(900);
SET plan_cache_mode = force_custom_plan;
EXECUTE with_parameter(900);
EXECUTE with_parameter(NULL);
EXECUTE with_parameter(3);
RESET plan_cache_mode;
-- the executor passes the bound through these
SELECT error_of('SELECT * FROM (SELECT * FROM refused ORDER BY i OFFSET 0) s LIMIT 5');
SELECT error_of('SELECT * FROM ((SELECT i FROM refused ORDER BY i) UNION ALL (SELECT i FROM refused ORDER BY i)) s LIMIT 5');
-- and not through these, below which all rows are wanted
SELECT error_of('SELECT i, row_number() OVER (ORDER BY i) FROM refused LIMIT 5');
SELECT error_of('SELECT DISTINCT ON (i) i, t FROM refused ORDER BY i LIMIT 5');

-- the GPU, where there is none
SET pg_gpusort.debug_require = gpu;
\set VERBOSITY default
SELECT count(*) FROM (SELECT * FROM refused ORDER BY i OFFSET 0) s;
\set VERBOSITY terse

-- with the node required, sorts below a SELECT anywhere are looked at
SET pg_gpusort.debug_require = node;
SET enable_hashagg = off;
SELECT error_of('SELECT a, count(*) FROM refused GROUP BY a');
SELECT error_of('SELECT (SELECT max(i) FROM (SELECT i FROM refused r WHERE r.i > refused.i ORDER BY a OFFSET 0) s) FROM refused');
SELECT error_of('WITH c AS MATERIALIZED (SELECT * FROM refused ORDER BY a) SELECT * FROM c');
SELECT error_of('CREATE TEMP TABLE copied AS SELECT * FROM refused ORDER BY a');
SELECT error_of('INSERT INTO refused SELECT * FROM refused ORDER BY a');
RESET enable_hashagg;

-- without it, refusals are silent and the rows are right
RESET pg_gpusort.debug_require;
SELECT array_agg(t) FROM (SELECT t FROM refused ORDER BY n DESC LIMIT 3) s;
SELECT array_agg(i) FROM (SELECT i FROM refused ORDER BY a DESC OFFSET 997) s;
DROP TABLE refused;
