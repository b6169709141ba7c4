--
-- pg_stat_gpusort, pg_stat_gpusort_fallbacks, gpusort_status, gpusort_devices
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
SELECT attrelid::regclass AS view, attname, atttypid::regtype FROM pg_attribute
WHERE attrelid IN ('pg_stat_gpusort'::regclass, 'pg_stat_gpusort_fallbacks'::regclass) AND attnum > 0
ORDER BY attrelid, attnum;
SELECT name, value FROM gpusort_status() WHERE name IN ('version', 'backend', 'backend_reason', 'loaded_for');
SET pg_gpusort.backend = cpu;
SELECT value FROM gpusort_status() WHERE name = 'backend_reason';
RESET pg_gpusort.backend;
SELECT count(*) FROM gpusort_devices();

-- The counts are kept to be compared with those after the sorts: they may be
-- those of the whole server.
CREATE TEMP TABLE before AS SELECT * FROM pg_stat_gpusort;
CREATE TEMP TABLE fallbacks_before AS SELECT * FROM pg_stat_gpusort_fallbacks;
CREATE TEMP VIEW counted AS
	SELECT s.backend, s.sorts - b.sorts AS sorts, s.rows - b.rows AS rows,
		   s.bytes > b.bytes AS bytes, s.drain_time >= b.drain_time AS drain_time,
		   s.sort_time >= b.sort_time AS sort_time, s.parallel_sorts - b.parallel_sorts AS parallel_sorts,
		   s.page_scans - b.page_scans AS page_scans, s.errors - b.errors AS errors
	FROM pg_stat_gpusort s JOIN before b USING (backend);
CREATE TEMP VIEW fallbacks_counted AS
	SELECT reason, s.sorts - coalesce(b.sorts, 0) AS sorts
	FROM pg_stat_gpusort_fallbacks s LEFT JOIN fallbacks_before b USING (reason)
	WHERE s.sorts > coalesce(b.sorts, 0);

SET pg_gpusort.min_rows = 0;
SELECT count(*) FROM (SELECT g FROM generate_series(1, 1000) g ORDER BY g DESC OFFSET 0) s;
SELECT count(*) FROM (SELECT g FROM generate_series(1, 500) g ORDER BY g % 7, g OFFSET 0) s;
SET pg_gpusort.work_mem = '64kB';
SELECT count(*) FROM (SELECT g FROM generate_series(1, 5000) g ORDER BY g DESC OFFSET 0) s;
RESET pg_gpusort.work_mem;
SELECT count(*) FROM (SELECT 1 / (g - 300) FROM generate_series(1, 1000) g ORDER BY 1 OFFSET 0) s;
SELECT count(*) FROM (SELECT g FROM generate_series(1, 10) g ORDER BY to_tsvector(g::text) OFFSET 0) s;
SELECT count(*) FROM (SELECT g FROM generate_series(1, 100) g ORDER BY g LIMIT 1) s;
-- from a table, without a condition and with one
CREATE TEMP TABLE numbers AS SELECT g FROM generate_series(1, 300) g;
SELECT count(*) FROM (SELECT g FROM numbers ORDER BY g DESC OFFSET 0) s;
SELECT count(*) FROM (SELECT g FROM numbers WHERE random() >= 0 ORDER BY g DESC OFFSET 0) s;
-- index builds: one of the sorts, and one of the errors
CREATE INDEX ON numbers (g);
CREATE INDEX ON numbers ((1 / (g - 300)));
RESET pg_gpusort.min_rows;
SELECT count(*) FROM (SELECT g FROM generate_series(1, 10) g ORDER BY g OFFSET 0) s;
SET pg_gpusort.enable = off;
SELECT count(*) FROM (SELECT g FROM generate_series(1, 10) g ORDER BY g OFFSET 0) s;
SELECT * FROM counted ORDER BY backend;
SELECT * FROM fallbacks_counted ORDER BY reason;

-- arrays: by radix, by comparison, by slices; of too few elements; with an error
CREATE TEMP TABLE arrays_before AS SELECT * FROM pg_stat_gpusort;
SELECT gpu_sort(ARRAY[3, 1, NULL, 2]) AS radix, gpu_argsort(ARRAY['b', 'a'] COLLATE "C") AS positions,
	gpu_sort(ARRAY[ROW(2, 0), ROW(1, 0)]) AS comparison;
SELECT (gpu_sort_pairs(ARRAY[2, 1], ARRAY['b', 'a'])).sorted_keys;
SELECT cardinality(gpu_sort(array_agg(-g))) FROM generate_series(1, 20000) g;
SELECT gpu_sort(ARRAY[1]) AS one, gpu_argsort('{}'::int[]) AS none;
SELECT gpu_sort(ARRAY[ROW(1, 2), ROW('a'::text, 'b'::text)]);
SELECT s.backend, s.sorts - b.sorts AS sorts, s.array_sorts - b.array_sorts AS array_sorts, s.rows - b.rows AS rows,
	   s.bytes > b.bytes AS bytes, s.sort_time > b.sort_time AS sort_time, s.errors - b.errors AS errors
