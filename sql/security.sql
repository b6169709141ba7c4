--
-- Privileges, search_path, row-level security, and code of other users
-- needs: sort_setup
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpusort_alice;
DROP ROLE IF EXISTS regress_gpusort_bob;
DROP ROLE IF EXISTS regress_gpusort_monitor;
RESET client_min_messages;
CREATE ROLE regress_gpusort_alice;
CREATE ROLE regress_gpusort_bob;
CREATE ROLE regress_gpusort_monitor IN ROLE pg_monitor;
SET pg_gpusort.min_rows = 0;
SET max_parallel_workers_per_gather = 0;

-- ---- Functions ----

-- who may call what; nothing runs as its owner or may see rows before a policy
SELECT proname, prosecdef AS definer, proleakproof AS leakproof,
	   has_function_privilege('public', oid, 'EXECUTE') AS everyone,
	   has_function_privilege('pg_monitor', oid, 'EXECUTE') AS monitors
FROM pg_proc JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_gpusort')
ORDER BY proname COLLATE "C";
-- only superusers can create the extension
SELECT DISTINCT superuser, trusted FROM pg_available_extension_versions WHERE name = 'pg_gpusort';

SET ROLE regress_gpusort_alice;
SELECT pg_stat_gpusort_reset();
SELECT count(*) > 0 FROM pg_stat_gpusort;
SELECT gpu_sort(ARRAY[2, 1]);
SET ROLE regress_gpusort_monitor;
SELECT pg_stat_gpusort_reset();
RESET ROLE;

-- ---- Settings ----

-- what loads a library, takes shared memory or breaks something is not everyone's
SELECT name, CASE WHEN context IN ('sighup', 'postmaster') THEN 'server' ELSE context END AS context
FROM pg_settings
WHERE name LIKE 'pg\_gpusort.%' AND context <> 'user' AND name NOT IN ('pg_gpusort.debug_fault', 'pg_gpusort.debug_wrong') ORDER BY name COLLATE "C";
SET ROLE regress_gpusort_alice;
ALTER SYSTEM SET pg_gpusort.pool_size = '64GB';
SET pg_gpusort.max_device_memory = 0;
SET pg_gpusort.max_sessions_per_backend = 64;
SET pg_gpusort.max_sessions_per_role = 64;
SET pg_gpusort.max_device_memory_per_role = 0;
SET pg_gpusort.idle_session_timeout = 0;
LOAD '/no/such/library';
SELECT name FROM pg_settings WHERE name = 'pg_gpusort.device_library';
RESET ROLE;

-- ---- search_path of the script ----

-- what another user has put where the extension is to be is not taken for its own
BEGIN;
CREATE SCHEMA theirs;
GRANT ALL ON SCHEMA theirs TO regress_gpusort_alice;
DROP EXTENSION pg_gpusort;
SET LOCAL ROLE regress_gpusort_alice;
CREATE FUNCTION theirs.gpusort_stat(OUT backend text, OUT sorts bigint) RETURNS SETOF record
	LANGUAGE sql AS 'SELECT NULL::text, NULL::bigint';
SET LOCAL ROLE NONE;
SAVEPOINT before;
CREATE EXTENSION pg_gpusort SCHEMA theirs;
ROLLBACK TO before;
DROP FUNCTION theirs.gpusort_stat;
SET LOCAL ROLE regress_gpusort_alice;
CREATE VIEW theirs.pg_stat_gpusort_fallbacks AS SELECT 1 AS one;
SET LOCAL ROLE NONE;
SAVEPOINT before;
CREATE EXTENSION pg_gpusort SCHEMA theirs;
ROLLBACK TO before;
DROP VIEW theirs.pg_stat_gpusort_fallbacks;
-- types of the same names, in that schema and before the system's
SET LOCAL ROLE regress_gpusort_alice;
CREATE DOMAIN theirs.text AS int;
CREATE DOMAIN theirs.int8 AS int;
SET LOCAL ROLE NONE;
SET LOCAL search_path = theirs, pg_catalog;
CREATE EXTENSION pg_gpusort SCHEMA theirs;
SELECT pg_catalog.format_type(atttypid, atttypmod), pg_catalog.count(*)
FROM pg_catalog.pg_attribute WHERE attnum > 0 AND attrelid IN
	('theirs.pg_stat_gpusort'::regclass, 'theirs.pg_stat_gpusort_fallbacks'::regclass)
