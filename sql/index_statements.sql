--
-- Index builds: all statements that build indexes, whose results are compared with
-- those of stock PostgreSQL afterwards
-- needs: index_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SET synchronize_seqscans = off;
SET max_parallel_maintenance_workers = 0;
SELECT new_builds() >= 0 AS builds;

-- CREATE INDEX, REINDEX
CREATE TABLE numbers (id int8 NOT NULL, k int4);
INSERT INTO numbers SELECT g * 7919 % 10007, g % 100 FROM generate_series(1, 5000) g;
CREATE INDEX numbers_k ON numbers (k DESC);
SELECT new_builds(), check_indexes('numbers');
CREATE INDEX IF NOT EXISTS numbers_k ON numbers (k DESC);
SELECT new_builds();
CREATE INDEX CONCURRENTLY numbers_k2 ON numbers (k, id);
SELECT new_builds();
CREATE UNIQUE INDEX CONCURRENTLY numbers_id ON numbers (id);
SELECT new_builds();
SELECT check_indexes('numbers');
ALTER TABLE numbers ADD PRIMARY KEY USING INDEX numbers_id;
SELECT new_builds();
REINDEX INDEX numbers_k;
SELECT new_builds();
REINDEX TABLE numbers;
SELECT new_builds();
REINDEX INDEX CONCURRENTLY numbers_k;
SELECT new_builds();
REINDEX TABLE CONCURRENTLY numbers;
SELECT new_builds();
SELECT check_indexes('numbers');
SET client_min_messages = error;
CREATE SCHEMA index_schema;
CREATE TABLE index_schema.one AS SELECT g AS k FROM generate_series(1, 100) g;
CREATE TABLE index_schema.two AS SELECT g AS k FROM generate_series(1, 100) g;
CREATE INDEX one_k ON index_schema.one (k);
CREATE INDEX two_k ON index_schema.two (k);
SELECT new_builds();
REINDEX SCHEMA index_schema;
SELECT new_builds();
REINDEX SCHEMA CONCURRENTLY index_schema;
SELECT new_builds();
SELECT check_indexes('index_schema.one', 'index_schema.two');
SELECT format('REINDEX DATABASE %I', current_database()) AS reindex_database,
	   format('REINDEX DATABASE CONCURRENTLY %I', current_database()) AS reindex_database_concurrently \gset
:reindex_database;
SELECT new_builds() >= 5 AS builds;
:reindex_database_concurrently;
SELECT new_builds() >= 5 AS builds;
SELECT check_indexes('index_schema.one', 'index_schema.two', 'numbers');
DROP SCHEMA index_schema CASCADE;
RESET client_min_messages;
-- system catalogs are left to stock PostgreSQL, whatever is required
REINDEX TABLE pg_class;
REINDEX INDEX pg_index_indexrelid_index;
SELECT format('REINDEX SYSTEM %I', current_database()) AS reindex_system \gset
:reindex_system;
SELECT new_builds();
-- and so do other access methods
CREATE INDEX numbers_hash ON numbers USING hash (k);
CREATE INDEX numbers_brin ON numbers USING brin (k);
SELECT new_builds();
DROP INDEX numbers_hash, numbers_brin;

-- constraints
ALTER TABLE numbers ADD CONSTRAINT numbers_unique UNIQUE (id, k);
SELECT new_builds();
ALTER TABLE numbers ADD CONSTRAINT numbers_exclude EXCLUDE USING btree (id WITH =) DEFERRABLE;
SELECT new_builds();
CREATE TABLE constrained (id int PRIMARY KEY, k int UNIQUE, v int UNIQUE DEFERRABLE, EXCLUDE (v WITH =));
SELECT new_builds();
INSERT INTO constrained SELECT g, g * 7919 % 10007, -g FROM generate_series(1, 1000) g;
CREATE TABLE alike (LIKE constrained INCLUDING ALL);
SELECT new_builds();
SELECT check_indexes('numbers', 'alike');
INSERT INTO alike VALUES (1, 2, 3), (3, 1, 2);
INSERT INTO alike VALUES (4, 2, 3);
ALTER TABLE constrained ADD serial_id bigserial UNIQUE;
SELECT new_builds();
SELECT check_indexes('constrained');

