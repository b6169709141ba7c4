/*-------------------------------------------------------------------------
 *
 * fallback.h
 *		Reasons why a sort or an index build is left to stock PostgreSQL.
 *
 * Each reason has a text for users: EXPLAIN shows it,
 * pg_stat_gpusort_fallbacks counts by it, and the error raised by
 * pg_gpusort.debug_require includes it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FALLBACK_H
#define GPUSORT_FALLBACK_H

typedef enum GsFallback
{
	/* found during planning */
	GS_FALLBACK_NONE,
	GS_FALLBACK_DISABLED,
	GS_FALLBACK_FEW_ROWS,
	GS_FALLBACK_LIMIT,
	GS_FALLBACK_TYPE,
	GS_FALLBACK_WRONG_ORDER,
	GS_FALLBACK_NO_GAIN,
	/* found before an index is built */
	GS_FALLBACK_INDEX_DISABLED,
	GS_FALLBACK_FEW_INDEX_ROWS,
	GS_FALLBACK_TABLE_AM,
	GS_FALLBACK_OPEN_ROWS,
	/* found while the rows are read */
	GS_FALLBACK_WORK_MEM,
	GS_FALLBACK_MAINTENANCE_MEM,
	GS_FALLBACK_OUT_OF_MEMORY,
	GS_FALLBACK_ROW_COUNT,
	/* why a sort is done in memory and not in a GPU session */
	GS_FALLBACK_BACKEND_CPU,
	GS_FALLBACK_NO_GPU,
	GS_FALLBACK_GPU_FEW_ROWS,
	GS_FALLBACK_GPU_TIES,
	/* likewise, although a GPU was wanted */
	GS_FALLBACK_SERVICE_STARTING,
	GS_FALLBACK_SERVICE_FAILED,
	GS_FALLBACK_NO_SESSION,
	GS_FALLBACK_BACKEND_SESSIONS,
	GS_FALLBACK_ROW_WIDTH,
	GS_FALLBACK_DEVICE_MEMORY,
	GS_FALLBACK_DEVICE_ERROR,
	GS_FALLBACK_SERVICE_LOST,
	/* found when the sort has begun */
	GS_FALLBACK_ENUM_LABELS,
	GS_FALLBACK_COUNT
} GsFallback;

extern const char *gpusort_fallback_text(GsFallback reason);

/* Is the reason that a GPU was wanted, but not available? */
extern bool gpusort_fallback_is_want_of_gpu(GsFallback reason);

#endif							/* GPUSORT_FALLBACK_H */
