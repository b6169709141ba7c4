/* pg_gpusort 1.1 */

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

COMMENT ON FUNCTION gpusort_sort_agg_add(internal, anynonarray) IS
'transition function of gpu_sort_agg and gpu_argsort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_add(internal, anynonarray, boolean) IS
'transition function of gpu_sort_agg and gpu_argsort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_add(internal, anynonarray, boolean, boolean) IS
'transition function of gpu_sort_agg and gpu_argsort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_combine(internal, internal) IS
'combine function of gpu_sort_agg and gpu_argsort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_serialize(internal) IS
'serialization function of gpu_sort_agg and gpu_argsort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_deserialize(bytea, internal) IS
'deserialization function of gpu_sort_agg and gpu_argsort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_sort(internal, anynonarray) IS
'final function of gpu_sort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_sort(internal, anynonarray, boolean) IS
'final function of gpu_sort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_sort(internal, anynonarray, boolean, boolean) IS
'final function of gpu_sort_agg';
COMMENT ON FUNCTION gpusort_sort_agg_argsort(internal) IS
'final function of gpu_argsort_agg';

-- PostgreSQL asks whether the owner of an aggregate may call its functions, not the caller.
REVOKE ALL ON FUNCTION
	gpusort_sort_agg_add(internal, anynonarray),
	gpusort_sort_agg_add(internal, anynonarray, boolean),
	gpusort_sort_agg_add(internal, anynonarray, boolean, boolean),
	gpusort_sort_agg_combine(internal, internal),
	gpusort_sort_agg_serialize(internal),
	gpusort_sort_agg_deserialize(bytea, internal),
	gpusort_sort_agg_sort(internal, anynonarray),
	gpusort_sort_agg_sort(internal, anynonarray, boolean),
	gpusort_sort_agg_sort(internal, anynonarray, boolean, boolean),
	gpusort_sort_agg_argsort(internal)
FROM PUBLIC;

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

CREATE FUNCTION gpusort_version()
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT STABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_version() IS
'version, commit and date of the library that is loaded';

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

COMMENT ON FUNCTION gpusort_stat() IS
'rows of the view pg_stat_gpusort';

CREATE VIEW pg_stat_gpusort AS
	SELECT * FROM gpusort_stat();

COMMENT ON VIEW pg_stat_gpusort IS
'how many sorts, of how many rows, how fast';
COMMENT ON COLUMN pg_stat_gpusort.backend IS
'gpu, cpu, or external for sorts that continued on disk';
COMMENT ON COLUMN pg_stat_gpusort.sorts IS
'sorts done that way';
COMMENT ON COLUMN pg_stat_gpusort.rows IS
'rows sorted';
COMMENT ON COLUMN pg_stat_gpusort.bytes IS
'memory of these sorts, or disk space, added up';
COMMENT ON COLUMN pg_stat_gpusort.drain_time IS
'milliseconds of reading the input';
COMMENT ON COLUMN pg_stat_gpusort.sort_time IS
'milliseconds of sorting';
COMMENT ON COLUMN pg_stat_gpusort.parallel_sorts IS
'sorts to which several processes sent rows themselves';
COMMENT ON COLUMN pg_stat_gpusort.page_scans IS
'processes that read the rows of such sorts page by page';
COMMENT ON COLUMN pg_stat_gpusort.index_builds IS
'index builds';
COMMENT ON COLUMN pg_stat_gpusort.array_sorts IS
'sorts of arrays';
COMMENT ON COLUMN pg_stat_gpusort.index_validations IS
'validations of indexes built concurrently';
COMMENT ON COLUMN pg_stat_gpusort.errors IS
'sorts that an error or a cancel ended before their rows were sorted';
COMMENT ON COLUMN pg_stat_gpusort.stats_reset IS
'since when the counters count';

