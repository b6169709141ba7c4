-- The last test of the regression suite: has the extension sorted at all?
CREATE EXTENSION pg_gpusort;
SELECT sum(sorts) > 1000 AS used FROM pg_stat_gpusort;
DROP EXTENSION pg_gpusort;
