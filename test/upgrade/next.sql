/* What a next version of the extension may change.  test/t/016_update.pl installs it. */

\echo Use "ALTER EXTENSION pg_gpusort UPDATE TO 'next'" to load this file. \quit

-- A function more.
CREATE FUNCTION gpu_sort_ascending(anyarray)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_array_sort'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpu_sort_ascending(anyarray) IS
'sort the elements of an array';

-- A function that stays, with another attribute: indexes use it.
ALTER FUNCTION gpu_sort(anyarray, boolean, boolean) COST 10;

-- A view that stays, with a column more at its end: views of users use it.
CREATE OR REPLACE VIEW pg_stat_gpusort AS
	SELECT *, rows / nullif(sort_time, 0) AS rows_per_ms FROM gpusort_stat();

COMMENT ON COLUMN pg_stat_gpusort.rows_per_ms IS
'rows sorted in a millisecond';

-- A function whose columns change has to go.
DROP FUNCTION gpusort_devices();

CREATE FUNCTION gpusort_devices(OUT device integer, OUT name text,
								OUT compute_capability text,
								OUT total_memory bigint, OUT free_memory bigint,
								OUT sessions integer, OUT state text,
								OUT failures integer, OUT message text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_devices() IS
'GPUs of the GPU service, and what has become of them';

-- A privilege less.
REVOKE ALL ON FUNCTION gpusort_version() FROM PUBLIC;
