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
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/varlena.h"

#include "key/distrust.h"
#include "loading.h"
#include "service/devices.h"
#include "service/service_client.h"
#include "settings.h"
#include "sort/base/progress.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "version.h"

GPUSORT_SQL_FUNCTION(gpusort_version);
GPUSORT_SQL_FUNCTION(gpusort_devices);
GPUSORT_SQL_FUNCTION(gpusort_devices_1_1);
GPUSORT_SQL_FUNCTION(gpusort_sessions);
GPUSORT_SQL_FUNCTION(gpusort_status);
GPUSORT_SQL_FUNCTION(gpusort_stat);
GPUSORT_SQL_FUNCTION(gpusort_stat_fallbacks);
GPUSORT_SQL_FUNCTION(gpusort_stat_reset);
GPUSORT_SQL_FUNCTION(gpusort_progress);

static const char *const service_states[] = {
	[GS_SERVICE_OFF] = "off",
	[GS_SERVICE_STARTING] = "starting",
	[GS_SERVICE_READY] = "ready",
	[GS_SERVICE_FAILED] = "failed",
};

static const char *const device_states[] = {
	[GS_DEVICE_CLOSED] = "closed",
	[GS_DEVICE_OPENING] = "opening",
	[GS_DEVICE_USED] = "used",
	[GS_DEVICE_FAILED] = "failed",
};

static const char *const session_states[] = {
	[GS_SLOT_FREE] = "free",
	[GS_SLOT_CLAIMED] = "opening",
	[GS_SLOT_OPENING] = "opening",
	[GS_SLOT_OPEN] = "filling",
	[GS_SLOT_FULL] = "full",
	[GS_SLOT_SORTING] = "sorting",
	[GS_SLOT_SORTED] = "sorted",
	[GS_SLOT_RELEASING] = "releasing",
	[GS_SLOT_RELEASED] = "released",
	[GS_SLOT_FAILED] = "failed",
	[GS_SLOT_CLOSING] = "closing",
};

/*
 * Who may see what is as in pg_stat_activity and core's views of progress: everyone sees that
 * there is a sort, and its own role and pg_read_all_stats see the rest.
 */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), role);
}

static bool
has_columns(TupleDesc tupdesc, const Oid *types, int count)
{
	if (tupdesc->natts != count)
		return false;
	for (int c = 0; c < count; c++)
		if (TupleDescAttr(tupdesc, c)->atttypid != types[c])
			return false;
	return true;
}

/*
 * Prepare to return rows as InitMaterializedSRF() does.  Raises an error unless the SQL
 * function has exactly these columns: values are stored by their positions, but the
 * function may have been created by the script of another build.
 */
static ReturnSetInfo *
begin_rows(FunctionCallInfo fcinfo, const Oid *types, int count)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (!has_columns(result->setDesc, types, count))
		gpusort_version_refuse(fcinfo, "The library returns other columns.");
	return result;
}

/* ----------------------------------------------------------------
 *		devices
 * ----------------------------------------------------------------
 */

/* How many devices do the settings allow? */
static int
count_devices(void)
{
	return gpusort_service == NULL ? 0 :
		(int) pg_atomic_read_u32(&gpusort_service->ndevices);
}

static const char *
device_state(int n)
{
	uint32		state = pg_atomic_read_u32(&gpusort_service->devices[n].state);

	if (state == GS_DEVICE_FAILED && gpusort_devices_left_out(n))
		return "left out";
	return device_states[state];
}

/*
 * Returns a string that another process may be changing.
 */
static Datum
shared_text(const char *string, Size size)
{
	return CStringGetTextDatum(pnstrdup(string, size));
}

/* The columns of gpusort_devices(), of which version 1.0 of the extension has the first ones. */
#define DEVICE_COLUMNS		13
#define DEVICE_COLUMNS_1_0	9

