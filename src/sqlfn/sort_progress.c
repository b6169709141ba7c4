/*-------------------------------------------------------------------------
 *
 * sort_progress.c
 *		The SQL function behind pg_stat_progress_gpusort.
 *
 * Who may see what is as in pg_stat_activity and core's views of progress: everyone
 * sees that there is a sort, and its own role and pg_read_all_stats see the rest.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "loading.h"
#include "service/service_status.h"
#include "sort/base/progress.h"
#include "sqlfn/result_rows.h"

GPUSORT_SQL_FUNCTION(gpusort_progress);

/* The columns of a sort that everyone sees. */
#define PUBLIC_COLUMNS		3

#define DEVICES_COLUMN		12

static bool
may_see(const GsProgress *progress)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), progress->role);
}

/* Returns the GPUs of a sort by their ordinals, as gpusort_devices() shows them. */
static ArrayType *
ordinals(uint32 devices)
{
	ArrayBuildState *array = initArrayResult(INT4OID, CurrentMemoryContext, false);
	GsDeviceRow device;

	for (int d = 0; gpusort_service_get_device(d, &device); d++)
		if (devices & ((uint32) 1 << d))
			array = accumArrayResult(array, Int32GetDatum(device.ordinal), false,
									 INT4OID, CurrentMemoryContext);
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
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GsProgress	progress;

	gpusort_result_rows_begin(fcinfo, types, lengthof(types));
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
				CStringGetTextDatum(gpusort_progress_phase_name(progress.phase)),
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
			for (int c = PUBLIC_COLUMNS; c < lengthof(values) && !may_see(&progress); c++)
				nulls[c] = true;
			tuplestore_putvalues(result->setResult, result->setDesc, values,
								 nulls);
		}
	}
	return (Datum) 0;
}
