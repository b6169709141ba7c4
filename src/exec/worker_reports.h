/*-------------------------------------------------------------------------
 *
 * worker_reports.h
 *		What parallel workers tell their leader about a node.
 *
 * A report is a struct without pointers, of the same type for all workers: of a
 * GpuSort a GsSessionReport, of a sink a GsSinkReport.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORKER_REPORTS_H
#define GPUSORT_WORKER_REPORTS_H

#include "sort/disk/shared_run.h"
#include "sort/sort_session.h"

typedef struct GsSinkReport
{
	int64		nrows;			/* that it has sent or sorted */
	bool		sorted;			/* it has sorted them itself: */
	GsSessionReport session;
	GsSharedRun run;
} GsSinkReport;

/* Lies in the query's dynamic shared memory, or is the leader's copy. */
typedef struct GsWorkerReports GsWorkerReports;

/* Bytes to allocate for the reports of so many workers. */
extern Size gpusort_worker_reports_size(int nworkers, Size report_bytes);

/* Make such memory, aligned as by MAXALIGN(), reports of which none is there. */
extern void gpusort_worker_reports_init(GsWorkerReports *reports, int nworkers,
										Size report_bytes);

/* For a worker: put its report in the place of an earlier one, if any. */
extern void gpusort_worker_reports_publish(GsWorkerReports *reports,
										   const void *report);

/* A copy of what is there now, in a memory context. */
extern GsWorkerReports *gpusort_worker_reports_copy(GsWorkerReports *reports,
													MemoryContext context);

/* The workers, of whom some may have made no report; none of NULL. */
extern int	gpusort_worker_reports_count(const GsWorkerReports *reports);

/* The report of a worker, or NULL if it made none. */
extern const void *gpusort_worker_reports_get(const GsWorkerReports *reports,
											  int worker);

#endif							/* GPUSORT_WORKER_REPORTS_H */
