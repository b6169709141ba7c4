/*-------------------------------------------------------------------------
 *
 * gpusort_plan.h
 *		The GpuSort plan node: what the planner hands to the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_PLAN_H
#define GPUSORT_GPUSORT_PLAN_H

#include "nodes/plannodes.h"

#include "sort/base/session_spec.h"

/*
 * Make the GpuSort node that does what 'sort' does, with its children, of whose
 * rows 'repeat' is known.
 */
extern CustomScan *gpusort_plan_from_sort(const Sort *sort,
										  GsInputRepeat repeat);

/*
 * Make the GpuSortSink node, with a plan_node_id that is not taken, that stands
 * between a partial plan and a Gather which is the input of 'sort'.
 */
extern CustomScan *gpusort_plan_sink(const Sort *sort, Plan *partial,
									 int plan_node_id);

/* Can the input of a GpuSort node be read a second time? */
extern GsInputRepeat gpusort_plan_input_repeat(const CustomScan *gpusort);

/* The sort keys of a Sort, GpuSort or GpuSortSink; they point into the node. */
extern GsSortKeys gpusort_plan_keys_of_sort(const Sort *sort);
extern GsSortKeys gpusort_plan_keys(const CustomScan *gpusort);

/*
 * Make the node known to readers of plans: parallel workers get it by name.
 * Called once by _PG_init().
 */
extern void gpusort_plan_init(void);

#endif							/* GPUSORT_GPUSORT_PLAN_H */
