/* pg_gpusort 1.0 */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_gpusort" to load this file. \quit

--
-- Arrays
--

CREATE FUNCTION gpu_sort(anyarray, descending boolean DEFAULT false,
						 nulls_first boolean DEFAULT NULL)
RETURNS anyarray
AS 'MODULE_PATHNAME', 'gpusort_array_sort'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpu_sort(anyarray, boolean, boolean) IS
'sort the elements of an array';

CREATE FUNCTION gpu_argsort(anyarray, descending boolean DEFAULT false,
							nulls_first boolean DEFAULT NULL)
RETURNS integer[]
AS 'MODULE_PATHNAME', 'gpusort_array_argsort'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpu_argsort(anyarray, boolean, boolean) IS
'positions of the elements of an array in sorted order';

CREATE FUNCTION gpu_sort_pairs(keys anyarray, vals anycompatiblearray,
							   descending boolean DEFAULT false,
							   nulls_first boolean DEFAULT NULL,
							   OUT sorted_keys anyarray,
							   OUT sorted_vals anycompatiblearray)
AS 'MODULE_PATHNAME', 'gpusort_array_sort_pairs'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpu_sort_pairs(anyarray, anycompatiblearray, boolean, boolean) IS
'sort an array, and another one alongside';

--
-- Aggregates
--

