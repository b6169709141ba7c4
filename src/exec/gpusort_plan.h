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

#include "key/key_plan.h"

/* Make the GpuSort node that does what 'sort' does, with its children. */
extern CustomScan *gpusort_plan_from_sort(const Sort *sort);

/* The sort keys of a Sort or GpuSort node; they point into the node. */
extern GsSortKeys gpusort_plan_keys_of_sort(const Sort *sort);
extern GsSortKeys gpusort_plan_keys(const CustomScan *gpusort);

/*
 * Make the node known to readers of plans: parallel workers get it by name.
 * Called once by _PG_init().
 */
extern void gpusort_plan_init(void);

#endif							/* GPUSORT_GPUSORT_PLAN_H */
