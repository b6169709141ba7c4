/*-------------------------------------------------------------------------
 *
 * session_report.h
 *		What a sort session tells about the sort it has done.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSION_REPORT_H
#define GPUSORT_SESSION_REPORT_H

#include "fallback.h"
#include "sort/base/sort_stats.h"

/* What GsSessionReport.space_kb measures. */
typedef enum GsSessionSpace
{
	GS_SPACE_MEMORY,
	GS_SPACE_DISK,
	GS_SPACE_DEVICE
} GsSessionSpace;

/*
 * How a session did its work, for EXPLAIN.  Holds no pointers: workers pass it
 * to their leader.
 */
typedef struct GsSessionReport
{
	GsSessionKind kind;
	GsFallback	fallback;		/* why it is GS_SESSION_EXTERNAL */
	GsFallback	gpu_reason;		/* why it is not GS_SESSION_GPU */
	char		method[32];		/* as EXPLAIN names it */
	GsSessionSpace space;
	int64		space_kb;
	double		drain_ms;		/* reading the input */
	double		wait_ms;		/* GPU: waiting for the device, without its
								 * sort */
	double		sort_ms;
	double		fetch_ms;		/* GPU: waiting for sorted rows, so far */
} GsSessionReport;

#endif							/* GPUSORT_SESSION_REPORT_H */
