/*-------------------------------------------------------------------------
 *
 * gpusort_plan.h
 *		The plan nodes GpuSort and GpuSortSink, made from a Sort.
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

/*
 * Make the nodes known to readers of plans: parallel workers get it by name.
 * Called once by _PG_init().
 */
extern void gpusort_plan_init(void);

#endif							/* GPUSORT_GPUSORT_PLAN_H */