GROUP BY 1 ORDER BY 1;
ROLLBACK;

-- what is installed works whatever the search_path
SET search_path = pg_temp;
SELECT public.gpu_sort('{b,a}'::pg_catalog.text[] COLLATE "C");
SELECT pg_catalog.count(*) > 0 AS rows FROM public.pg_stat_gpusort;
RESET search_path;

-- ---- Row-level security and leakproofness ----

CREATE TABLE papers (id int, owner name, secret text);
INSERT INTO papers
SELECT g, CASE WHEN g % 2 = 0 THEN 'regress_gpusort_alice' ELSE 'regress_gpusort_bob' END, 'secret ' || 9 - g
FROM generate_series(1, 8) g;
ANALYZE papers;
ALTER TABLE papers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON papers USING (owner = current_user);
CREATE VIEW even_papers WITH (security_barrier) AS SELECT * FROM papers WHERE id % 4 < 2;
GRANT SELECT ON papers, even_papers TO regress_gpusort_alice, regress_gpusort_bob;
-- tells of each row that it sees, and claims to cost nothing
CREATE FUNCTION leak(value text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
	RAISE NOTICE 'seen: %', value;
	RETURN true;
END $$;
CREATE FUNCTION leak_key(value text) RETURNS text LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
	RAISE NOTICE 'seen: %', value;
	RETURN value;
END $$;
PREPARE own_papers AS SELECT secret FROM papers ORDER BY secret COLLATE "C";
SET plan_cache_mode = force_generic_plan;

-- the same with stock sorts and with ours
\set tests 'SET ROLE regress_gpusort_alice; EXECUTE own_papers; SELECT secret FROM papers WHERE leak(secret) ORDER BY secret COLLATE "C" DESC; SELECT id FROM papers ORDER BY leak_key(secret) COLLATE "C"; SET ROLE regress_gpusort_bob; EXECUTE own_papers; SET ROLE NONE; SELECT secret FROM even_papers WHERE leak(secret) ORDER BY secret COLLATE "C"; '
SET pg_gpusort.enable = off;
:tests
SET pg_gpusort.enable = on;
SET pg_gpusort.debug_require = cpu;
:tests
-- a policy that is new counts for a plan that is old, and row_security = off is an error
ALTER POLICY own ON papers USING (owner = current_user AND id > 4);
SET ROLE regress_gpusort_alice;
EXECUTE own_papers;
SET row_security = off;
EXECUTE own_papers;
RESET row_security;
-- without the privilege there is nothing to sort
RESET ROLE;
REVOKE SELECT ON papers FROM regress_gpusort_alice;
GRANT SELECT (id) ON papers TO regress_gpusort_alice;
SET ROLE regress_gpusort_alice;
EXECUTE own_papers;
SELECT id FROM papers ORDER BY secret COLLATE "C";
RESET ROLE;
DEALLOCATE own_papers;
RESET plan_cache_mode;
RESET pg_gpusort.debug_require;

-- ---- Code of a table's owner ----

-- in an index build it runs as the owner, whoever builds, and restricted
CREATE SCHEMA alices AUTHORIZATION regress_gpusort_alice;
SET ROLE regress_gpusort_alice;
CREATE TABLE alices.numbers AS SELECT g AS n FROM generate_series(1, 1000) g;
CREATE FUNCTION alices.who(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF current_user <> 'regress_gpusort_alice' THEN
		RAISE EXCEPTION 'this runs as %', current_user;
	END IF;
	RETURN n::text;
END $$;
CREATE FUNCTION alices.escape(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	PERFORM set_config('role', 'none', false);
	RETURN n::text;
END $$;
CREATE INDEX numbers_who ON alices.numbers (alices.who(n) COLLATE "C");
RESET ROLE;
SET pg_gpusort.debug_require = node;
REINDEX INDEX alices.numbers_who;
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
REINDEX INDEX alices.numbers_who;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX ON alices.numbers (alices.escape(n) COLLATE "C");
RESET max_parallel_maintenance_workers;
RESET min_parallel_table_scan_size;
RESET pg_gpusort.debug_require;

DROP SCHEMA alices CASCADE;
DROP VIEW even_papers;
DROP TABLE papers;
DROP FUNCTION leak(text);
DROP FUNCTION leak_key(text);
DROP ROLE regress_gpusort_alice;
DROP ROLE regress_gpusort_bob;
DROP ROLE regress_gpusort_monitor;