FROM pg_stat_gpusort s JOIN arrays_before b USING (backend) ORDER BY backend;

-- who may look, and who may reset
CREATE ROLE regress_gpusort_user;
GRANT regress_gpusort_user TO CURRENT_USER;
SET ROLE regress_gpusort_user;
SELECT count(*) FROM pg_stat_gpusort;
SELECT count(*) > 0 AS some FROM pg_stat_gpusort_fallbacks;
SELECT count(*) > 3 AS some FROM gpusort_status();
SELECT pg_stat_gpusort_reset();
RESET ROLE;
DROP ROLE regress_gpusort_user;
SELECT pg_stat_gpusort_reset();
SELECT backend, sorts, rows, bytes, drain_time, sort_time, errors FROM pg_stat_gpusort ORDER BY backend;
SELECT count(*) FROM pg_stat_gpusort_fallbacks;
SELECT count(*) FROM pg_stat_gpusort s JOIN before b USING (backend) WHERE s.stats_reset > b.stats_reset;
DROP VIEW counted, fallbacks_counted;

-- SQL objects of another build, with other columns, are not served
CREATE FUNCTION earlier_stat(OUT backend text, OUT sorts bigint, OUT rows bigint) RETURNS SETOF record LANGUAGE c AS 'pg_gpusort', 'gpusort_stat';
\set VERBOSITY default
SELECT * FROM earlier_stat();
\set VERBOSITY terse
DROP FUNCTION earlier_stat;
CREATE FUNCTION pg_temp.error_with(function name, columns text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
BEGIN
	EXECUTE format('CREATE FUNCTION pg_temp.other(%s) RETURNS SETOF record LANGUAGE c AS ''pg_gpusort'', %L', columns, function);
	message := error_of('SELECT * FROM pg_temp.other()');
	DROP FUNCTION pg_temp.other;
	RETURN message;
END $$;
SELECT proname, pg_temp.error_with(prosrc, columns || ', OUT more bigint') AS one_more,
	   pg_temp.error_with(prosrc, replace(columns, ' text', ' varchar')) AS other_types, pg_temp.error_with(prosrc, columns) AS same
FROM (SELECT proname, prosrc, pg_get_function_arguments(oid) AS columns FROM pg_proc
	  WHERE proname IN ('gpusort_devices', 'gpusort_sessions', 'gpusort_status', 'gpusort_stat', 'gpusort_stat_fallbacks', 'gpusort_progress')) f ORDER BY 1;
-- nor are those with other arguments
CREATE FUNCTION pg_temp.sort(anyarray, boolean, boolean, "limit" integer) RETURNS anyarray LANGUAGE c AS 'pg_gpusort', 'gpusort_array_sort';
CREATE FUNCTION pg_temp.argsort(anyarray, boolean, boolean, "limit" integer) RETURNS integer[] LANGUAGE c AS 'pg_gpusort', 'gpusort_array_argsort';
CREATE FUNCTION pg_temp.pairs(anyarray, anyarray, boolean, boolean, integer, OUT k anyarray, OUT v anyarray)
	LANGUAGE c AS 'pg_gpusort', 'gpusort_array_sort_pairs';
CREATE FUNCTION pg_temp.triples(anyarray, anyarray, boolean, boolean, OUT k anyarray, OUT v anyarray, OUT w anyarray)
	LANGUAGE c AS 'pg_gpusort', 'gpusort_array_sort_pairs';
CREATE FUNCTION pg_temp.add(internal, anynonarray, boolean, boolean, integer) RETURNS internal LANGUAGE c AS 'pg_gpusort', 'gpusort_sort_agg_add';
CREATE AGGREGATE pg_temp.agg(anynonarray, boolean, boolean, integer)
	(SFUNC = pg_temp.add, STYPE = internal, FINALFUNC = gpusort_sort_agg_argsort);
SELECT call, error_of(call) FROM (VALUES
	('SELECT pg_temp.sort(ARRAY[2, 1], false, false, 1)'), ('SELECT pg_temp.argsort(ARRAY[2, 1], false, false, 1)'),
	('SELECT * FROM pg_temp.pairs(ARRAY[2, 1], ARRAY[3, 4], false, false, 1)'),
	('SELECT * FROM pg_temp.triples(ARRAY[2, 1], ARRAY[3, 4], false, false)'),
	('SELECT pg_temp.agg(1, false, false, 1)')) v (call);
DROP FUNCTION pg_temp.sort, pg_temp.argsort, pg_temp.pairs, pg_temp.triples;
DROP AGGREGATE pg_temp.agg(anynonarray, boolean, boolean, integer);
DROP FUNCTION pg_temp.add;