-- rewrites
CLUSTER numbers USING numbers_k;
SELECT new_builds();
SELECT check_indexes('numbers');
CLUSTER numbers;
SELECT new_builds();
DELETE FROM numbers WHERE id % 3 = 0;
UPDATE numbers SET k = k + 1 WHERE id % 5 = 0;
VACUUM FULL numbers;
SELECT new_builds();
SELECT check_indexes('numbers');
VACUUM (FULL, ANALYZE) numbers, constrained;
SELECT new_builds();
ALTER TABLE numbers ALTER k TYPE int8;
SELECT new_builds();
SELECT check_indexes('numbers');
ALTER TABLE numbers ALTER k TYPE text COLLATE "C" USING (k % 10)::text, ADD volatile float8 DEFAULT random();
SELECT new_builds();
SELECT check_indexes('numbers');
ALTER TABLE numbers SET UNLOGGED;
SELECT new_builds();
SELECT check_indexes('numbers');
ALTER TABLE numbers SET LOGGED;
SELECT new_builds();
SELECT check_indexes('numbers');
-- files are copied
ALTER TABLE numbers SET TABLESPACE pg_default;
ALTER INDEX numbers_k SET (fillfactor = 50);
SELECT new_builds();
REINDEX INDEX numbers_k;
SELECT new_builds(), check_indexes('numbers');
TRUNCATE numbers;
SELECT new_builds();
SELECT check_indexes('numbers');
INSERT INTO numbers SELECT g * 7919 % 10007, g % 100 FROM generate_series(1, 500) g;
-- in the transaction that has created the table, in place
BEGIN;
CREATE TABLE fresh (id int PRIMARY KEY, k int);
INSERT INTO fresh SELECT g, g % 10 FROM generate_series(1, 1000) g;
CREATE INDEX fresh_k ON fresh (k);
SELECT new_builds();
TRUNCATE fresh;
SELECT new_builds();
INSERT INTO fresh SELECT g, g % 10 FROM generate_series(1, 1000) g;
REINDEX TABLE fresh;
SELECT new_builds();
COMMIT;
SELECT check_indexes('fresh');
DROP TABLE numbers, constrained, alike, fresh;

-- materialized views
CREATE MATERIALIZED VIEW squares AS SELECT g AS id, g * g % 1009 AS k FROM generate_series(1, 2000) g;
CREATE UNIQUE INDEX squares_id ON squares (id);
CREATE INDEX squares_k ON squares (k);
SELECT new_builds();
REFRESH MATERIALIZED VIEW squares;
SELECT new_builds();
SELECT check_indexes('squares');
-- rows are compared, by sorts of all kinds, and changed
SET pg_gpusort.debug_require = off;
REFRESH MATERIALIZED VIEW CONCURRENTLY squares;
SET pg_gpusort.debug_require = cpu;
SELECT new_builds();
SELECT check_indexes('squares');
REFRESH MATERIALIZED VIEW squares WITH NO DATA;
SELECT new_builds();
SELECT check_indexes('squares');
DROP MATERIALIZED VIEW squares;

