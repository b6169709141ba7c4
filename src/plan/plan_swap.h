/*-------------------------------------------------------------------------
 *
 * plan_swap.h
 *		Replaces Sort nodes with GpuSort nodes in finished plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_SWAP_H
#define GPUSORT_PLAN_SWAP_H

#include "nodes/plannodes.h"

/*
 * While a plan is made: make a GpuSort that is divided by its first 'divided' keys, from a Sort
 * below a Gather, whose child it gets.  Is it 'paired' with the other input of a Merge Join or a
 * SetOp?
 */
extern Plan *gpusort_plan_divided_sort(const Sort *sort, int divided, bool paired);

/*
 * Install the hooks and register the nodes, so that parallel workers can read plans that
 * contain them.  Called once by _PG_init().
 */
extern void gpusort_plan_swap_init(void);

#endif							/* GPUSORT_PLAN_SWAP_H */
