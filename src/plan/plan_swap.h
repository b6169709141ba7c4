/*-------------------------------------------------------------------------
 *
 * plan_swap.h
 *		Replaces Sort nodes with GpuSort nodes in finished plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_SWAP_H
#define GPUSORT_PLAN_SWAP_H

/*
 * Install the hooks and register the nodes, so that parallel workers can read plans that
 * contain them.  Called once by _PG_init().
 */
extern void gpusort_plan_swap_init(void);

#endif							/* GPUSORT_PLAN_SWAP_H */