-- partitioned tables
CREATE TABLE parts (id int, k int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (k);
CREATE TABLE parts_2_a PARTITION OF parts_2 FOR VALUES IN (0, 1, 2);
CREATE TABLE parts_2_b PARTITION OF parts_2 DEFAULT;
INSERT INTO parts SELECT g, g * 7919 % 7 FROM generate_series(1, 1999) g;
CREATE INDEX parts_k ON parts (k);
SELECT new_builds();
ALTER TABLE parts ADD PRIMARY KEY (id, k);
SELECT new_builds();
CREATE TABLE parts_3 (id int NOT NULL, k int NOT NULL);
INSERT INTO parts_3 SELECT g, g % 9 FROM generate_series(2000, 2999) g;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (2000) TO (3000);
SELECT new_builds();
CREATE TABLE parts_4 PARTITION OF parts FOR VALUES FROM (3000) TO (4000);
SELECT new_builds();
CREATE INDEX ON ONLY parts (k DESC);
SELECT new_builds();
CREATE INDEX CONCURRENTLY parts_1_desc ON parts_1 (k DESC);
SELECT new_builds();
REINDEX TABLE parts;
SELECT new_builds();
REINDEX INDEX parts_k;
SELECT new_builds();
REINDEX TABLE CONCURRENTLY parts;
SELECT new_builds();
SELECT check_indexes('parts_1', 'parts_2_a', 'parts_2_b', 'parts_3', 'parts_4');
TRUNCATE parts;
SELECT new_builds();
SELECT check_indexes('parts_1', 'parts_4');
DROP TABLE parts;

-- temporary tables
CREATE TEMP TABLE temporary (id int PRIMARY KEY, k int) ON COMMIT DELETE ROWS;
CREATE INDEX temporary_k ON temporary (k);
SELECT new_builds() >= 2 AS builds;
BEGIN;
INSERT INTO temporary SELECT g, g % 10 FROM generate_series(1, 1000) g;
REINDEX TABLE temporary;
SELECT new_builds();
SELECT count(*) FROM temporary WHERE k = 7;
COMMIT;
-- emptied, with its indexes built anew, however that is counted
SELECT new_builds() >= 0 AS builds, count(*) FROM temporary;
SELECT check_indexes('temporary');
DROP TABLE temporary;

-- in functions and blocks, and with an exception that is caught
CREATE TABLE inner_table AS SELECT g * 7919 % 1009 AS k FROM generate_series(1, 2000) g;
CREATE FUNCTION build_inside() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	CREATE INDEX inner_k ON inner_table (k);
	BEGIN
		CREATE UNIQUE INDEX inner_unique ON inner_table (k);
	EXCEPTION WHEN unique_violation THEN
		RAISE NOTICE '%', SQLERRM;
	END;
	EXECUTE 'CREATE INDEX inner_desc ON inner_table (k DESC)';
	RETURN 'done';
END $$;
SELECT build_inside();
SELECT new_builds() >= 2 AS builds;
DO $$ BEGIN REINDEX TABLE inner_table; END $$;
SELECT new_builds();
CREATE PROCEDURE build_in_steps() LANGUAGE plpgsql AS $$
BEGIN
	REINDEX INDEX inner_k;
	COMMIT;
	REINDEX INDEX inner_desc;
	ROLLBACK;
END $$;
CALL build_in_steps();
SELECT new_builds();
SELECT check_indexes('inner_table');
-- by an expression that builds an index itself (17 restricts the search path for it)
CREATE TABLE built_within AS SELECT g AS k FROM generate_series(1, 100) g;
CREATE FUNCTION build_within() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE INDEX within_index ON built_within (k DESC);
END $$;
CREATE FUNCTION building(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	IF k = 57 THEN
		PERFORM build_within();
	END IF;
	RETURN -k;
END $$;
UPDATE inner_table SET k = 56 WHERE k = 57 AND ctid <> (SELECT min(ctid) FROM inner_table WHERE k = 57);
VACUUM FULL inner_table;
SELECT new_builds() >= 0 AS builds;
CREATE INDEX outer_index ON inner_table (building(k));
SELECT new_builds();
SELECT check_indexes('built_within');
DROP INDEX within_index;
SELECT bt_index_parent_check('outer_index', false, true);
DROP TABLE inner_table, built_within;
DROP FUNCTION build_inside, building, build_within;
DROP PROCEDURE build_in_steps;

-- by event triggers
CREATE TABLE triggered (k int);
INSERT INTO triggered SELECT g * 7919 % 1009 FROM generate_series(1, 1000) g;
CREATE FUNCTION build_more() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	IF to_regclass('triggered_more') IS NULL AND to_regclass('triggered_k') IS NOT NULL THEN
		CREATE INDEX triggered_more ON triggered (k DESC);
	END IF;
END $$;
CREATE EVENT TRIGGER build_more ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION build_more();
CREATE INDEX triggered_k ON triggered (k);
SELECT new_builds();
DROP EVENT TRIGGER build_more;
SELECT check_indexes('triggered');
DROP TABLE triggered;
DROP FUNCTION build_more;

-- The expression of an index that fails, or a condition; then all goes on.
CREATE TABLE failing AS SELECT g AS k FROM generate_series(1, 1000) g;
CREATE INDEX failing_k ON failing ((1 / (k - 500)));
CREATE INDEX failing_k ON failing (k) WHERE 1 / (k - 700) = 0;
CREATE INDEX CONCURRENTLY failing_k ON failing ((1 / (k - 500)));
SELECT indisvalid FROM pg_index WHERE indexrelid = 'failing_k'::regclass;
DROP INDEX failing_k;
SELECT new_builds() >= 0 AS builds;
CREATE INDEX failing_k ON failing (k);
SELECT new_builds(), check_indexes('failing');

-- with workers available
SET max_parallel_maintenance_workers = 2;
ALTER TABLE failing SET (parallel_workers = 2);
CREATE INDEX failing_2 ON failing (k DESC);
REINDEX TABLE failing;
VACUUM FULL failing;
SELECT new_builds();
SELECT check_indexes('failing');
SHOW max_parallel_maintenance_workers;
SET max_parallel_maintenance_workers = 0;
REINDEX TABLE failing;
SHOW max_parallel_maintenance_workers;
SELECT new_builds();

-- What is left to stock PostgreSQL: by the settings, and with an error if that is
-- required.
SET pg_gpusort.min_rows = 1001;
REINDEX INDEX failing_k;
RESET pg_gpusort.debug_require;
REINDEX INDEX failing_k;
SELECT new_builds();
SET pg_gpusort.min_rows = 1000;
REINDEX INDEX failing_k;
SELECT new_builds();
RESET pg_gpusort.min_rows;
SET pg_gpusort.min_index_rows = 1001;
REINDEX INDEX failing_k;
SELECT new_builds();
SET pg_gpusort.min_index_rows = 1000;
REINDEX INDEX failing_k;
SELECT new_builds();
RESET pg_gpusort.min_index_rows;
SET pg_gpusort.min_rows = 1000;
SET pg_gpusort.enable_index_build = off;
REINDEX INDEX failing_k;
SELECT new_builds();
SET pg_gpusort.debug_require = node;
REINDEX INDEX failing_k;
SET pg_gpusort.debug_require = cpu;
REINDEX INDEX failing_k;
SET pg_gpusort.enable_index_build = on;
REINDEX INDEX failing_k;
SELECT new_builds();
SET pg_gpusort.debug_require = gpu;
REINDEX INDEX failing_k;
-- little memory: not a sort in memory
SET maintenance_work_mem = '1MB';
DROP INDEX failing_2;
INSERT INTO failing SELECT generate_series(1001, 50000);
SET pg_gpusort.debug_require = cpu;
REINDEX INDEX failing_k;
SET pg_gpusort.debug_require = node;
REINDEX INDEX failing_k;
SELECT new_builds();
RESET maintenance_work_mem;
RESET pg_gpusort.debug_require;
SELECT check_indexes('failing');
DROP TABLE failing;
