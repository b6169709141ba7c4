/*-------------------------------------------------------------------------
 *
 * gpusort_plan.h
 *		Makes the plan nodes GpuSort, GpuIncrementalSort and GpuSortSink.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_PLAN_H
#define GPUSORT_GPUSORT_PLAN_H

#include "nodes/plannodes.h"

#include "sort/base/sort_spec.h"

/*
 * Make a GpuSort node that is equivalent to 'sort' and has its children.
 * 'repeatable' says whether its input can be read again.
 */
extern CustomScan *gpusort_plan_from_sort(const Sort *sort, bool repeatable);

/* The same for a GpuIncrementalSort, whose input is not read again. */
extern CustomScan *gpusort_plan_from_incremental_sort(const IncrementalSort * sort);

/*
 * Make a GpuSortSink node over a partial plan, to be put below the Gather that
 * is the input of 'sort'.  'plan_node_id' must not be in use.
 */
extern CustomScan *gpusort_plan_sink(const Sort *sort, Plan *partial,
									 int plan_node_id);

/*
 * Register the nodes, so that parallel workers can read plans that contain
 * them.  Called once by _PG_init().
 */
extern void gpusort_plan_init(void);

#endif							/* GPUSORT_GPUSORT_PLAN_H */
