/*-------------------------------------------------------------------------
 *
 * status.c
 *		SQL functions that show the state of pg_gpusort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/varlena.h"

#include "key/distrust.h"
#include "loading.h"
#include "service/service_client.h"
#include "service/service_status.h"
#include "settings.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "sqlfn/result_rows.h"

GPUSORT_SQL_FUNCTION(gpusort_devices);
GPUSORT_SQL_FUNCTION(gpusort_status);
GPUSORT_SQL_FUNCTION(gpusort_stat);
GPUSORT_SQL_FUNCTION(gpusort_stat_fallbacks);
GPUSORT_SQL_FUNCTION(gpusort_stat_reset);

/*
 * gpusort_devices(): one row for each GPU that the service is configured to
 * use.
 */
Datum
gpusort_devices(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, INT4OID, TEXTOID, INT4OID,
		TEXTOID
	};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsDeviceRow device;

	gpusort_result_rows_begin(fcinfo, types, lengthof(types));
	for (int d = 0; gpusort_service_get_device(d, &device); d++)
	{
		Datum		values[] = {
			Int32GetDatum(device.ordinal),
			CStringGetTextDatum(device.name),
			CStringGetTextDatum(device.compute_capability),
			Int64GetDatum(device.total_memory),
			Int64GetDatum(device.free_memory),
			Int32GetDatum(device.sessions),
			CStringGetTextDatum(device.state),
			Int32GetDatum(device.failures),
			CStringGetTextDatum(device.message)
		};
		bool		unknown = device.name[0] == '\0';
		bool		nulls[lengthof(values)] = {
			false, unknown, unknown, unknown, device.free_memory == 0, false, false,
			false, device.message[0] == '\0'
		};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

static void
put_status(ReturnSetInfo *result, const char *name, const char *value)
{
	Datum		values[2] = {CStringGetTextDatum(name)};
	bool		nulls[2] = {false, value == NULL};

	if (value != NULL)
		values[1] = CStringGetTextDatum(value);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
put_number(ReturnSetInfo *result, const char *name, int64 value)
{
	put_status(result, name, psprintf(INT64_FORMAT, value));
}

/*
 * Returns why the service failed.  The message may contain the path of
 * pg_gpusort.device_library, so it is shown only to users who may see that
 * setting.
 */
static const char *
service_message(const GsServiceStatus *service)
{
	if (service->message[0] == '\0')
		return NULL;
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS) ?
		service->message : "<insufficient privilege>";
}

/* Add what was measured of the GPU, if there is one. */
static void
put_speed(ReturnSetInfo *result)
{
	GsDeviceSpeed speed;
	double		rows;

	if (!gpusort_service_get_speed(&speed))
		return;
	rows = gpusort_device_speed_min_rows(&speed);
	put_status(result, "gpu_min_rows", isinf(rows) ? NULL : psprintf("%.0f", ceil(rows)));
	put_status(result, "gpu_session_us", psprintf("%.0f", speed.session_us));
	put_status(result, "gpu_row_ns", psprintf("%.1f", speed.gpu_row_ns));
	put_status(result, "cpu_row_ns", psprintf("%.1f", speed.cpu_row_ns));
}

/* Add the state of the GPU service, if there is one. */
static void
put_service_status(ReturnSetInfo *result)
{
	GsServiceStatus service;

	if (!gpusort_service_get_status(&service))
		return;
	put_status(result, "service", service.state);
	put_status(result, "service_message", service_message(&service));
	put_status(result, "device_library", service.build);
	put_number(result, "device_process_pid", service.device_pid);
	put_number(result, "device_process_restarts", service.restarts);
	put_number(result, "device_memory_in_use", service.device_memory);
	put_number(result, "sessions", service.sessions);
	put_number(result, "session_slots", service.slots);
	put_number(result, "pool_chunks", service.chunks);
	put_number(result, "pool_chunks_in_use", service.chunks_in_use);
	put_number(result, "pool_chunk_bytes", service.chunk_bytes);
	put_speed(result);
}

static void
put_memory_status(ReturnSetInfo *result)
{
	GsWarmMemoryStatus memory;

	gpusort_warm_memory_status(&memory);
	put_number(result, "warm_memory", memory.limit);
	put_status(result, "warm_memory_reason", memory.reason);
	put_number(result, "warm_memory_present", memory.present);
	put_number(result, "warm_memory_in_use", memory.in_use);
}

/* Is the library in session_preload_libraries of this session? */
static bool
in_session_preload_libraries(void)
{
	List	   *files;
	ListCell   *lc;

	if (session_preload_libraries_string == NULL ||
		!SplitDirectoriesString(pstrdup(session_preload_libraries_string), ',',
								&files))
		return false;
	foreach(lc, files)
	{
		const char *file = lfirst(lc);
		const char *directories_end = last_dir_separator(file);
		const char *name = directories_end != NULL ? directories_end + 1 : file;

		if (strcmp(name, "pg_gpusort") == 0 ||
			strcmp(name, "pg_gpusort" DLSUFFIX) == 0)
			return true;
	}
	return false;
}

/*
 * Which sessions have the library.  That this one has it says nothing about the
 * others: a call of a function loads it, and then sorts stay stock here as well.
 */
static const char *
loaded_for(void)
{
	if (gpusort_stats_are_shared())
		return "all sessions";
	if (in_session_preload_libraries())
		return "sessions with session_preload_libraries";
	if (!gpusort_loading_is_wanted())
		return "functions of this session";
	return "this session only";
}

/* gpusort_status(): (name, value) pairs about the library in this server. */
Datum
gpusort_status(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {TEXTOID, TEXTOID};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsFallback	reason = gpusort_backend == GS_BACKEND_CPU ?
		GS_FALLBACK_BACKEND_CPU : gpusort_client_availability();
	bool		gpu = reason == GS_FALLBACK_NONE;

	gpusort_result_rows_begin(fcinfo, types, lengthof(types));
	put_status(result, "version", GPUSORT_VERSION);
	put_status(result, "backend", gpu ? "gpu" : "cpu");
	put_status(result, "backend_reason",
			   gpu ? NULL : gpusort_fallback_text(reason));
	put_status(result, "loaded_for", loaded_for());
	put_status(result, "statistics_of",
			   gpusort_stats_are_shared() ? "server" : "session");
	put_number(result, "wrong_orders", gpusort_distrust_count());
	put_status(result, "distrusted_encodings", gpusort_distrust_texts());
	put_memory_status(result);
	put_service_status(result);
	return (Datum) 0;
}

/* gpusort_stat(): the rows of the view pg_stat_gpusort. */
Datum
gpusort_stat(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		TEXTOID, INT8OID, INT8OID, INT8OID, FLOAT8OID, FLOAT8OID, INT8OID,
		INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, TIMESTAMPTZOID
	};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsStatsSnapshot stats;

	gpusort_result_rows_begin(fcinfo, types, lengthof(types));
	gpusort_stats_read(&stats);
	for (int k = 0; k < GS_SORT_KINDS; k++)
	{
		const GsSortCounts *counts = &stats.kinds[k];
		Datum		values[] = {
			CStringGetTextDatum(gpusort_stats_kind_name(k)),
			Int64GetDatum((int64) counts->sorts),
			Int64GetDatum((int64) counts->rows),
			Int64GetDatum((int64) counts->bytes),
			Float8GetDatum(counts->drain_us / 1000.0),
			Float8GetDatum(counts->sort_us / 1000.0),
			Int64GetDatum((int64) counts->parallel_sorts),
			Int64GetDatum((int64) counts->page_scans),
			Int64GetDatum((int64) counts->index_builds),
			Int64GetDatum((int64) counts->array_sorts),
			Int64GetDatum((int64) stats.validations),
			Int64GetDatum((int64) stats.errors),
			TimestampTzGetDatum(stats.reset_time)
		};
		bool		nulls[lengthof(values)] = {false};

		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

/* gpusort_stat_fallbacks(): the rows of the view pg_stat_gpusort_fallbacks. */
Datum
gpusort_stat_fallbacks(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {TEXTOID, INT8OID};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsStatsSnapshot stats;

	gpusort_result_rows_begin(fcinfo, types, lengthof(types));
	gpusort_stats_read(&stats);
	for (int r = GS_FALLBACK_NONE + 1; r < GS_FALLBACK_COUNT; r++)
	{
		Datum		values[] = {
			CStringGetTextDatum(gpusort_fallback_text(r)),
			Int64GetDatum((int64) stats.fallbacks[r])
		};
		bool		nulls[lengthof(values)] = {false};

		if (stats.fallbacks[r] > 0)
			tuplestore_putvalues(result->setResult, result->setDesc, values,
								 nulls);
	}
	return (Datum) 0;
}

/* pg_stat_gpusort_reset(): the SQL script grants this only to pg_monitor. */
Datum
gpusort_stat_reset(PG_FUNCTION_ARGS)
{
	gpusort_stats_reset();
	PG_RETURN_VOID();
}
