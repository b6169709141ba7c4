-- The last test of the regression suite: has the extension sorted at all, and
-- on the GPU, if that is where it is to sort?  Have tables been read page by page,
-- and, with parallel plans, have workers put their rows into GPU sessions, or left
-- them as runs?
CREATE EXTENSION pg_gpusort;
SELECT sum(sorts) > 1000 AS used, sum(page_scans) > 100 AS page_scans,
	sum(parallel_sorts) > 100 OR current_setting('min_parallel_table_scan_size') <> '0' AS sinks
	FROM pg_stat_gpusort
	WHERE backend = 'gpu' OR current_setting('pg_gpusort.backend') <> 'gpu';
DROP EXTENSION pg_gpusort;
