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

/*
 * In the leader, before workers are launched: begin the sort, by spec->group_keys keys, in the
 * current memory context.  Returns NULL if one process will have to sort all rows.
 */
extern GsSort *gpusort_divided_begin(GsDividedShared *shared, GsSortSpec *spec, int nworkers);

/*
 * In each process: add the rows of 'source' and have them sorted.  'sort' is the leader's, or NULL
 * in a worker.  Returns the sort whose rows this process returns, in the current memory context; or
 * NULL if it returns none.
 */
extern GsSort *gpusort_divided_sort(GsDividedShared *shared, GsSortSpec *spec, GsSort *sort,
									GsRowSource *source);

#endif							/* GPUSORT_DIVIDED_SORT_H */