/* Return a row for each GPU that the service is configured to use, with the first columns of it. */
static void
put_devices(FunctionCallInfo fcinfo, int columns)
{
	static const Oid types[DEVICE_COLUMNS] = {
		INT4OID, TEXTOID, TEXTOID, INT8OID, INT8OID, INT4OID, TEXTOID, INT4OID,
		TEXTOID, INT8OID, INT8OID, INT4OID, INT8OID
	};
	ReturnSetInfo *result = begin_rows(fcinfo, types, columns);

	for (int d = 0; d < count_devices(); d++)
	{
		GsServiceDevice *device = &gpusort_service->devices[d];
		const		GsDeviceInfo *info = &device->info;
		const char *state = device_state(d);
		uint64		free_memory;
		uint32		temperature = pg_atomic_read_u32(&device->temperature);
		uint64		memory_errors = pg_atomic_read_u64(&device->memory_errors);

		pg_read_barrier();		/* what follows is not older than the state */
		free_memory = pg_atomic_read_u64(&device->free_memory);
		{
			/*
			 * Name, capability and memory are empty until the device was
			 * queried.
			 */
			bool		unknown = info->name[0] == '\0';
			Datum		values[DEVICE_COLUMNS] = {
				Int32GetDatum(info->ordinal),
				shared_text(info->name, sizeof(info->name)),
				CStringGetTextDatum(psprintf("%d.%d", info->capability_major,
											 info->capability_minor)),
				Int64GetDatum((int64) info->total_memory),
				Int64GetDatum((int64) free_memory),
				Int32GetDatum(pg_atomic_read_u32(&device->sessions)),
				CStringGetTextDatum(state),
				Int32GetDatum(pg_atomic_read_u32(&device->failures)),
				shared_text(device->message, sizeof(device->message)),
				Int64GetDatum((int64) pg_atomic_read_u64(&device->bytes_in)),
				Int64GetDatum((int64) pg_atomic_read_u64(&device->bytes_out)),
				Int32GetDatum((int32) temperature),
				Int64GetDatum((int64) memory_errors)
			};
			bool		nulls[DEVICE_COLUMNS] = {
				false, unknown, unknown, unknown, free_memory == 0, false, false,
				false, device->message[0] == '\0', false, false,
				temperature == GPUSORT_UNKNOWN_HEALTH, memory_errors == GPUSORT_UNKNOWN_HEALTH
			};

			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
	}
}

/* gpusort_devices() of version 1.0 of the extension */
Datum
gpusort_devices(PG_FUNCTION_ARGS)
{
	put_devices(fcinfo, DEVICE_COLUMNS_1_0);
	return (Datum) 0;
}

/* gpusort_devices() */
Datum
gpusort_devices_1_1(PG_FUNCTION_ARGS)
{
	put_devices(fcinfo, DEVICE_COLUMNS);
	return (Datum) 0;
}

/* ----------------------------------------------------------------
 *		sessions
 * ----------------------------------------------------------------
 */

/* The columns of a session that everyone sees. */
#define PUBLIC_SESSION_COLUMNS	4

static const char *
session_state(GsSlot *slot, GsSlotState state)
{
	return state == GS_SLOT_SORTED && pg_atomic_read_u64(&slot->file_bytes) > 0 ?
		"parked" : session_states[state];
}

/* Add a row for a session, which may be closed meanwhile. */
static void
put_session(ReturnSetInfo *result, GsSlot *slot, GsSlotState state)
{
	int			device = slot->device;
	bool		has_device = device >= 0 && device < count_devices();
	const GsPartResult *parts = slot->result.parts;
	Datum		values[] = {
		Int32GetDatum(slot->request.pid),
		ObjectIdGetDatum(slot->request.role),
		Int32GetDatum(has_device ? gpusort_service->devices[device].info.ordinal : 0),
		CStringGetTextDatum(session_state(slot, state)),
		Int64GetDatum((int64) (parts[GS_PART_REGULAR].rows + parts[GS_PART_NULL_KEYS].rows)),
		Int64GetDatum((int64) pg_atomic_read_u64(&slot->device_memory)),
		Int64GetDatum((int64) pg_atomic_read_u64(&slot->file_bytes)),
		TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&slot->last_use))
	};
	bool		nulls[lengthof(values)] = {
		false, false, !has_device, false, state != GS_SLOT_SORTED, false, false, !has_device
	};

	for (int c = PUBLIC_SESSION_COLUMNS; c < lengthof(values) && !may_see(slot->request.role); c++)
		nulls[c] = true;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* gpusort_sessions(): one row for each session of the GPU service. */
