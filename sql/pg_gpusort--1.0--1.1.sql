/* pg_gpusort 1.0 to 1.1 */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_gpusort UPDATE TO '1.1'" to load this file. \quit

--
-- GPUs and their sessions
--

DROP FUNCTION gpusort_devices();

CREATE FUNCTION gpusort_devices(OUT ordinal integer, OUT name text,
								OUT compute_capability text,
								OUT total_memory bigint, OUT free_memory bigint,
								OUT sessions integer, OUT state text,
								OUT failures integer, OUT message text,
								OUT bytes_in bigint, OUT bytes_out bigint,
								OUT temperature integer,
								OUT memory_errors bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_devices_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_devices() IS
'GPUs of the GPU service, and what has become of them';

CREATE FUNCTION gpusort_sessions(OUT pid integer, OUT role regrole,
								 OUT device integer, OUT state text,
								 OUT rows bigint, OUT device_memory bigint,
								 OUT file_bytes bigint, OUT last_use timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_sessions() IS
'sessions of the GPU service, and what they hold';
