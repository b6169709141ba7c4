/*-------------------------------------------------------------------------
 *
 * reason.c
 *		Texts for the reasons why a sort is left to stock PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "reason.h"

static const char *const reason_texts[] = {
	[GS_REASON_NONE] = "none",
	[GS_REASON_DISABLED] = "pg_gpusort.enable is off",
	[GS_REASON_FEW_ROWS] = "too few rows to gain",
	[GS_REASON_LIMIT] = "LIMIT needs only some of the rows",
	[GS_REASON_TYPE] = "no encoding for the type of a sort key",
	[GS_REASON_WRONG_ORDER] = "an encoding has sorted rows into a wrong order",
	[GS_REASON_NO_GAIN] = "no faster than PostgreSQL's own sort",
	[GS_REASON_INDEX_DISABLED] = "pg_gpusort.enable_index_build is off",
	[GS_REASON_FEW_INDEX_ROWS] = "fewer rows than pg_gpusort.min_index_rows",
	[GS_REASON_TABLE_AM] = "the table is not a heap",
	[GS_REASON_OPEN_ROWS] = "rows of the table belong to open transactions",
	[GS_REASON_WORK_MEM] = "rows exceeded pg_gpusort.work_mem",
	[GS_REASON_MAINTENANCE_MEM] = "rows exceeded maintenance_work_mem",
	[GS_REASON_OUT_OF_MEMORY] = "out of memory",
	[GS_REASON_ROW_COUNT] = "too many rows for a sort in memory",
	[GS_REASON_BACKEND_CPU] = "pg_gpusort.backend is cpu",
	[GS_REASON_NO_GPU] = "no GPU service",
	[GS_REASON_GPU_FEW_ROWS] = "too few rows to gain from a GPU",
	[GS_REASON_GPU_TIES] = "a GPU would leave too many ties to the CPU",
	[GS_REASON_SERVICE_STARTING] = "the GPU service is starting",
	[GS_REASON_SERVICE_FAILED] = "the GPU service has no device",
	[GS_REASON_NO_SESSION] = "all sessions of the GPU service are in use",
	[GS_REASON_BACKEND_SESSIONS] = "pg_gpusort.max_sessions_per_backend is reached",
	[GS_REASON_ROLE_SESSIONS] = "pg_gpusort.max_sessions_per_role is reached",
	[GS_REASON_ROLE_MEMORY] = "pg_gpusort.max_device_memory_per_role is reached",
	[GS_REASON_ROW_WIDTH] = "a row is too long for pg_gpusort.pool_size",
	[GS_REASON_DEVICE_MEMORY] = "not enough device memory",
	[GS_REASON_DEVICE_ERROR] = "the device reported an error",
	[GS_REASON_SERVICE_LOST] = "the GPU service was lost",
	[GS_REASON_ENUM_LABELS] = "labels were added to an enum during the sort",
};

StaticAssertDecl(lengthof(reason_texts) == GS_REASON_COUNT,
				 "every reason has a text");

const char *
gpusort_reason_text(GsReason reason)
{
	Assert(reason >= 0 && reason < GS_REASON_COUNT);
	return reason_texts[reason];
}

bool
gpusort_reason_is_no_gpu(GsReason reason)
{
	return reason >= GS_REASON_SERVICE_STARTING && reason <= GS_REASON_SERVICE_LOST;
}
