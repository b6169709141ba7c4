/*-------------------------------------------------------------------------
 *
 * join_paths.h
 *		Adds merge joins over sorts at GpuSort's cost for the planner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOIN_PATHS_H
#define GPUSORT_JOIN_PATHS_H

/* Install the hook.  Called once by _PG_init(). */
extern void gpusort_join_paths_init(void);

#endif							/* GPUSORT_JOIN_PATHS_H */
