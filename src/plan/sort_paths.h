/*-------------------------------------------------------------------------
 *
 * sort_paths.h
 *		Lets the planner know what a GpuSort costs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PATHS_H
#define GPUSORT_SORT_PATHS_H

/* Install the hook.  Called once by _PG_init(). */
extern void gpusort_sort_paths_init(void);

#endif							/* GPUSORT_SORT_PATHS_H */
