/*-------------------------------------------------------------------------
 *
 * sort_cost.h
 *		What a GpuSort costs, and paths that sort at this cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_COST_H
#define GPUSORT_SORT_COST_H

#include "nodes/pathnodes.h"

/*
 * Make a path that sorts 'input' at GpuSort's cost, which is of 'rel' and not
 * yet in its list; the Sort that it becomes will be swapped.  'bound' is how
 * many rows a LIMIT asks for, or GPUSORT_NO_BOUND.  Returns NULL if the sort
 * would not be taken over.
 */
extern Path *gpusort_cost_sort_path(PlannerInfo *root, RelOptInfo *rel,
									Path *input, List *pathkeys,
									double bound);

/*
 * The same over a Gather of 'partial', a partial path of 'input_rel', whose
 * processes put their rows into a GPU session themselves, or sort them and write
 * runs, so that none goes through the Gather.  Sets *gpu to whether a GPU would
 * be tried.
 */
extern Path *gpusort_cost_parallel_sort_path(PlannerInfo *root,
											 RelOptInfo *rel,
											 RelOptInfo *input_rel,
											 Path *partial, double rows,
											 List *pathkeys, double bound,
											 bool *gpu);

/* Will such a sort need no disk, as far as can be told? */
extern bool gpusort_cost_in_memory(const Path *sort_path);

/*
 * Lower the costs of 'path' so that it is preferred to 'hash', if that is a
 * HashAgg or a hash join whose hash table will cost more than the planner
 * charges, and so much more that 'path' is the faster one.  'sorts' are the
 * sorts made here that it is over, one or two of them, or NULL in their place.
 */
extern void gpusort_cost_prefer(Path *path, Path *const sorts[2],
								const Path *hash);

#endif							/* GPUSORT_SORT_COST_H */
