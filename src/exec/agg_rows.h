/*-------------------------------------------------------------------------
 *
 * agg_rows.h
 *		Sorts the rows of a group of an aggregate.
 *
 * A row is what an aggregate passes to its transition function, and what it sorts
 * by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_ROWS_H
#define GPUSORT_AGG_ROWS_H

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

/* In which order an aggregate wants its rows: the same for all groups. */
typedef struct GsAggRowOrder GsAggRowOrder;

/* The rows of a group. */
typedef struct GsAggRows GsAggRows;

/*
 * Create the order of an aggregate, which must have one, in the current memory
 * context, which must live as long as the execution.  Returns NULL if the rows cannot
 * be sorted by radix.
 */
extern GsAggRowOrder *gpusort_agg_row_order_create(const AggState *agg,
												   const Aggref *aggref);

/* Set how many groups can be sorted at the same time: they share pg_gpusort.work_mem. */
extern void gpusort_agg_row_order_share(GsAggRowOrder *order, int ngroups);

/*
 * Begin a group, in the current memory context.  The end of that context releases
 * everything.  'set' is the number of its grouping set: of each set there must be one
 * group at a time.
 */
extern GsAggRows *gpusort_agg_rows_begin(GsAggRowOrder *order, int set);

/* Add a copy of the row that is passed to a transition function, after its state. */
extern void gpusort_agg_rows_add(GsAggRows *rows, FunctionCallInfo fcinfo);

/*
 * Sort all rows, and then return one after the other.  It is valid until the next call.
 * gpusort_agg_rows_next() returns false after the last row, and releases the rows.
 */
extern void gpusort_agg_rows_sort(GsAggRows *rows);
extern bool gpusort_agg_rows_next(GsAggRows *rows, NullableDatum *row);

#endif							/* GPUSORT_AGG_ROWS_H */
