--
-- The settings: defaults, limits, wrong values
-- needs: sort_setup, cpu
--
LOAD 'pg_gpusort';
\set VERBOSITY default
-- a suite may have set this
SET pg_gpusort.debug_whole_tuples = auto;
SELECT name, setting, unit, context, vartype, min_val, max_val, enumvals, boot_val
FROM pg_settings WHERE name LIKE 'pg\_gpusort.%' AND name NOT IN ('pg_gpusort.debug_fault', 'pg_gpusort.debug_work', 'pg_gpusort.debug_wrong') ORDER BY name COLLATE "C";

SET pg_gpusort.enable = maybe;
SET pg_gpusort.backend = tpu;
SET pg_gpusort.debug_require = always;
SET pg_gpusort.min_rows = -2;
SET pg_gpusort.min_rows = 3000000000;
SET pg_gpusort.min_rows = 'many';
SET pg_gpusort.min_index_rows = -2;
SET pg_gpusort.work_mem = 0;
SET pg_gpusort.work_mem = 63;
SET pg_gpusort.work_mem = '1 parsec';
SET pg_gpusort.work_mem = '3TB';
SET pg_gpusort.no_such_setting = 1;

SET pg_gpusort.work_mem = 64;
SHOW pg_gpusort.work_mem;
SET pg_gpusort.work_mem = '2047GB';
SHOW pg_gpusort.work_mem;
SET pg_gpusort.work_mem = -1;
SHOW pg_gpusort.work_mem;
SET pg_gpusort.min_rows = 2147483647;
SHOW pg_gpusort.min_rows;
RESET pg_gpusort.min_rows;
SHOW pg_gpusort.min_rows;

-- every user may set them
CREATE ROLE regress_gpusort_user;
SET ROLE regress_gpusort_user;
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.backend = cpu;
SET pg_gpusort.debug_stock_ties = on;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
SELECT * FROM generate_series(1, 3) g ORDER BY g DESC;
RESET ROLE;
DROP ROLE regress_gpusort_user;
RESET pg_gpusort.backend;
RESET pg_gpusort.debug_stock_ties;

-- the settings that plans were changed by are part of EXPLAIN
DO $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (COSTS OFF, SETTINGS, FORMAT JSON)
           SELECT * FROM generate_series(1, 3) g ORDER BY g' INTO plan;
  RAISE NOTICE 'min_rows: %', plan->0->'Settings'->'pg_gpusort.min_rows';
END
$$;
-- within a transaction, a function and a subtransaction
BEGIN;
SET LOCAL pg_gpusort.enable = off;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
SAVEPOINT s;
SET LOCAL pg_gpusort.enable = on;
ROLLBACK TO s;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
COMMIT;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;

-- values that were set before the library came: good ones are taken over
\c -
SET pg_gpusort.min_rows = 0;
SET pg_gpusort.work_mem = '1MB';
LOAD 'pg_gpusort';
SHOW pg_gpusort.min_rows;
SHOW pg_gpusort.work_mem;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
-- and wrong ones are complained about
\c -
SET pg_gpusort.min_rows = 'many';
SET pg_gpusort.nothing = 1;
LOAD 'pg_gpusort';
SHOW pg_gpusort.min_rows;

-- loaded by the first call of a function, which changes no plans, and then by LOAD
\c -
SET pg_gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
SELECT value FROM gpusort_status() WHERE name = 'backend';
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
LOAD 'pg_gpusort';
EXPLAIN (COSTS OFF) SELECT * FROM generate_series(1, 3) g ORDER BY g;
