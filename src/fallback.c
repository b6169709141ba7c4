/*-------------------------------------------------------------------------
 *
 * fallback.c
 *		Texts for the reasons why a sort is left to stock PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fallback.h"

static const char *const fallback_texts[] = {
	[GS_FALLBACK_NONE] = "none",
	[GS_FALLBACK_DISABLED] = "pg_gpusort.enable is off",
	[GS_FALLBACK_FEW_ROWS] = "too few rows to gain",
	[GS_FALLBACK_LIMIT] = "LIMIT needs only some of the rows",
	[GS_FALLBACK_TYPE] = "no encoding for the type of a sort key",
	[GS_FALLBACK_WRONG_ORDER] = "an encoding has sorted rows into a wrong order",
	[GS_FALLBACK_NO_GAIN] = "no faster than PostgreSQL's own sort",
	[GS_FALLBACK_INDEX_DISABLED] = "pg_gpusort.enable_index_build is off",
	[GS_FALLBACK_FEW_INDEX_ROWS] = "fewer rows than pg_gpusort.min_index_rows",
	[GS_FALLBACK_TABLE_AM] = "the table is not a heap",
	[GS_FALLBACK_OPEN_ROWS] = "rows of the table belong to open transactions",
	[GS_FALLBACK_WORK_MEM] = "rows exceeded pg_gpusort.work_mem",
	[GS_FALLBACK_MAINTENANCE_MEM] = "rows exceeded maintenance_work_mem",
	[GS_FALLBACK_OUT_OF_MEMORY] = "out of memory",
	[GS_FALLBACK_ROW_COUNT] = "too many rows for a sort in memory",
	[GS_FALLBACK_BACKEND_CPU] = "pg_gpusort.backend is cpu",
	[GS_FALLBACK_NO_GPU] = "no GPU service",
	[GS_FALLBACK_GPU_FEW_ROWS] = "too few rows to gain from a GPU",
	[GS_FALLBACK_GPU_TIES] = "a GPU would leave too many ties to the CPU",
	[GS_FALLBACK_SERVICE_STARTING] = "the GPU service is starting",
	[GS_FALLBACK_SERVICE_FAILED] = "the GPU service has no device",
	[GS_FALLBACK_NO_SESSION] = "all sessions of the GPU service are in use",
	[GS_FALLBACK_BACKEND_SESSIONS] = "pg_gpusort.max_sessions_per_backend is reached",
	[GS_FALLBACK_ROW_WIDTH] = "a row is too long for pg_gpusort.pool_size",
	[GS_FALLBACK_DEVICE_MEMORY] = "not enough device memory",
	[GS_FALLBACK_DEVICE_ERROR] = "the device reported an error",
	[GS_FALLBACK_SERVICE_LOST] = "the GPU service was lost",
	[GS_FALLBACK_ENUM_LABELS] = "labels were added to an enum during the sort",
};

StaticAssertDecl(lengthof(fallback_texts) == GS_FALLBACK_COUNT,
				 "every fallback reason has a text");

const char *
gpusort_fallback_text(GsFallback reason)
{
	Assert(reason >= 0 && reason < GS_FALLBACK_COUNT);
	return fallback_texts[reason];
}

bool
gpusort_fallback_is_want_of_gpu(GsFallback reason)
{
	return reason >= GS_FALLBACK_SERVICE_STARTING && reason <= GS_FALLBACK_SERVICE_LOST;
}
