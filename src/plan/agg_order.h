/*-------------------------------------------------------------------------
 *
 * agg_order.h
 *		Determines in which order the aggregates of a query want their rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_ORDER_H
#define GPUSORT_AGG_ORDER_H

#include "nodes/pathnodes.h"

typedef struct GsAggOrder
{
	List	   *pathkeys;		/* of the groups, then of the aggregates */
	List	   *exprs;			/* that the latter compare */
	Cost		own_sorts;		/* what the aggregates' own sorts cost that
								 * become superfluous, if the planner does not
								 * charge for them */
} GsAggOrder;

/*
 * Find the order of rows that makes most of the aggregates' own sorts
 * superfluous.  'rows' and 'groups' are estimates.  Returns false if there is
 * none, or if rows must not be reordered for it, because the result of another
 * aggregate depends on their order.
 */
extern bool gpusort_agg_order_find(PlannerInfo *root, double rows,
								   double groups, GsAggOrder *order);

#endif							/* GPUSORT_AGG_ORDER_H */
