/*-------------------------------------------------------------------------
 *
 * divided_sort.h
 *		A GpuSort below a Gather whose processes sort together and each return a part of the rows.
 *
 * The node is parallel-aware.  Rows that agree in the first sort keys are returned by one process,
 * so that what is above the sort, such as a window function, can be computed there:
 *
 *		Gather -> WindowAgg -> GpuSort -> Parallel Seq Scan
 *
 * The leader begins the sort when it makes the shared memory of the query, before it starts
 * workers.  When the node is executed in a process, this adds its share of the input, sorts with
 * the others (sort/team.h), and then returns the rows of the ranges that it takes.  No process
 * waits for one that does not execute the node.
 *
 * Two such nodes below a Merge Join are a pair.  They have the same sort keys, those of the join,
 * and each process returns the same ranges of both, so that it can join their rows:
 *
 *		Gather -> Merge Join -> GpuSort -> Parallel Seq Scan
 *							 -> GpuSort -> Parallel Seq Scan
 *
 * The first of them adds the rows of both, when it is executed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DIVIDED_SORT_H
#define GPUSORT_DIVIDED_SORT_H

#include "exec/gpusort_state.h"

/*
 * In the leader, before workers are launched, in the current memory context: begin the sort of the
 * node, after that of its pair also that.  Leaves node->sort NULL if one process will have to sort
 * all rows.
 */
extern void gpusort_divided_begin(GsNodeState *node, int nworkers);

/*
 * In each process, in the current memory context: add the rows of a node, or of both of a pair, and
 * have them sorted.  Sets node->sort to the sort whose rows this process returns, or leaves it NULL
 * if it returns none.
 */
extern void gpusort_divided_sort(GsNodeState *const *nodes, int n);

#endif							/* GPUSORT_DIVIDED_SORT_H */
