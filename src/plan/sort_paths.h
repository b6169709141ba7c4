/*-------------------------------------------------------------------------
 *
 * sort_paths.h
 *		Adds paths over sorts at GpuSort's cost for the planner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_PATHS_H
#define GPUSORT_SORT_PATHS_H

#include "plan/divided_paths.h"

/* Install the hooks for joins and for what is above them.  Called once by _PG_init(). */
extern void gpusort_join_paths_init(void);
extern void gpusort_sort_paths_init(void);

/*
 * Add paths that sort the rows of the node for GROUP BY, or for aggregates alone, by the groups and
 * by what the aggregates sort by, so that these need no sorts of their own.  Called after
 * all other paths have been added to its relation.  Returns whether one is best whose sort is
 * divided.
 */
extern bool gpusort_agg_paths_add(const GsSortedNode *group);

/* Add paths for window functions.  'window_rel' must have the planner's own paths. */
extern void gpusort_window_paths_add(PlannerInfo *root, RelOptInfo *input_rel,
									 RelOptInfo *window_rel);

/*
 * Add a path to the relation of a UNION, INTERSECT or EXCEPT, if it sorts enough rows.
 * 'rel' must have the planner's own paths.
 */
extern void gpusort_setop_paths_add(PlannerInfo *root, RelOptInfo *rel);

#endif							/* GPUSORT_SORT_PATHS_H */
