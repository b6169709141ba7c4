/*-------------------------------------------------------------------------
 *
 * row_cost.h
 *		What it costs to sort a row, by GpuSort and by PostgreSQL's own sort.
 *
 * All costs are in units of cpu_operator_cost, one of which stands for 6 ns on
 * the machine where they were measured; see docs/design/planner.md.  They do
 * not include what the input costs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_COST_H
#define GPUSORT_ROW_COST_H

#include "key/key_plan.h"
#include "plan/row_order.h"
#include "plan/sort_candidate.h"

/* The cost of a GpuSort whose rows stay in memory. */
typedef struct GsRowCost
{
	double		keep;			/* to take and sort a row */
	double		emit;			/* to return it */
} GsRowCost;

extern GsRowCost gpusort_row_cost(const GsSortCandidate *candidate,
								  const GsKeyShape *key, bool gpu);

/* A lower bound of 'keep', which is faster to compute. */
extern double gpusort_row_cost_minimum(int width);

/* What a row costs in addition if the rows do not stay in memory. */
#define GPUSORT_DISK_ROW_COST	5.0

/*
 * Is a GpuSort at least a tenth faster than PostgreSQL's sort, if rows come in
 * this order?  It always is if they are unordered.
 */
extern bool gpusort_row_cost_gains(const GsSortCandidate *candidate,
								   const GsKeyShape *key, GsRowOrder order);

#endif							/* GPUSORT_ROW_COST_H */
