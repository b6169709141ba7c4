-- The last test of the regression suite: has the extension sorted at all, and
-- on the GPU, if that is where it is to sort?  Have tables been read page by page,
-- and, with parallel plans, have workers put their rows into GPU sessions, or left
-- them as runs?  Have indexes been built, and does amcheck find nothing wrong with any
-- that are left?
CREATE EXTENSION pg_gpusort;
SELECT sum(sorts) > 1000 AS used, sum(page_scans) > 100 AS page_scans,
	sum(parallel_sorts) > 100 OR current_setting('min_parallel_table_scan_size') <> '0' AS sinks,
	sum(index_builds) > 50 AS index_builds
	FROM pg_stat_gpusort
	WHERE backend = 'gpu' OR current_setting('pg_gpusort.backend') <> 'gpu';
CREATE EXTENSION amcheck;
SELECT count(*) > 20 AS sound_indexes
	FROM (SELECT bt_index_parent_check(indexrelid, true, true)
		FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
		WHERE relkind = 'i' AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree') AND
			indisvalid AND relpersistence <> 't' AND indrelid >= 16384
		OFFSET 0) s;
DROP EXTENSION amcheck;
DROP EXTENSION pg_gpusort;
