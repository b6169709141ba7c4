/*-------------------------------------------------------------------------
 *
 * reason.h
 *		Reasons why a sort or an index build is left to stock PostgreSQL.
 *
 * Each reason has a text for users: EXPLAIN shows it,
 * pg_stat_gpusort_fallbacks counts by it, and the error raised by
 * pg_gpusort.debug_require includes it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REASON_H
#define GPUSORT_REASON_H

typedef enum GsReason
{
	/* found during planning */
	GS_REASON_NONE,
	GS_REASON_DISABLED,
	GS_REASON_FEW_ROWS,
	GS_REASON_LIMIT,
	GS_REASON_TYPE,
	GS_REASON_WRONG_ORDER,
	GS_REASON_NO_GAIN,
	/* found before an index is built */
	GS_REASON_INDEX_DISABLED,
	GS_REASON_FEW_INDEX_ROWS,
	GS_REASON_TABLE_AM,
	GS_REASON_OPEN_ROWS,
	/* found while the rows are read */
	GS_REASON_WORK_MEM,
	GS_REASON_MAINTENANCE_MEM,
	GS_REASON_OUT_OF_MEMORY,
	GS_REASON_ROW_COUNT,
	/* why a sort is done in memory and not in a GPU session */
	GS_REASON_BACKEND_CPU,
	GS_REASON_NO_GPU,
	GS_REASON_GPU_FEW_ROWS,
	GS_REASON_GPU_TIES,
	/* likewise, although a GPU was wanted */
	GS_REASON_SERVICE_STARTING,
	GS_REASON_SERVICE_FAILED,
	GS_REASON_NO_SESSION,
	GS_REASON_BACKEND_SESSIONS,
	GS_REASON_ROLE_SESSIONS,
	GS_REASON_ROLE_MEMORY,
	GS_REASON_ROW_WIDTH,
	GS_REASON_DEVICE_MEMORY,
	GS_REASON_DEVICE_ERROR,
	GS_REASON_SERVICE_LOST,
	/* found when the sort has begun */
	GS_REASON_ENUM_LABELS,
	GS_REASON_COUNT
} GsReason;

extern const char *gpusort_reason_text(GsReason reason);

/* Is the reason that a GPU was wanted, but not available? */
extern bool gpusort_reason_is_no_gpu(GsReason reason);

#endif							/* GPUSORT_REASON_H */
