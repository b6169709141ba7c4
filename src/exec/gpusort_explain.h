/*-------------------------------------------------------------------------
 *
 * gpusort_explain.h
 *		What EXPLAIN shows of GpuSort and GpuSortSink nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_EXPLAIN_H
#define GPUSORT_GPUSORT_EXPLAIN_H

#include "nodes/plannodes.h"

#include "exec/worker_reports.h"
#include "sort/sort_session.h"

/* Its header is another one from 18 on. */
struct ExplainState;

/* The sort keys of a GpuSort, with the ancestors of its state. */
extern void gpusort_explain_keys(const CustomScan *gpusort,
								 const GsSortKeys *keys, List *ancestors,
								 struct ExplainState *es);

/* With ANALYZE, as for a Sort: the leader's own sort, and then one per worker. */
extern void gpusort_explain_sort(const GsSessionReport *report,
								 struct ExplainState *es);
extern void gpusort_explain_sort_workers(const GsWorkerReports *reports,
										 struct ExplainState *es);

/*
 * With ANALYZE: the rows that all processes have added, unless that is -1; and,
 * from the GsSinkReports that there may be, each worker's part: always if it has
 * sorted it itself, as stock's Sort shows that.
 */
extern void gpusort_explain_sink(int64 nrows, const GsWorkerReports *reports,
								 bool writes_runs, struct ExplainState *es);

#endif							/* GPUSORT_GPUSORT_EXPLAIN_H */
