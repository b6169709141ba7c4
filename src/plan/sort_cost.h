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

/*
 * Set the costs of *floor to lower bounds for such a path, whatever its sort keys
 * are.  With 'caution' these are bounds of what the path is charged at first;
 * without, of what gpusort_cost_prefer() can lower that to.
 */
extern void gpusort_cost_sort_floor(const Path *input, bool caution,
									Path *floor);

/* A bound of its startup cost that is less tight, and takes less time to compute. */
extern Cost gpusort_cost_sort_minimum(const Path *input, bool caution);

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

/*
 * The cost of the cache misses of a hash table, which the planner does not charge.
 * Returns 0 if 'path' is neither a HashAgg nor a hash join.
 */
extern Cost gpusort_cost_hash_misses(const Path *path);

#endif							/* GPUSORT_SORT_COST_H */
