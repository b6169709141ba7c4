--
-- Comments on all objects and settings, and who may call what is internal
-- needs: sort_setup
--
LOAD 'pg_gpusort';
\set VERBOSITY terse
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpusort_user;
RESET client_min_messages;

CREATE TEMP VIEW members AS
	SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object FROM pg_depend
	WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_gpusort');
SELECT count(*) > 30 AS there_are_some FROM members;

-- ---- Objects and settings without a description ----

SELECT object FROM members m JOIN pg_class c ON c.oid = m.classid
WHERE coalesce(obj_description(objid, c.relname), '') = ''
	-- the row type of a view and its array, which are members in PostgreSQL 18
	AND NOT (m.classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_class v JOIN pg_type t ON t.oid = v.reltype
														 WHERE objid IN (t.oid, t.typarray))) ORDER BY 1;
SELECT object || '.' || attname AS "column" FROM members m JOIN pg_attribute a ON a.attrelid = m.objid
WHERE classid = 'pg_class'::regclass AND attnum > 0 AND NOT attisdropped
	AND coalesce(col_description(objid, attnum), '') = '' ORDER BY 1;
SELECT name FROM pg_settings
WHERE name LIKE 'pg\_gpusort.%' AND (coalesce(short_desc, '') !~ '\.$' OR coalesce(extra_desc, '') !~ '\.$') ORDER BY 1;
-- the extension itself, and what it builds
SELECT obj_description(oid, 'pg_extension') AS extension FROM pg_extension WHERE extname = 'pg_gpusort';
SELECT short_desc FROM pg_settings WHERE name = 'pg_gpusort.enable_index_build';

-- ---- Internal functions ----

-- those with internal arguments or results, and all of an aggregate
SELECT object FROM members m JOIN pg_proc p ON p.oid = objid
WHERE classid = 'pg_proc'::regclass AND has_function_privilege('public', objid, 'EXECUTE') AND
	('internal'::regtype = ANY (proargtypes::oid[] || prorettype)
	 OR EXISTS (SELECT FROM pg_aggregate
				WHERE objid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn,
								aggmtransfn, aggminvtransfn, aggmfinalfn))) ORDER BY 1;
SELECT count(*) > 5 AS there_are_some FROM members JOIN pg_proc p ON p.oid = objid
WHERE classid = 'pg_proc'::regclass AND 'internal'::regtype = ANY (proargtypes::oid[] || prorettype);

-- aggregates work for everyone nevertheless: in one process, over sorted rows, in groups, in a window, and in parallel
CREATE ROLE regress_gpusort_user;
GRANT regress_gpusort_user TO CURRENT_USER;
CREATE TABLE described AS SELECT g % 3 AS k, g % 5 AS v FROM generate_series(1, 12) g;
CREATE TABLE more AS SELECT g % 777 AS v FROM generate_series(1, 20000) g;
ANALYZE described, more;
GRANT SELECT ON described, more TO regress_gpusort_user;
SET pg_gpusort.min_rows = 0;
SET ROLE regress_gpusort_user;
SELECT gpu_sort_agg(v), gpu_sort_agg(v, true), gpu_sort_agg(v, true, false), gpu_argsort_agg(v) FROM described;
SELECT k, gpu_sort_agg(v ORDER BY v DESC), gpu_argsort_agg(v, true ORDER BY v) FROM described GROUP BY k ORDER BY k;
SELECT DISTINCT k, gpu_sort_agg(v) OVER (PARTITION BY k), gpu_argsort_agg(v, false, true) OVER (PARTITION BY k ORDER BY v
	ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM described ORDER BY k;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT gpu_sort_agg(v), gpu_argsort_agg(v) FROM more;
SELECT gpu_sort_agg(v) = (SELECT array_agg(v ORDER BY v) FROM more) AS sorted, cardinality(gpu_argsort_agg(v)) FROM more;

RESET ROLE;
RESET max_parallel_workers_per_gather;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET pg_gpusort.min_rows;
DROP TABLE described, more;
DROP VIEW members;
DROP ROLE regress_gpusort_user;