CREATE FUNCTION gpusort_sort_agg_add(internal, anynonarray)
RETURNS internal
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_add(internal, anynonarray, boolean)
RETURNS internal
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_add(internal, anynonarray, boolean, boolean)
RETURNS internal
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_combine(internal, internal)
RETURNS internal
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_serialize(internal)
RETURNS bytea
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_deserialize(bytea, internal)
RETURNS internal
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_sort(internal, anynonarray)
RETURNS anyarray
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_sort(internal, anynonarray, boolean)
RETURNS anyarray
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_sort(internal, anynonarray, boolean, boolean)
RETURNS anyarray
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION gpusort_sort_agg_argsort(internal)
RETURNS integer[]
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE gpu_sort_agg(anynonarray) (
	SFUNC = gpusort_sort_agg_add,
	STYPE = internal,
	FINALFUNC = gpusort_sort_agg_sort,
	FINALFUNC_EXTRA,
	COMBINEFUNC = gpusort_sort_agg_combine,
	SERIALFUNC = gpusort_sort_agg_serialize,
	DESERIALFUNC = gpusort_sort_agg_deserialize,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE gpu_sort_agg(anynonarray) IS
'the values, sorted';

CREATE AGGREGATE gpu_sort_agg(anynonarray, descending boolean) (
	SFUNC = gpusort_sort_agg_add,
	STYPE = internal,
	FINALFUNC = gpusort_sort_agg_sort,
	FINALFUNC_EXTRA,
	COMBINEFUNC = gpusort_sort_agg_combine,
	SERIALFUNC = gpusort_sort_agg_serialize,
	DESERIALFUNC = gpusort_sort_agg_deserialize,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE gpu_sort_agg(anynonarray, boolean) IS
'the values, sorted';

CREATE AGGREGATE gpu_sort_agg(anynonarray, descending boolean, nulls_first boolean) (
	SFUNC = gpusort_sort_agg_add,
	STYPE = internal,
	FINALFUNC = gpusort_sort_agg_sort,
	FINALFUNC_EXTRA,
	COMBINEFUNC = gpusort_sort_agg_combine,
	SERIALFUNC = gpusort_sort_agg_serialize,
	DESERIALFUNC = gpusort_sort_agg_deserialize,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE gpu_sort_agg(anynonarray, boolean, boolean) IS
'the values, sorted';

CREATE AGGREGATE gpu_argsort_agg(anynonarray) (
	SFUNC = gpusort_sort_agg_add,
	STYPE = internal,
	FINALFUNC = gpusort_sort_agg_argsort,
	COMBINEFUNC = gpusort_sort_agg_combine,
	SERIALFUNC = gpusort_sort_agg_serialize,
	DESERIALFUNC = gpusort_sort_agg_deserialize,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE gpu_argsort_agg(anynonarray) IS
'positions of the values in sorted order';

CREATE AGGREGATE gpu_argsort_agg(anynonarray, descending boolean) (
	SFUNC = gpusort_sort_agg_add,
	STYPE = internal,
	FINALFUNC = gpusort_sort_agg_argsort,
	COMBINEFUNC = gpusort_sort_agg_combine,
	SERIALFUNC = gpusort_sort_agg_serialize,
	DESERIALFUNC = gpusort_sort_agg_deserialize,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE gpu_argsort_agg(anynonarray, boolean) IS
'positions of the values in sorted order';

CREATE AGGREGATE gpu_argsort_agg(anynonarray, descending boolean, nulls_first boolean) (
	SFUNC = gpusort_sort_agg_add,
	STYPE = internal,
	FINALFUNC = gpusort_sort_agg_argsort,
	COMBINEFUNC = gpusort_sort_agg_combine,
	SERIALFUNC = gpusort_sort_agg_serialize,
	DESERIALFUNC = gpusort_sort_agg_deserialize,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE gpu_argsort_agg(anynonarray, boolean, boolean) IS
'positions of the values in sorted order';

--
-- State and statistics
--

CREATE FUNCTION gpusort_devices(OUT ordinal integer, OUT name text,
								OUT compute_capability text,
								OUT total_memory bigint, OUT free_memory bigint,
								OUT sessions integer, OUT state text,
								OUT failures integer, OUT message text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_devices() IS
'GPUs of the GPU service, and what has become of them';

CREATE FUNCTION gpusort_status(OUT name text, OUT value text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpusort_status() IS
'version, backend in force and why, which sessions have the library';

CREATE FUNCTION gpusort_stat(OUT backend text, OUT sorts bigint,
							 OUT rows bigint, OUT bytes bigint,
							 OUT drain_time double precision,
							 OUT sort_time double precision,
							 OUT parallel_sorts bigint,
							 OUT page_scans bigint,
							 OUT index_builds bigint,
							 OUT array_sorts bigint,
							 OUT index_validations bigint,
							 OUT errors bigint,
							 OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_gpusort AS
	SELECT * FROM gpusort_stat();

CREATE FUNCTION gpusort_stat_fallbacks(OUT reason text, OUT sorts bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_gpusort_fallbacks AS
	SELECT * FROM gpusort_stat_fallbacks();

GRANT SELECT ON pg_stat_gpusort, pg_stat_gpusort_fallbacks TO PUBLIC;

CREATE FUNCTION gpusort_progress(OUT pid integer, OUT leader_pid integer,
								 OUT datid oid, OUT node integer,
								 OUT phase text, OUT rows_expected bigint,
								 OUT rows_read bigint, OUT rows_sorted bigint,
								 OUT rows_returned bigint,
								 OUT memory_bytes bigint,
								 OUT device_bytes bigint,
								 OUT file_bytes bigint,
								 OUT devices integer[],
								 OUT workers_planned integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_progress_gpusort AS
	SELECT p.pid, p.leader_pid, p.datid, d.datname, p.node, p.phase,
		   p.rows_expected, p.rows_read, p.rows_sorted, p.rows_returned,
		   p.memory_bytes, p.device_bytes, p.file_bytes, p.devices,
		   p.workers_planned
	FROM gpusort_progress() p
		LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid;

GRANT SELECT ON pg_stat_progress_gpusort TO PUBLIC;

CREATE FUNCTION pg_stat_gpusort_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpusort_stat_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

-- As for the resets of core's statistics, but for those who watch the server.
REVOKE ALL ON FUNCTION pg_stat_gpusort_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_stat_gpusort_reset() TO pg_monitor;
