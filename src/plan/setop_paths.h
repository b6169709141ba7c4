/*-------------------------------------------------------------------------
 *
 * setop_paths.h
 *		Adds paths over sorts at GpuSort's cost for set operations.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SETOP_PATHS_H
#define GPUSORT_SETOP_PATHS_H

#include "nodes/pathnodes.h"

/*
 * Add a path to the relation of a UNION, INTERSECT or EXCEPT, if it sorts enough rows.
 * 'rel' must have the planner's own paths.
 */
extern void gpusort_setop_paths_add(PlannerInfo *root, RelOptInfo *rel);

#endif							/* GPUSORT_SETOP_PATHS_H */
