/*-------------------------------------------------------------------------
 *
 * sort_stats.h
 *		Counts sorts, for pg_stat_gpusort and pg_stat_gpusort_fallbacks, and checks what
 *		tests require of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATS_H
#define GPUSORT_SORT_STATS_H

#include "datatype/timestamp.h"

#include "reason.h"

/* Where the rows of a sort finally were. */
typedef enum GsSortKind
{
	GS_KIND_GPU,
	GS_KIND_CPU,
	GS_KIND_EXTERNAL,			/* runs on disk */
	GS_SORT_KINDS
} GsSortKind;

/* All members have 64 bits: see sort_stats.c. */
typedef struct GsSortCounts
{
	uint64		sorts;
	uint64		rows;
	uint64		bytes;			/* in host memory, device memory or on disk */
	uint64		drain_us;		/* reading the input, in microseconds */
	uint64		sort_us;		/* sorting */
	uint64		parallel_sorts; /* sorts in which other processes took part */
	uint64		page_scans;		/* processes that read a table by pages */
	uint64		index_builds;	/* counted when the index is complete */
	uint64		array_sorts;	/* sorts of the functions for arrays */
} GsSortCounts;

/* Likewise. */
typedef struct GsStatsSnapshot
{
	GsSortCounts kinds[GS_SORT_KINDS];
	uint64		fallbacks[GS_REASON_COUNT];
	uint64		validations;	/* of indexes built concurrently */
	uint64		errors;			/* sorts ended by an error or a cancel */
	TimestampTz reset_time;
} GsStatsSnapshot;

/* Names of the kinds in pg_stat_gpusort. */
extern const char *const gpusort_stats_kind_names[];

extern void gpusort_stats_count_sort(GsSortKind kind,
									 const GsSortCounts *counts);
extern void gpusort_stats_count_reason(GsReason reason);
extern void gpusort_stats_count_validation(void);
extern void gpusort_stats_count_error(void);

/* Each counter is read separately, so they may be slightly inconsistent. */
extern void gpusort_stats_read(GsStatsSnapshot *snapshot);
extern void gpusort_stats_reset(void);

/* Do the counters cover the whole server, or only this backend? */
extern bool gpusort_stats_are_shared(void);

/* Called once by _PG_init(). */
extern void gpusort_stats_init(void);

/* ---- How a sort was done, and what is left to stock PostgreSQL ---- */

/*
 * How a sort was done, for EXPLAIN.  Contains no pointers, because workers pass it to
 * their leader.
 */
typedef struct GsSortReport
{
	GsSortKind	kind;
	GsReason	fallback;		/* why it is GS_KIND_EXTERNAL, or slow */
	GsReason	gpu_reason;		/* why it is not GS_KIND_GPU */
	char		method[32];		/* as EXPLAIN names it */
	int64		space_kb;		/* on a device, in memory or on disk, as the
								 * kind says */
	double		drain_ms;		/* reading the input */
	double		wait_ms;		/* GPU: waiting for the device, except for its
								 * sort */
	double		sort_ms;
	int64		range_rows;		/* shared sort: rows that this process has
								 * sorted; otherwise 0 */
	bool		divided;		/* does each process read ranges of its own? */
	int			ranges;			/* if so: their number, */
	int64		returned;		/* and the rows returned, so far */
	bool		fetches;		/* are rows fetched while they are returned? */
	double		fetch_ms;		/* if so: waiting for sorted rows, so far */
} GsSortReport;

/* What can be left to PostgreSQL. */
typedef enum GsTask
{
	GS_TASK_SORT,
	GS_TASK_INDEX_BUILD
} GsTask;

/*
 * Count a sort or an index build that is left to PostgreSQL, unless it is disabled or
 * too small to matter.  Raises an error if pg_gpusort.debug_require is set.
 */
extern void gpusort_requirement_leave(GsTask what, GsReason reason);

/* Raise an error if a sort was not done as pg_gpusort.debug_require demands. */
extern void gpusort_requirement_check(const GsSortReport *report);

#endif							/* GPUSORT_SORT_STATS_H */
