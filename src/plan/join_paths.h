/*-------------------------------------------------------------------------
 *
 * join_paths.h
 *		Lets the planner know what a GpuSort costs below a merge join.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOIN_PATHS_H
#define GPUSORT_JOIN_PATHS_H

/* Install the hook.  Called once by _PG_init(). */
extern void gpusort_join_paths_init(void);

#endif							/* GPUSORT_JOIN_PATHS_H */