CREATE FUNCTION gpusort_stat_fallbacks(OUT reason text, OUT sorts bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION gpusort_stat_fallbacks() IS
'rows of the view pg_stat_gpusort_fallbacks';

CREATE VIEW pg_stat_gpusort_fallbacks AS
	SELECT * FROM gpusort_stat_fallbacks();

COMMENT ON VIEW pg_stat_gpusort_fallbacks IS
'sorts that were left to PostgreSQL, or not done as planned, by reason';
COMMENT ON COLUMN pg_stat_gpusort_fallbacks.reason IS
'why, as EXPLAIN shows it';
COMMENT ON COLUMN pg_stat_gpusort_fallbacks.sorts IS
'sorts and index builds';

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

COMMENT ON FUNCTION gpusort_progress() IS
'rows of the view pg_stat_progress_gpusort, without names';

CREATE VIEW pg_stat_progress_gpusort AS
	SELECT p.pid, p.leader_pid, p.datid, d.datname, p.node, p.phase,
		   p.rows_expected, p.rows_read, p.rows_sorted, p.rows_returned,
		   p.memory_bytes, p.device_bytes, p.file_bytes, p.devices,
		   p.workers_planned
	FROM gpusort_progress() p
		LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid;

COMMENT ON VIEW pg_stat_progress_gpusort IS
'sorts that run now, and how far they are';
COMMENT ON COLUMN pg_stat_progress_gpusort.pid IS
'process that sorts';
COMMENT ON COLUMN pg_stat_progress_gpusort.leader_pid IS
'leader of a parallel worker';
COMMENT ON COLUMN pg_stat_progress_gpusort.datid IS
'OID of its database';
COMMENT ON COLUMN pg_stat_progress_gpusort.datname IS
'name of its database';
COMMENT ON COLUMN pg_stat_progress_gpusort.node IS
'number of the node in the plan; NULL for an index build';
COMMENT ON COLUMN pg_stat_progress_gpusort.phase IS
'what it does now';
COMMENT ON COLUMN pg_stat_progress_gpusort.rows_expected IS
'rows that the planner expects';
COMMENT ON COLUMN pg_stat_progress_gpusort.rows_read IS
'rows added to the sort';
COMMENT ON COLUMN pg_stat_progress_gpusort.rows_sorted IS
'rows sorted, by all processes';
COMMENT ON COLUMN pg_stat_progress_gpusort.rows_returned IS
'position of the row returned last';
COMMENT ON COLUMN pg_stat_progress_gpusort.memory_bytes IS
'memory in this process';
COMMENT ON COLUMN pg_stat_progress_gpusort.device_bytes IS
'memory on GPUs';
COMMENT ON COLUMN pg_stat_progress_gpusort.file_bytes IS
'bytes of temporary files';
COMMENT ON COLUMN pg_stat_progress_gpusort.devices IS
'GPUs that have rows of the sort';
COMMENT ON COLUMN pg_stat_progress_gpusort.workers_planned IS
'parallel workers that can add rows';

GRANT SELECT ON pg_stat_progress_gpusort TO PUBLIC;

CREATE FUNCTION pg_stat_gpusort_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpusort_stat_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_stat_gpusort_reset() IS
'set the counters of pg_stat_gpusort and pg_stat_gpusort_fallbacks to zero';

-- As for the resets of core's statistics, but for those who watch the server.
REVOKE ALL ON FUNCTION pg_stat_gpusort_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_stat_gpusort_reset() TO pg_monitor;

--
-- Advice
--

CREATE FUNCTION gpusort_key_encoding(operator oid, collation_oid oid)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT STABLE PARALLEL SAFE;

COMMENT ON FUNCTION gpusort_key_encoding(oid, oid) IS
'what a sort key is sorted by; NULL if PostgreSQL sorts by it';

CREATE FUNCTION gpusort_statements_on_disk(most integer)
RETURNS jsonb
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION gpusort_statements_on_disk(integer) IS
'statements of pg_stat_statements that write most temporary files';

-- The names in this body are looked up now, so the caller's search_path does not matter.  The
-- columns of pg_database differ between versions of PostgreSQL, hence to_jsonb().
CREATE FUNCTION gpusort_advice(most integer DEFAULT 10)
RETURNS TABLE (subject text, name text, detail text, stock_s numeric,
			   gpusort_s numeric, advice text)
LANGUAGE SQL VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
	WITH status AS MATERIALIZED (
		SELECT s.value AS loaded_for FROM gpusort_status() s
		WHERE s.name = 'loaded_for'
	), current AS MATERIALIZED (	-- after gpusort_status(), which loads the library
		SELECT loaded_for,
			   current_setting('pg_gpusort.enable', true) AS enable,
			   current_setting('pg_gpusort.enable_index_build', true) AS enable_index_build,
			   current_setting('pg_gpusort.min_rows', true)::int8 AS min_rows,
			   current_setting('pg_gpusort.min_index_rows', true)::int8 AS min_index_rows,
			   CASE WHEN current_setting('pg_gpusort.work_mem', true) = '-1'
					THEN current_setting('work_mem')
					ELSE current_setting('pg_gpusort.work_mem', true) END AS work_mem,
			   current_setting('maintenance_work_mem') AS maintenance_work_mem
		FROM status
	), locales AS (
		SELECT d.datname, d.datlocprovider,
			   CASE WHEN d.datlocprovider = 'c' THEN d.datcollate::text
					ELSE coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
			   END AS locale
		FROM pg_database d
		WHERE d.datallowconn AND NOT d.datistemplate
		ORDER BY d.datname = current_database() DESC, d.datname LIMIT most
	), largest AS MATERIALIZED (
		SELECT c.oid, c.relpages::int8 * current_setting('block_size')::int8 AS bytes,
			   a.amname, CASE WHEN a.amname = 'gin' THEN t.reltuples ELSE c.reltuples END AS rows,
			   n.nspname, t.relname AS table_name, i.indrelid, i.indkey, i.indnkeyatts,
			   i.indclass, i.indcollation, i.indoption
		FROM pg_index i
			 JOIN pg_class c ON c.oid = i.indexrelid
			 JOIN pg_class t ON t.oid = i.indrelid
			 JOIN pg_namespace n ON n.oid = t.relnamespace
			 JOIN pg_am a ON a.oid = c.relam
		WHERE c.relkind = 'i' AND a.amname IN ('btree', 'gin') AND t.relkind IN ('r', 'm')
			AND n.nspname NOT IN ('pg_catalog', 'information_schema')
			AND NOT pg_is_other_temp_schema(n.oid)
			AND CASE WHEN a.amname = 'gin' THEN t.reltuples ELSE c.reltuples END >= 10000
		ORDER BY c.relpages DESC, c.oid LIMIT most
	), keys AS (
		SELECT l.*, o.opcname, f.attlen,
			   (SELECT string_agg(
						CASE WHEN l.amname = 'gin' THEN p.opcname
							 ELSE format_type(b.atttypid, b.atttypmod) END
						|| CASE WHEN l.amname = 'gin' OR l.indcollation[k] IN (0, 100) THEN ''
								ELSE ' COLLATE ' || quote_ident(s.collname) END, ', ' ORDER BY k)
				FROM generate_series(0, l.indnkeyatts - 1) k
					 JOIN pg_attribute b ON b.attrelid = l.oid AND b.attnum = k + 1
					 JOIN pg_opclass p ON p.oid = l.indclass[k]
					 LEFT JOIN pg_collation s ON s.oid = l.indcollation[k]) AS columns,
			   CASE WHEN l.amname = 'btree' THEN
				   (SELECT gpusort_key_encoding(m.amopopr, l.indcollation[0])
					FROM pg_amop m
					WHERE m.amopfamily = o.opcfamily AND m.amoplefttype = o.opcintype
						AND m.amoprighttype = o.opcintype AND m.amopstrategy = 1)
			   END AS encoding,
			   (SELECT x.correlation * CASE WHEN l.indoption[0] & 1 = 1 THEN -1 ELSE 1 END > 0.99
				FROM pg_stats x
					 JOIN pg_attribute y ON y.attrelid = l.indrelid AND y.attname = x.attname
				WHERE x.schemaname = l.nspname AND x.tablename = l.table_name
					AND y.attnum = l.indkey[0] AND NOT x.inherited) AS in_order
		FROM largest l
			 JOIN pg_opclass o ON o.oid = l.indclass[0]
			 JOIN pg_attribute f ON f.attrelid = l.oid AND f.attnum = 1
	), speeds (key, stock_ns, gpusort_ns) AS (	-- of a row; see docs/functions.md
		VALUES ('numbers', 776, 106), ('numbers in order', 231, 99), ('bytes', 907, 260),
			   ('weights of the C library', 8238, 903), ('weights of ICU', 4744, 712),
			   ('gin', 150, 35), ('gin_trgm_ops', 200, 130)	-- of a byte
	), builds AS (
		SELECT k.*, v.stock_ns * s.units / 1e9 AS stock_s, v.gpusort_ns * s.units / 1e9 AS gpusort_s
		FROM keys k
			 CROSS JOIN LATERAL (SELECT
				CASE WHEN k.amname = 'gin' THEN k.bytes ELSE k.rows END AS units,
				CASE WHEN k.opcname = 'gin_trgm_ops' THEN 'gin_trgm_ops'
					 WHEN k.amname = 'gin' THEN 'gin'
					 WHEN k.encoding IN ('values', 'abbreviations')
					 THEN CASE WHEN k.attlen > 0 AND k.in_order THEN 'numbers in order'
							   WHEN k.attlen > 0 THEN 'numbers'
							   WHEN NOT coalesce(k.in_order, false) THEN 'bytes' END
					 WHEN NOT coalesce(k.in_order, false) THEN k.encoding END AS key) s
			 LEFT JOIN speeds v ON v.key = s.key
	), statements AS (
		SELECT s.number, s.value ->> 'queryid' AS queryid, s.value ->> 'query' AS query,
			   (s.value ->> 'calls')::int8 AS calls,
			   coalesce(s.value ->> 'total_exec_time', s.value ->> 'total_time')::numeric AS ms,
			   (s.value ->> 'temp_blks_written')::int8
			   * current_setting('block_size')::int8 AS bytes
		FROM jsonb_array_elements(gpusort_statements_on_disk(most))
			 WITH ORDINALITY s (value, number)
	), answer AS (
		SELECT 1 AS part, 1::int8 AS place, 'setting' AS subject,
			   'shared_preload_libraries' AS name, 'loaded for ' || c.loaded_for AS detail,
			   NULL::float8 AS stock_s, NULL::float8 AS gpusort_s,
			   CASE c.loaded_for
					WHEN 'all sessions' THEN NULL
					WHEN 'functions of this session'
					THEN 'no sorts are taken over: add pg_gpusort and restart the server'
					ELSE 'processes cannot sort together: add pg_gpusort and restart the server'
			   END AS advice
		FROM current c
		UNION ALL
		SELECT 1, 2, 'setting', 'pg_gpusort.enable', c.enable, NULL, NULL,
			   'no sorts are taken over'
		FROM current c WHERE c.enable = 'off'
		UNION ALL
		SELECT 1, 3, 'setting', 'pg_gpusort.enable_index_build', c.enable_index_build, NULL, NULL,
			   'index builds are left to PostgreSQL'
		FROM current c WHERE c.enable_index_build = 'off'
		UNION ALL
		SELECT 1, 4, 'setting', 'pg_gpusort.min_rows', c.min_rows::text, NULL, NULL,
			   'sorts of fewer rows are left to PostgreSQL; the default, -1, knows from where on they gain'
		FROM current c WHERE c.min_rows <> -1
		UNION ALL
		SELECT 1, 5, 'setting', 'pg_gpusort.min_index_rows', c.min_index_rows::text, NULL, NULL,
			   'builds over fewer rows are left to PostgreSQL; the default, -1, knows from where on they gain'
		FROM current c WHERE c.min_index_rows <> -1
		UNION ALL
		SELECT 1, 6, 'setting', 'pg_gpusort.work_mem', c.work_mem, NULL, NULL,
			   format('sorts of more than about %s rows of 100 bytes go to disk and gain less',
					  to_char(pg_size_bytes(c.work_mem) / 128, 'FM999,999,999,999,999'))
		FROM current c
		UNION ALL
		SELECT 1, 7, 'setting', 'maintenance_work_mem', c.maintenance_work_mem, NULL, NULL,
			   format('builds of larger indexes go to disk and gain less: %s of those below',
					  (SELECT count(*) FROM largest l
					   WHERE l.bytes > pg_size_bytes(c.maintenance_work_mem)))
		FROM current c
		UNION ALL
		SELECT 2, row_number() OVER (ORDER BY l.datname = current_database() DESC, l.datname),
			   'database', l.datname,
			   CASE l.datlocprovider WHEN 'c' THEN 'C library' WHEN 'i' THEN 'ICU'
									 WHEN 'b' THEN 'builtin' ELSE 'default' END || ', ' || l.locale,
			   NULL, NULL,
			   CASE WHEN l.datlocprovider = 'i' THEN 'text gains: 6 to 7 times as fast'
					WHEN l.datlocprovider = 'b' OR l.locale ~* '^(C|POSIX|C.UTF-?8)$'
					THEN 'text gains as numbers do: mostly 2 to 5 times as fast'
					ELSE 'text gains most, if the C library is GNU''s: 10 to 26 times as fast' END
		FROM locales l
		UNION ALL
		SELECT 3, row_number() OVER (ORDER BY b.bytes DESC, b.oid), 'index', b.oid::regclass::text,
			   format('%s (%s), %s rows, %s', b.amname, b.columns,
					  to_char(b.rows, 'FM999,999,999,999,999'), pg_size_pretty(b.bytes)),
			   b.stock_s, b.gpusort_s,
			   CASE WHEN b.amname = 'btree' AND b.encoding IS NULL
					THEN 'built by PostgreSQL: the first key has no encoding'
					WHEN b.amname = 'btree' AND b.in_order THEN 'the table is in this order: little gain'
					WHEN b.encoding = 'comparisons' THEN 'sorted by comparisons: little gain'
			   END
		FROM builds b
		UNION ALL
		SELECT 4, s.number, 'statement', s.queryid,
			   format('%s calls, %s of temporary files: %s', s.calls, pg_size_pretty(s.bytes),
					  left(regexp_replace(s.query, '\s+', ' ', 'g'), 100)),
			   s.ms / 1000, NULL,
			   'gains if EXPLAIN shows a sort: hash tables write such files, too'
		FROM statements s
		UNION ALL
		SELECT 5, row_number() OVER (ORDER BY g.backend COLLATE "C"), 'done so far', g.backend,
			   format('%s sorts of %s rows', g.sorts, to_char(g.rows, 'FM999,999,999,999,999')),
			   CASE WHEN g.backend <> 'external'	-- 10 ns for a comparison
					THEN g.rows * log(2.0, greatest(g.rows / g.sorts, 2)::numeric) * 1e-8 END,
			   g.sort_time / 1000, NULL
		FROM gpusort_stat() g WHERE g.sorts > 0
	)
	SELECT a.subject, a.name, a.detail, round(a.stock_s::numeric, 2),
		   round(a.gpusort_s::numeric, 2), a.advice
	FROM answer a ORDER BY a.part, a.place;
END;

COMMENT ON FUNCTION gpusort_advice(integer) IS
'what would gain in this database, and what limits the gain';