Datum
gpusort_sessions(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		INT4OID, REGROLEOID, INT4OID, TEXTOID, INT8OID, INT8OID, INT8OID, TIMESTAMPTZOID
	};

	ReturnSetInfo *result = begin_rows(fcinfo, types, lengthof(types));

	for (uint32 s = 0; gpusort_service != NULL && s < gpusort_service->nslots; s++)
	{
		GsSlot	   *slot = &gpusort_service->slots[s];
		GsSlotState state = (GsSlotState) pg_atomic_read_u32(&slot->state);

		pg_read_barrier();		/* what follows is not older than the state */
		if (state != GS_SLOT_FREE && state != GS_SLOT_CLAIMED)
			put_session(result, slot, state);
	}
	return (Datum) 0;
}

/* ----------------------------------------------------------------
 *		the library and its service
 * ----------------------------------------------------------------
 */

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
service_message(void)
{
	if (gpusort_service->message[0] == '\0')
		return NULL;
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS) ?
		pnstrdup(gpusort_service->message, sizeof(gpusort_service->message)) :
		"<insufficient privilege>";
}

/* Add what was measured of the GPU, if there is one. */
static void
put_speed(ReturnSetInfo *result)
{
	double		rows;
	const GsDeviceSpeed *speed = gpusort_client_speed(&rows);

	if (speed == NULL)
		return;
	put_status(result, "gpu_min_rows", isinf(rows) ? NULL : psprintf("%.0f", ceil(rows)));
	put_status(result, "gpu_session_us", psprintf("%.0f", speed->session_us));
	put_status(result, "gpu_row_ns", psprintf("%.1f", speed->gpu_row_ns));
	put_status(result, "cpu_row_ns", psprintf("%.1f", speed->cpu_row_ns));
}

static void
put_memory_of_devices(ReturnSetInfo *result)
{
	int64		used = 0;

	for (int d = 0; d < count_devices(); d++)
		used += pg_atomic_read_u64(&gpusort_service->devices[d].used_memory);
	put_number(result, "device_memory_in_use", used);
}

static void
put_sessions(ReturnSetInfo *result)
{
	GsService  *service = gpusort_service;
	int			sessions = 0;
	int			chunks_in_use = 0;

	for (uint32 s = 0; s < service->nslots; s++)
		sessions += pg_atomic_read_u32(&service->slots[s].state) != GS_SLOT_FREE;
	for (uint32 c = 0; c < service->nchunks; c++)
		chunks_in_use += pg_atomic_read_u32(&service->chunks[c].owner) != 0;
	put_number(result, "sessions", sessions);
	put_number(result, "session_slots", service->nslots);
	put_number(result, "pool_chunks", service->nchunks);
	put_number(result, "pool_chunks_in_use", chunks_in_use);
	put_number(result, "pool_chunk_bytes", service->chunk_bytes);
}

/*
 * Add the state of the GPU service, if there is one.  Values are read one after the other,
 * without a lock, so they may not be consistent with each other.
 */
static void
put_service_status(ReturnSetInfo *result)
{
	GsService  *service = gpusort_service;

	if (service == NULL)
		return;
	put_status(result, "service", service_states[pg_atomic_read_u32(&service->state)]);
	pg_read_barrier();			/* what follows is not older than the state */
	put_status(result, "service_message", service_message());
	put_status(result, "device_library", pnstrdup(service->build, sizeof(service->build)));
	put_number(result, "device_process_pid", pg_atomic_read_u32(&service->device_pid));
	put_number(result, "device_process_restarts", pg_atomic_read_u32(&service->restarts));
	put_memory_of_devices(result);
	put_sessions(result);
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
	put_number(result, "warm_memory_huge", memory.huge);
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
		if (gpusort_loading_is_our_file(lfirst(lc)))
		return true;
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

/* gpusort_version(): which build of the library is loaded. */
Datum
gpusort_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(gpusort_version_text));
}

/* gpusort_status(): (name, value) pairs about the library in this server. */
Datum
gpusort_status(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {TEXTOID, TEXTOID};
	ReturnSetInfo *result = begin_rows(fcinfo, types, lengthof(types));
	GsReason	reason = gpusort_backend == GS_BACKEND_CPU ?
		GS_REASON_BACKEND_CPU : gpusort_client_availability();
	bool		gpu = reason == GS_REASON_NONE;

	put_status(result, "version", gpusort_version_number);
	put_status(result, "commit", gpusort_version_commit);
	put_status(result, "built", gpusort_version_built);
	put_status(result, "backend", gpu ? "gpu" : "cpu");
	put_status(result, "backend_reason",
			   gpu ? NULL : gpusort_reason_text(reason));
	put_status(result, "loaded_for", loaded_for());
	put_status(result, "statistics_of",
			   gpusort_stats_are_shared() ? "server" : "session");
	put_number(result, "wrong_orders", gpusort_distrust_count());
	put_status(result, "distrusted_encodings", gpusort_distrust_texts());
	put_memory_status(result);
	put_service_status(result);
	return (Datum) 0;
}

