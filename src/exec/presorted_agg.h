/*-------------------------------------------------------------------------
 *
 * presorted_agg.h
 *		Aggregates that need no sort of their own, because rows come in order, and what the
 *		files call of each other that sort the rows of the others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRESORTED_AGG_H
#define GPUSORT_PRESORTED_AGG_H

#include "executor/nodeAgg.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

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

/* ---- An aggregate whose rows do not come in order: agg_sort.c ---- */

/*
 * Have an aggregate with DISTINCT or ORDER BY, or a percentile, sort its rows in the current memory
 * context, which must live as long as the execution.  'nsorts' is the number of aggregates of the
 * Agg that may do so.  The expression that calls the transition functions has to be built again
 * after that.  Returns false if PostgreSQL has to sort the rows.
 */
extern bool gpusort_agg_sort_connect(AggState *state, int transno, int nsorts);

/*
 * Make an aggregate one without DISTINCT and ORDER BY, which has the first 'nargs' arguments.
 * Those that only ORDER BY needs may be among the others.
 */
extern void gpusort_agg_leave_out_order(AggStatePerTrans pertrans, int nargs);

/*
 * Make the transition function of an aggregate with DISTINCT, whose rows come in order, skip rows
 * that are equal to the row before, within a group.  Allocates in the current memory context, which
 * must live as long as the execution.
 */
extern void gpusort_agg_skip_duplicates(AggStatePerTrans pertrans);

/*
 * ---- The rows of a group: agg_rows.c ----
 *
 * A row is what an aggregate passes to its transition function, and what it sorts by.
 */

/* In which order an aggregate wants its rows: the same for all groups. */
typedef struct GsAggRowOrder GsAggRowOrder;

/* The rows of a group. */
typedef struct GsAggRows GsAggRows;

/*
 * Create the order of an aggregate, which must have one, in the current memory
 * context, which must live as long as the execution.  'nsorts' is as above.  'sorted' is the node
 * below the Agg if its rows come in order, or NULL.  Returns NULL if they do not, and cannot be
 * sorted by radix.
 */
extern GsAggRowOrder *gpusort_agg_row_order_create(AggState *agg, const Aggref *aggref,
												   int nsorts, const PlanState *sorted);

/*
 * Begin a group.  Its memory context releases everything.  Of each grouping set there must be one
 * group at a time.  If the node below is a GpuSort that withholds its rows, the group has these.
 */
extern GsAggRows *gpusort_agg_rows_begin(FunctionCallInfo fcinfo, GsAggRowOrder *order);

/* Add a copy of the row that is passed to a transition function, after its state. */
extern void gpusort_agg_rows_add(FunctionCallInfo fcinfo, GsAggRows *rows);

/*
 * Sort all rows, and then return one after the other.  It is valid until the next call.
 * gpusort_agg_rows_next() returns false after the last row, and releases the rows.
 */
extern void gpusort_agg_rows_sort(GsAggRows *rows);
extern bool gpusort_agg_rows_next(GsAggRows *rows, NullableDatum *row);

/*
 * Of an ordered-set aggregate, whose rows are single values that are not NULL, instead: returns
 * their number, and the value at a position, from 0.  It is valid until the next call, or a copy in
 * the current memory context.
 */
extern int64 gpusort_agg_rows_count(const GsAggRows *rows);
extern Datum gpusort_agg_rows_get(GsAggRows *rows, int64 position);
extern Datum gpusort_agg_rows_copy(GsAggRows *rows, int64 position);

/* ---- Percentiles and the mode: percentiles.c ---- */

/* Can an ordered-set aggregate with these functions be computed here? */
extern bool gpusort_percentiles_supports(const Aggref *aggref,
										 Oid transition_oid, Oid final_oid);

/*
 * Likewise, all aggregates with a transition state?  If 'all_values' is false, also none of
 * them may need all values, as mode() does.
 */
extern bool gpusort_percentiles_support(const AggState *state, int transno, bool all_values);

/*
 * Replace the functions of all aggregates with a transition state, if they are supported and
 * gpusort_agg_row_order_create() does not return NULL.  Otherwise returns false.
 */
extern bool gpusort_percentiles_connect(AggState *state, int transno, int nsorts,
										const PlanState *sorted);

#endif							/* GPUSORT_PRESORTED_AGG_H */
