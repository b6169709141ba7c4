/*-------------------------------------------------------------------------
 *
 * sort_paths.h
 *		Adds paths over sorts at GpuSort's cost for the planner, above joins.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PATHS_H
#define GPUSORT_SORT_PATHS_H

/* Install the hook.  Called once by _PG_init(). */
extern void gpusort_sort_paths_init(void);

#endif							/* GPUSORT_SORT_PATHS_H */
