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

#include "exec/row_source.h"
#include "sort/producer.h"

/* In the dynamic shared memory of the query. */
typedef struct GsDividedShared
{
	GsParallelSort parallel;	/* the sort of all; without a team, one
								 * process sorts all rows */
	pg_atomic_uint32 claimed;	/* has a process begun to execute the node? It
								 * counts the sort, or does it alone */
} GsDividedShared;

/* What a process knows of it. */
typedef struct GsDividedSort
{
	GsDividedShared *shared;	/* NULL if one process executes the plan */
	GsSortSpec *spec;			/* spec->group_keys are the keys by which it
								 * is divided */
	GsRowSource *source;
	bool		paired;			/* is there a second sort of a pair? They use
								 * no GPU */
	GsSort	   *sort;			/* the leader's, from begin() on; or NULL */
} GsDividedSort;

/*
 * In the leader, before workers are launched: begin the sort, in the current memory context.
 * Leaves divided->sort NULL if one process will have to sort all rows.
 */
extern void gpusort_divided_begin(GsDividedSort *divided, int nworkers);

/* Then, for both sorts of a pair: make them one.  May leave both to one process. */
extern void gpusort_divided_pair(GsDividedSort *first, GsDividedSort *second);

/*
 * In each process: add the rows of the source and have them sorted.  Sets divided->sort to the sort
 * whose rows this process returns, in the current memory context; or leaves it NULL if it returns
 * none.  'second' is the other one of a pair, or NULL.
 */
extern void gpusort_divided_sort(GsDividedSort *divided, GsDividedSort *second);

#endif							/* GPUSORT_DIVIDED_SORT_H */
