/*-------------------------------------------------------------------------
 *
 * worker_reports.h
 *		What parallel workers report to their leader about a node.
 *
 * A report is a struct without pointers, of the same type for all workers: a
 * GsSortReport for a GpuSort, and a GsProducerReport for a sink.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORKER_REPORTS_H
#define GPUSORT_WORKER_REPORTS_H

/* Stored in the query's dynamic shared memory, or the leader's copy. */
typedef struct GsWorkerReports GsWorkerReports;

/* Returns the bytes to allocate for the reports of 'nworkers' workers. */
extern Size gpusort_worker_reports_size(int nworkers, Size report_bytes);

/*
 * Initialize such memory, which must be aligned by MAXALIGN(), without any
 * reports.
 */
extern void gpusort_worker_reports_init(GsWorkerReports *reports, int nworkers,
										Size report_bytes);

/*
 * In a worker: publish its report, or replace the one that it has published.
 */
extern void gpusort_worker_reports_publish(GsWorkerReports *reports,
										   const void *report);

/* Copy the reports that are published now into a memory context. */
extern GsWorkerReports *gpusort_worker_reports_copy(GsWorkerReports *reports,
													MemoryContext context);

/*
 * Returns the number of workers, some of which may have published no report.
 * 'reports' may be NULL, which has no workers.
 */
extern int	gpusort_worker_reports_count(const GsWorkerReports *reports);

/* Returns the report of a worker, or NULL if it published none. */
extern const void *gpusort_worker_reports_get(const GsWorkerReports *reports,
											  int worker);

#endif							/* GPUSORT_WORKER_REPORTS_H */
