/*-------------------------------------------------------------------------
 *
 * gpusort_explain.h
 *		Prints what EXPLAIN shows of GpuSort and GpuSortSink nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_EXPLAIN_H
#define GPUSORT_GPUSORT_EXPLAIN_H

#include "nodes/plannodes.h"

#include "exec/worker_reports.h"
#include "sort/sort.h"

/* Its header is a different one since PostgreSQL 18. */
struct ExplainState;

/*
 * Print the sort keys of a GpuSort.  'ancestors' are those of its plan state.
 */
extern void gpusort_explain_keys(const CustomScan *gpusort, List *ancestors,
								 struct ExplainState *es);

/* Print by which keys the other one of a pair is divided. */
extern void gpusort_explain_pair(const CustomScan *other, List *ancestors,
								 struct ExplainState *es);

/*
 * With ANALYZE, print how the leader sorted, and how each worker did, as for a
 * Sort.  Of a sort in batches, 'report' is that of the batch that needed most space, with the times
 * of all; otherwise 'nbatches' is 0.
 */
extern void gpusort_explain_sort(const GsSortReport *report, int64 nbatches,
								 struct ExplainState *es);
extern void gpusort_explain_sort_workers(const GsWorkerReports *reports,
										 struct ExplainState *es);

/*
 * With ANALYZE, print the number of rows that all processes have added, and each worker's part, if
 * there are reports.  Parts are shown with VERBOSE, or if the workers have sorted them and written
 * runs, as stock PostgreSQL shows the sorts of workers.
 */
extern void gpusort_explain_sink(int64 nrows, const GsWorkerReports *reports,
								 bool writes_runs, struct ExplainState *es);

#endif							/* GPUSORT_GPUSORT_EXPLAIN_H */
