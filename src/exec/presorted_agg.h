/*-------------------------------------------------------------------------
 *
 * presorted_agg.h
 *		Aggregates that need no sort of their own, because rows come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRESORTED_AGG_H
#define GPUSORT_PRESORTED_AGG_H

#include "nodes/execnodes.h"

/* A group of more rows than this is sorted by radix, unless they come in order. */
#define GPUSORT_FEW_ROWS	128

/* Returns by what an aggregate sorts: SortGroupClauses, or NIL. */
static inline const List *
gpusort_agg_order_clauses(const Aggref *aggref)
{
	return aggref->aggdistinct != NIL ? aggref->aggdistinct : aggref->aggorder;
}

/*
 * Can the sort of this aggregate be left out if the rows of each group come in
 * its order?  'transition_oid' and 'final_oid' are its functions, and
 * 'has_initial' says whether its state has an initial value.  Aggregates with
 * DISTINCT or ORDER BY are PostgreSQL's own business since 16.
 */
extern bool gpusort_presorted_agg_possible(const Aggref *aggref,
										   Oid transition_oid, Oid final_oid,
										   bool has_initial);

/*
 * When the execution starts, if the state is an Agg: leave out the sorts of its aggregates that are
 * superfluous, and replace the others.
 */
extern void gpusort_presorted_agg_replace_sorts(PlanState *state);

#endif							/* GPUSORT_PRESORTED_AGG_H */