/* ----------------------------------------------------------------
 *		statistics
 * ----------------------------------------------------------------
 */

/* gpusort_stat(): the rows of the view pg_stat_gpusort. */
Datum
gpusort_stat(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		TEXTOID, INT8OID, INT8OID, INT8OID, FLOAT8OID, FLOAT8OID, INT8OID,
		INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, TIMESTAMPTZOID
	};
	ReturnSetInfo *result = begin_rows(fcinfo, types, lengthof(types));
	GsStatsSnapshot stats;

	gpusort_stats_read(&stats);
	for (int k = 0; k < GS_SORT_KINDS; k++)
	{
		const GsSortCounts *counts = &stats.kinds[k];
		Datum		values[] = {
			CStringGetTextDatum(gpusort_stats_kind_names[k]),
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
	ReturnSetInfo *result = begin_rows(fcinfo, types, lengthof(types));
	GsStatsSnapshot stats;

	gpusort_stats_read(&stats);
	for (int r = GS_REASON_NONE + 1; r < GS_REASON_COUNT; r++)
	{
		Datum		values[] = {
			CStringGetTextDatum(gpusort_reason_text(r)),
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

/* ----------------------------------------------------------------
 *		progress
 * ----------------------------------------------------------------
 */

/* The columns of a sort that everyone sees. */
#define PUBLIC_COLUMNS		3

#define DEVICES_COLUMN		12

/* Returns the GPUs of a sort by their ordinals, as gpusort_devices() shows them. */
static ArrayType *
ordinals(uint32 devices)
{
	ArrayBuildState *array = initArrayResult(INT4OID, CurrentMemoryContext, false);

	for (int d = 0; d < count_devices(); d++)
		if (devices & ((uint32) 1 << d))
			array = accumArrayResult(array,
									 Int32GetDatum(gpusort_service->devices[d].info.ordinal),
									 false, INT4OID, CurrentMemoryContext);
	return DatumGetArrayTypeP(makeArrayResult(array, CurrentMemoryContext));
}

/* gpusort_progress(): the rows of the view pg_stat_progress_gpusort. */
Datum
gpusort_progress(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {
		INT4OID, INT4OID, OIDOID, INT4OID, TEXTOID, INT8OID, INT8OID, INT8OID,
		INT8OID, INT8OID, INT8OID, INT8OID, INT4ARRAYOID, INT4OID
	};
	ReturnSetInfo *result = begin_rows(fcinfo, types, lengthof(types));
	GsProgress	progress;

	for (int i = 0; i < gpusort_progress_slots(); i++)
	{
		if (!gpusort_progress_read(i, &progress))
			continue;

		{
			Datum		values[] = {
				Int32GetDatum(progress.pid),
				Int32GetDatum(progress.leader_pid),
				ObjectIdGetDatum(progress.database),
				Int32GetDatum(progress.plan_node),
				CStringGetTextDatum(gpusort_progress_phase_names[progress.phase]),
				Int64GetDatum(progress.rows_expected),
				Int64GetDatum(progress.rows_read),
				Int64GetDatum(progress.rows_sorted),
				Int64GetDatum(progress.rows_returned),
				Int64GetDatum(progress.memory_bytes),
				Int64GetDatum(progress.device_bytes),
				Int64GetDatum(progress.file_bytes),
				PointerGetDatum(ordinals(progress.devices)),
				Int32GetDatum(progress.workers)
			};
			bool		nulls[lengthof(values)] = {false};

			nulls[1] = progress.leader_pid == 0;
			nulls[3] = progress.plan_node < 0;
			nulls[DEVICES_COLUMN] = progress.devices == 0;
			for (int c = PUBLIC_COLUMNS; c < lengthof(values) && !may_see(progress.role); c++)
				nulls[c] = true;
			tuplestore_putvalues(result->setResult, result->setDesc, values,
								 nulls);
		}
	}
	return (Datum) 0;
}
