/*-------------------------------------------------------------------------
 *
 * divided_paths.h
 *		Adds partial paths over sorts that are divided among processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DIVIDED_PATHS_H
#define GPUSORT_DIVIDED_PATHS_H

#include "nodes/pathnodes.h"

/*
 * What it takes to add a sorted row to the state of an aggregate, to end a group, and to compare a
 * row with the one before it, in addition to what the planner charges, in the units of
 * sort_candidate.h.
 */
#define GPUSORT_GROUP_ROW_COST	15.0
#define GPUSORT_GROUP_COST		60.0
#define GPUSORT_UNIQUE_ROW_COST	8.0

/*
 * Make a partial path of 'rel' that sorts 'partial', the rows of each process, and is divided by
 * the first 'divided' keys.  All processes have 'rows' rows.  Returns NULL if 'divided' is 0, or if
 * the sort would not be taken over.
 */
extern Path *gpusort_divided_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *partial,
									   double rows, List *pathkeys, int divided);

/*
 * Returns what 'best' takes, which groups 'rows' rows at 'row_cost' each.  If it does so in
 * parallel, each process has 'process_rows' of them.
 */
extern Cost gpusort_divided_cost_of_groups(const Path *best, double rows, double process_rows,
										   double row_cost);

/*
 * Add 'partial', a path over such a sort, and a Gather of it if that takes clearly less time than
 * any other way, which is 'other'.  'node' is what the nodes above the sort take in one process in
 * addition to what the planner charges; 'rows' is the number of rows that pass the Gather.  The
 * process that has the largest group takes longest.  Since the planner charges much for rows that
 * pass, a path that is better is preferred to 'best', the cheapest path so far, and to those of
 * 'rel'.  Returns whether it is.
 */
extern bool gpusort_divided_path_add(PlannerInfo *root, RelOptInfo *rel, Path *partial,
									 const Path *sort, Cost node, double rows, Cost other,
									 Path *best);

/*
 * Add paths for the window functions of 'windows', WindowAggPaths of the planner's best path, the
 * lowest one first.  Each process computes them for some of the partitions.  Called after the
 * planner has added its paths to 'window_rel'.  'best' is the best path in one process.  Returns
 * whether one of the paths is better.
 */
extern bool gpusort_divided_windows_add(PlannerInfo *root, RelOptInfo *input_rel,
										RelOptInfo *window_rel, List *windows, Path *best);

#endif							/* GPUSORT_DIVIDED_PATHS_H */
