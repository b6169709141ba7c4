/*-------------------------------------------------------------------------
 *
 * worker_reports.h
 *		What parallel workers report to their leader about a GpuSort or a sink.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORKER_REPORTS_H
#define GPUSORT_WORKER_REPORTS_H

#include "sort/producer.h"

/* Of a GpuSort that is executed in a worker, only 'sort' is set. */
typedef struct GsWorkerReport
{
	bool		published;
	GsProducerReport report;
} GsWorkerReport;

/* Stored in the query's dynamic shared memory, or the leader's copy. */
typedef struct GsWorkerReports
{
	int			nworkers;
	GsWorkerReport workers[FLEXIBLE_ARRAY_MEMBER];
} GsWorkerReports;

/* Returns the bytes to allocate for the reports of 'nworkers' workers. */
extern Size gpusort_worker_reports_size(int nworkers);

/* Initialize such memory without any reports. */
extern void gpusort_worker_reports_init(GsWorkerReports *reports, int nworkers);

/* In a worker: publish its report, or replace the one that it has published. */
extern void gpusort_worker_reports_publish(GsWorkerReports *reports,
										   const GsProducerReport *report);

/* Copy the reports that are published now into a memory context. */
extern GsWorkerReports *gpusort_worker_reports_copy(GsWorkerReports *reports,
													MemoryContext context);

/* Returns the report of a worker, or NULL if it published none. */
extern const GsProducerReport *gpusort_worker_reports_get(const GsWorkerReports *reports,
														  int worker);

#endif							/* GPUSORT_WORKER_REPORTS_H */
