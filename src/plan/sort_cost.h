/*-------------------------------------------------------------------------
 *
 * sort_cost.h
 *		Estimates what a GpuSort costs, and makes paths that sort at this cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_COST_H
#define GPUSORT_SORT_COST_H

#include "access/htup.h"
#include "nodes/pathnodes.h"

/* A path must be cheaper by this factor to be preferred: the planner compares costs fuzzily. */
#define GPUSORT_CHEAPER		0.98

/*
 * Make a path of 'rel' that sorts 'input' at GpuSort's cost.  It is not added
 * to the list of paths.  The Sort that it becomes will be swapped.  'bound' is
 * the number of rows that a LIMIT wants, or GPUSORT_NO_BOUND.  Returns NULL if
 * the sort would not be taken over.
 */
extern Path *gpusort_cost_sort_path(PlannerInfo *root, RelOptInfo *rel,
									Path *input, List *pathkeys,
									double bound);

/*
 * The same over a Gather of 'partial', a partial path.  The processes below the Gather put their
 * rows into a GPU session directly, or sort them and write runs, so that no row passes through the
 * Gather.
 */
extern Path *gpusort_cost_parallel_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *partial,
											 double rows, List *pathkeys, double bound);

/*
 * Make a path that sorts 'partial', a partial path of 'rows' rows in all processes, in a divided
 * sort, with the costs of one process.  Returns NULL if that is not possible, or if the sort would
 * not be taken over.
 */
extern Path *gpusort_cost_divided_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *partial,
											double rows, List *pathkeys);

/*
 * Returns the correlation between the values of a column and the places of its rows, by its
 * statistics: 1 if the table is in their order, or in the opposite one.
 */
extern double gpusort_cost_correlation(HeapTuple statistics);

/*
 * Returns what a path costs.  The planner charges the scan of a whole index up to twice what it
 * takes if the table is in its order: pages of the index as if they were anywhere, and if it has
 * several columns, pages of the table, too.
 */
extern Cost gpusort_cost_index_scan(const PlannerInfo *root, const Path *path);

/* Returns the cheapest partial path of a relation, or NULL if there is none. */
extern Path *gpusort_cost_partial_path(const RelOptInfo *rel);

/*
 * Make the cheaper one of these two paths, for a sort of all rows.  If 'partial' is NULL, one
 * process sorts.
 */
extern Path *gpusort_cost_cheapest_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *input,
											 Path *partial, List *pathkeys);

/*
 * Returns a lower bound of the startup cost of such a path, whatever its sort keys are.
 */
extern Cost gpusort_cost_sort_minimum(const Path *input, const Path *partial);

/* Will such a sort need no disk, as far as the estimates tell? */
extern bool gpusort_cost_in_memory(const Path *sort_path);

/*
 * Lower the costs of 'path' so that it is preferred to 'hash'.  This is done
 * only if 'hash' is a HashAgg, a HashSetOp or a hash join whose hash table will cost more
 * than the planner charges, by so much that 'path' is faster.  'sorts' are the
 * sorts made here below 'path'; one of them may be NULL.
 */
extern void gpusort_cost_prefer(Path *path, Path *const sorts[2],
								const Path *hash);

/*
 * The same for a path over 'sort' that replaces a hash table of groups, of which only
 * 'groups' are certain.  If the planner expects too many, it charges the hash table for
 * memory or files that it does not need.  Returns false if 'path' is not worth adding,
 * because the hash table would be cheaper with only these groups.  'costs' are those of
 * the aggregates, or NULL.
 */
extern bool gpusort_cost_prefer_to_agg(PlannerInfo *root, Path *path, Path *sort,
									   AggPath *agg,
									   const AggClauseCosts *costs,
									   double groups);

/*
 * Lower the costs of 'path' so that it is preferred to 'other', which is charged more if it
 * costs hardly more than the inputs of 'sorts'.  Those are made here below 'path', or the first is
 * 'path' itself; the other one may be NULL.
 */
extern void gpusort_cost_prefer_sort(Path *path, Path *const sorts[2], Path *other);

/*
 * Set the cost of a Gather over 'partial' so that it is preferred to 'best' and to the paths of
 * 'rel', even if a sort above it takes another 'order', but not to less than its input costs.
 * Instead, those may be charged more.
 */
extern void gpusort_cost_prefer_gather(Path *gather, const Path *partial, RelOptInfo *rel,
									   Path *best, Cost order);

/*
 * Returns the cost of the cache misses of a hash table, which the planner does
 * not charge, and of a HashSetOp's own work, of which it charges little.
 * Returns 0 if 'path' is neither a HashAgg, a HashSetOp nor a hash join.
 */
extern Cost gpusort_cost_hash_misses(const Path *path);

#endif							/* GPUSORT_SORT_COST_H */
