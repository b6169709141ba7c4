--
-- Index builds with max_parallel_maintenance_workers = 0: they are ours, and nobody
-- sees or loses another value
-- needs: index_setup
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
SET client_min_messages = warning;
SET max_parallel_maintenance_workers = 0;
SELECT new_builds() >= 0 AS builds;

-- Functions of an index, called for rows and, with a constant, before the build
CREATE SEQUENCE looks;
CREATE FUNCTION look(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('public.looks');
	IF current_setting('max_parallel_maintenance_workers') <> '0' THEN
		RAISE EXCEPTION 'a function sees max_parallel_maintenance_workers = %',
			current_setting('max_parallel_maintenance_workers');
	END IF;
	RETURN k;
END $$;
-- Has it been called since this was asked before?
CREATE FUNCTION was_called() RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	called bool := (SELECT is_called FROM looks);
BEGIN
	PERFORM setval('looks', 1, false);
	RETURN called;
END $$;
CREATE TABLE seen AS SELECT g AS id, g * 7919 % 1009 AS k FROM generate_series(1, 1000) g;
SELECT was_called();
CREATE INDEX seen_row ON seen (look(k));
SELECT was_called(), new_builds();
CREATE INDEX seen_constant ON seen ((k + look(1)));
SELECT was_called(), new_builds();
CREATE INDEX seen_partial ON seen (id) WHERE k > look(500);
SELECT was_called(), new_builds();
CREATE INDEX CONCURRENTLY seen_row_2 ON seen (look(k), id);
SELECT was_called(), new_builds();
CREATE INDEX CONCURRENTLY seen_constant_2 ON seen ((k + look(1)), id);
SELECT was_called(), new_builds();
CREATE INDEX CONCURRENTLY seen_partial_2 ON seen (id, k) WHERE k > look(500);
SELECT was_called(), new_builds();
CREATE INDEX seen_hash ON seen USING hash (look(k));
CREATE INDEX seen_plain ON seen (k);
SELECT was_called(), new_builds();
REINDEX TABLE seen;
SELECT was_called(), new_builds();
REINDEX TABLE CONCURRENTLY seen;
SELECT was_called(), new_builds();
CLUSTER seen USING seen_plain;
SELECT was_called(), new_builds();
VACUUM FULL seen;
SELECT was_called(), new_builds();
ALTER TABLE seen ADD v float8 DEFAULT look(2) + random(), ADD w int UNIQUE;
SELECT was_called(), new_builds();
ALTER TABLE seen ALTER id TYPE int8 USING look(id::int), ADD UNIQUE (id), ADD CHECK (look(id::int) > 0);
SELECT was_called(), new_builds();
CREATE MATERIALIZED VIEW seen_view AS SELECT look(id::int) AS id FROM seen;
CREATE UNIQUE INDEX seen_view_id ON seen_view (id);
REFRESH MATERIALIZED VIEW seen_view;
SELECT was_called(), new_builds();
SHOW max_parallel_maintenance_workers;
SELECT check_indexes('seen');
DROP MATERIALIZED VIEW seen_view;

-- A function of a hash index, which is built together with a btree
CREATE FUNCTION look_hash(k int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT public.look(k)';
CREATE OPERATOR CLASS looking_hash FOR TYPE int USING hash AS OPERATOR 1 =, FUNCTION 1 look_hash(int);
CREATE TABLE hashed AS SELECT g AS k FROM generate_series(1, 100) g;
CREATE INDEX hashed_hash ON hashed USING hash (k looking_hash);
CREATE INDEX hashed_k ON hashed (k);
SELECT was_called(), new_builds();
REINDEX TABLE CONCURRENTLY hashed;
SELECT was_called(), new_builds();
DROP TABLE hashed;
DROP OPERATOR FAMILY looking_hash USING hash;
DROP FUNCTION look_hash;

-- Event triggers
CREATE FUNCTION tell() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING '% of %: %', TG_EVENT, TG_TAG, current_setting('max_parallel_maintenance_workers');
END $$;
CREATE EVENT TRIGGER tell_start ON ddl_command_start WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE', 'CREATE TABLE')
	EXECUTE FUNCTION tell();
CREATE EVENT TRIGGER tell_end ON ddl_command_end WHEN TAG IN ('CREATE INDEX', 'ALTER TABLE', 'CREATE TABLE')
	EXECUTE FUNCTION tell();
CREATE EVENT TRIGGER tell_rewrite ON table_rewrite EXECUTE FUNCTION tell();
CREATE TABLE told (id int PRIMARY KEY, k int UNIQUE);
INSERT INTO told SELECT g, -g FROM generate_series(1, 100) g;
CREATE INDEX told_k ON told (k);
CREATE INDEX CONCURRENTLY told_k_2 ON told (k, id);
ALTER TABLE told ALTER k TYPE int8, ADD UNIQUE (k, id);
CREATE TABLE told_too (LIKE told INCLUDING ALL);
SELECT new_builds();
DROP EVENT TRIGGER tell_start;
DROP EVENT TRIGGER tell_end;
DROP EVENT TRIGGER tell_rewrite;
DROP FUNCTION tell;
DROP TABLE told_too;

-- Event triggers that set it; 'setter.local' says for how long.
CREATE FUNCTION set_to_1() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('max_parallel_maintenance_workers', '1', current_setting('setter.local')::bool);
END $$;
CREATE FUNCTION set_to_0() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('max_parallel_maintenance_workers', '0', current_setting('setter.local')::bool);
END $$;
CREATE EVENT TRIGGER setter ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION set_to_1();
SET setter.local = off;
CREATE INDEX told_1 ON told (k);
SHOW max_parallel_maintenance_workers;
SET max_parallel_maintenance_workers = 0;
SET setter.local = on;
BEGIN;
CREATE INDEX told_2 ON told (k);
SHOW max_parallel_maintenance_workers;
COMMIT;
SHOW max_parallel_maintenance_workers;
CREATE INDEX CONCURRENTLY told_3 ON told (k);
SHOW max_parallel_maintenance_workers;
DROP EVENT TRIGGER setter;
CREATE EVENT TRIGGER setter ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION set_to_1();
SET setter.local = off;
CREATE INDEX told_4 ON told (k);
SHOW max_parallel_maintenance_workers;
SET max_parallel_maintenance_workers = 0;
DROP EVENT TRIGGER setter;
CREATE EVENT TRIGGER setter ON table_rewrite EXECUTE FUNCTION set_to_1();
ALTER TABLE told ALTER id TYPE int8;
SHOW max_parallel_maintenance_workers;
DROP EVENT TRIGGER setter;
SELECT new_builds() > 5 AS builds;
-- to 0 in the statement: what it says is what holds
SET max_parallel_maintenance_workers = 2;
CREATE EVENT TRIGGER setter ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION set_to_0();
CREATE INDEX told_5 ON told (k);
SHOW max_parallel_maintenance_workers;
SELECT new_builds();
SET max_parallel_maintenance_workers = 2;
SET setter.local = on;
CREATE INDEX told_6 ON told (k);
SHOW max_parallel_maintenance_workers;
SELECT new_builds();
CREATE INDEX CONCURRENTLY told_7 ON told (k);
SHOW max_parallel_maintenance_workers;
SELECT new_builds();
DROP EVENT TRIGGER setter;
SELECT check_indexes('told');

-- A value that is the session's, the transaction's, of a function or of a savepoint
SET max_parallel_maintenance_workers = 0;
BEGIN;
SET LOCAL max_parallel_maintenance_workers = 3;
SAVEPOINT s;
SET LOCAL max_parallel_maintenance_workers = 0;
CREATE INDEX told_8 ON told (k);
SHOW max_parallel_maintenance_workers;
ROLLBACK TO s;
SHOW max_parallel_maintenance_workers;
COMMIT;
SHOW max_parallel_maintenance_workers;
BEGIN;
SET max_parallel_maintenance_workers = 4;
REINDEX TABLE told;
ROLLBACK;
SHOW max_parallel_maintenance_workers;
SELECT new_builds() > 10 AS builds;
CREATE FUNCTION build_told(column_name text) RETURNS text LANGUAGE plpgsql SET max_parallel_maintenance_workers = 0 AS $$
BEGIN
	EXECUTE format('CREATE INDEX told_9 ON told (%I)', column_name);
	RETURN current_setting('max_parallel_maintenance_workers');
EXCEPTION WHEN undefined_column THEN
	RETURN SQLERRM || ', ' || current_setting('max_parallel_maintenance_workers');
END $$;
SET max_parallel_maintenance_workers = 2;
SELECT build_told('k');
SELECT build_told('nothing');
SHOW max_parallel_maintenance_workers;
SELECT new_builds();
SET max_parallel_maintenance_workers = 0;

-- after errors
CREATE UNIQUE INDEX told_10 ON told ((k % 2));
SHOW max_parallel_maintenance_workers;
CREATE UNIQUE INDEX CONCURRENTLY told_10 ON told ((k % 2));
SHOW max_parallel_maintenance_workers;
REINDEX INDEX told_10;
SHOW max_parallel_maintenance_workers;
REINDEX INDEX CONCURRENTLY told_10;
SHOW max_parallel_maintenance_workers;
BEGIN;
SAVEPOINT s;
CREATE UNIQUE INDEX told_11 ON told ((k % 2));
ROLLBACK TO s;
SHOW max_parallel_maintenance_workers;
CREATE INDEX told_11 ON told ((k % 2));
COMMIT;
SHOW max_parallel_maintenance_workers;
SELECT new_builds();

DROP TABLE told, seen;
DROP FUNCTION look, was_called, set_to_1, set_to_0, build_told;
DROP SEQUENCE looks;
