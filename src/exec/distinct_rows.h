/*-------------------------------------------------------------------------
 *
 * distinct_rows.h
 *		DISTINCT in an aggregate whose rows come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DISTINCT_ROWS_H
#define GPUSORT_DISTINCT_ROWS_H

#include "executor/nodeAgg.h"

/*
 * Make the transition function of an aggregate with DISTINCT skip rows that
 * are equal to the row before, within a group.  Allocates in the current
 * memory context, which must live as long as the execution.
 */
extern void gpusort_distinct_rows_connect(AggStatePerTrans pertrans);

typedef struct GsDistinctRows GsDistinctRows;

/*
 * The same for a caller that looks at all rows of a group at once, so that one state
 * serves the groups of all grouping sets.
 */
extern GsDistinctRows *gpusort_distinct_rows_create(AggStatePerTrans pertrans);

/* Begin a group. */
extern void gpusort_distinct_rows_begin(GsDistinctRows *rows);

/*
 * Does a row differ from the row before within the group?  'fcinfo' is the call of the
 * transition function for it.
 */
extern bool gpusort_distinct_rows_is_new(GsDistinctRows *rows,
										 FunctionCallInfo fcinfo);

#endif							/* GPUSORT_DISTINCT_ROWS_H */
