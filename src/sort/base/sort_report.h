/*-------------------------------------------------------------------------
 *
 * sort_report.h
 *		Reports how a sort was done.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_REPORT_H
#define GPUSORT_SORT_REPORT_H

#include "fallback.h"
#include "sort/base/sort_stats.h"

/* What GsSortReport.space_kb measures. */
typedef enum GsSortSpace
{
	GS_SPACE_MEMORY,
	GS_SPACE_DISK,
	GS_SPACE_DEVICE
} GsSortSpace;

/*
 * How a sort was done, for EXPLAIN.  Contains no pointers, because workers pass it to
 * their leader.
 */
typedef struct GsSortReport
{
	GsSortKind	kind;
	GsFallback	fallback;		/* why it is GS_KIND_EXTERNAL */
	GsFallback	gpu_reason;		/* why it is not GS_KIND_GPU */
	char		method[32];		/* as EXPLAIN names it */
	GsSortSpace space;
	int64		space_kb;
	double		drain_ms;		/* reading the input */
	double		wait_ms;		/* GPU: waiting for the device, except for its
								 * sort */
	double		sort_ms;
	int64		range_rows;		/* shared sort: rows that this process has
								 * sorted; otherwise 0 */
	bool		fetches;		/* are rows fetched while they are returned? */
	double		fetch_ms;		/* if so: waiting for sorted rows, so far */
} GsSortReport;

#endif							/* GPUSORT_SORT_REPORT_H */
