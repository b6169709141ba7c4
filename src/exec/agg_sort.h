/*-------------------------------------------------------------------------
 *
 * agg_sort.h
 *		Sorts the rows of an aggregate by radix, if they do not come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_SORT_H
#define GPUSORT_AGG_SORT_H

#include "executor/nodeAgg.h"

typedef struct GsAggSort GsAggSort;

/*
 * Create the sort of an aggregate in the current memory context, which must live as long
 * as the execution.  Returns NULL if PostgreSQL has to sort its rows.
 */
extern GsAggSort *gpusort_agg_sort_create(AggState *state, int transno);

/*
 * Have the aggregate use its sort.  The expression that calls the transition functions has
 * to be built again after that.  'nsorts' is the number of such sorts of the Agg.
 */
extern void gpusort_agg_sort_connect(GsAggSort *sort, int nsorts);

#endif							/* GPUSORT_AGG_SORT_H */
