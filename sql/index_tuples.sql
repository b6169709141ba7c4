--
-- Index builds: tuples that are updated, deleted, aborted or of this transaction
-- needs: index_setup, cpu_or_gpu
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET max_parallel_maintenance_workers = 0;
\set ways '(k); (v); (k, v DESC); (v) WHERE k % 2 = 0; (id) INCLUDE (v); ((k + v)); (v) WITH (deduplicate_items = off)'

-- Chains of HOT updates: other rows stand on the page than index entries point to.
CREATE TABLE chains (id int, k int, v int, t text) WITH (fillfactor = 40);
INSERT INTO chains SELECT g, g * 7919 % 1009, g % 10, repeat('u', g % 30) FROM generate_series(1, 4000) g;
UPDATE chains SET v = v + 1 WHERE id % 3 = 0;
UPDATE chains SET v = v + 1, t = NULL WHERE id % 6 = 0;
SELECT count(*) > 1500 AS hot_updates
FROM generate_series(0, pg_relation_size('chains') / current_setting('block_size')::int8 - 1) block,
	 heap_page_items(get_raw_page('chains', block)) WHERE t_infomask2 & 32768 <> 0;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
SELECT check_build('CREATE UNIQUE INDEX built ON chains (id)');
-- pruned: line pointers that redirect
VACUUM chains;
SELECT count(*) > 500 AS redirected
FROM generate_series(0, pg_relation_size('chains') / current_setting('block_size')::int8 - 1) block,
	 heap_page_items(get_raw_page('chains', block)) WHERE lp_flags = 2;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
SELECT check_build('CREATE UNIQUE INDEX built ON chains (id)');
-- deleted, and with pages that are empty
DELETE FROM chains WHERE id % 7 = 0 OR id BETWEEN 1000 AND 2000;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
VACUUM chains;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
-- aborted
BEGIN;
UPDATE chains SET v = v + 100, k = -k WHERE id % 5 = 0;
DELETE FROM chains WHERE id % 11 = 0;
INSERT INTO chains SELECT id + 10000, k, v, t FROM chains WHERE id % 2 = 0;
ROLLBACK;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
SELECT check_build('CREATE UNIQUE INDEX built ON chains (id)');
-- keys that were updated after the last index on them was gone
UPDATE chains SET k = k + 1 WHERE id % 4 = 0;
UPDATE chains SET id = id + 10000 WHERE id % 9 = 0;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
SELECT check_build('CREATE UNIQUE INDEX built ON chains (id)');

-- Chains that are broken, since this transaction has updated the key: the index
-- is not for older snapshots, which pg_index says.
BEGIN;
UPDATE chains SET k = k + 1 WHERE id % 13 = 0;
DELETE FROM chains WHERE id % 17 = 0;
INSERT INTO chains SELECT id + 20000, k, v, t FROM chains WHERE id % 20 = 0;
SAVEPOINT s;
UPDATE chains SET v = -v WHERE id % 19 = 0;
ROLLBACK TO s;
SAVEPOINT s;
UPDATE chains SET k = k + 1000 WHERE id % 23 = 0;
RELEASE s;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
SELECT check_build('CREATE UNIQUE INDEX built ON chains (id)');
SELECT new_builds() >= 0 AS builds;
SET LOCAL pg_gpusort.min_rows = 0;
SET LOCAL pg_gpusort.debug_require = cpu;
CREATE INDEX broken ON chains (k);
SELECT indcheckxmin, new_builds() FROM pg_index WHERE indexrelid = 'broken'::regclass;
COMMIT;
SELECT bt_index_parent_check('broken', true, true);
REINDEX INDEX broken;
SELECT indcheckxmin, new_builds() FROM pg_index WHERE indexrelid = 'broken'::regclass;
DROP INDEX broken;

-- frozen rows, and those that are locked
VACUUM (FREEZE) chains;
BEGIN;
SELECT count(*) FROM (SELECT * FROM chains WHERE id % 3 = 0 FOR UPDATE) s;
SELECT count(*) FROM (SELECT * FROM chains WHERE id % 2 = 0 FOR SHARE) s;
SELECT * FROM check_builds('CREATE INDEX built ON chains', :'ways');
COMMIT;

-- An index on which much has happened is built again, in place.
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.debug_require = cpu;
CREATE INDEX busy ON chains (v, k) WITH (fillfactor = 100);
UPDATE chains SET v = v + 1;
INSERT INTO chains SELECT id + 30000, k, v, t FROM chains;
DELETE FROM chains WHERE id % 3 = 0;
SELECT new_builds();
REINDEX INDEX busy;
SELECT new_builds();
SELECT check_indexes('chains');
RESET pg_gpusort.debug_require;
DROP TABLE chains;
