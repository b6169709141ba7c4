/*-------------------------------------------------------------------------
 *
 * agg_private.h
 *		What the files that sort the rows of aggregates, or leave sorts of theirs out, call
 *		of each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_PRIVATE_H
#define GPUSORT_AGG_PRIVATE_H

#include "executor/nodeAgg.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

#include "sort/base/sort_spec.h"
#include "sort/sort.h"

/* ---- An aggregate whose rows do not come in order: agg_sort.c ---- */

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

/*
 * Make an aggregate one without DISTINCT and ORDER BY, which has the first 'nargs' arguments.
 * Those that only ORDER BY needs may be among the others.
 */
extern void gpusort_agg_leave_out_order(AggStatePerTrans pertrans, int nargs);

/*
 * ---- Sorting the rows of a group: agg_rows.c ----
 *
 * A row is what an aggregate passes to its transition function, and what it sorts by.
 */

/* In which order an aggregate wants its rows: the same for all groups. */
typedef struct GsAggRowOrder GsAggRowOrder;

/* The rows of a group. */
typedef struct GsAggRows GsAggRows;

/* Returns by what an aggregate sorts: SortGroupClauses, or NIL. */
extern const List *gpusort_agg_order_clauses(const Aggref *aggref);

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

/* ---- DISTINCT of rows that come in order: distinct_rows.c ---- */

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

/* ---- Percentiles and the mode of values that come in order: percentiles.c ---- */

/* Can an ordered-set aggregate with these functions be computed here? */
extern bool gpusort_percentiles_supports(const Aggref *aggref,
										 Oid transition_oid, Oid final_oid);

/*
 * Likewise, all aggregates with a transition state?  If 'all_values' is false, also none of
 * them may need all values, as mode() does.
 */
extern bool gpusort_percentiles_support(const AggState *state, int transno, bool all_values);

/*
 * Replace the functions of all aggregates with a transition state, which
 * gpusort_percentiles_support(), and whose values will come in order.  'sort' is the GpuSort below
 * if it may withhold its rows, or NULL.
 */
extern void gpusort_percentiles_connect(AggState *state, int transno, PlanState *sort);

/* ---- The values of a group, which come in order: sorted_values.c ---- */

/* NULL instead of this struct means that there are no values. */
typedef struct GsSortedValues GsSortedValues;

/*
 * Makes an empty list of values of a type.  It lives until the end of the group of the
 * aggregate that 'fcinfo' calls.
 */
extern GsSortedValues *gpusort_sorted_values_create(FunctionCallInfo fcinfo, Oid type);

/*
 * The same for all values that are first keys of a sort, which has withheld its rows.  Returns NULL
 * if there are none.
 */
extern GsSortedValues *gpusort_sorted_values_of_sort(FunctionCallInfo fcinfo, Oid type,
													 GsSort *sort);

/* Appends a value that is not NULL.  A value that is passed by reference is copied. */
extern void gpusort_sorted_values_add(FunctionCallInfo fcinfo,
									  GsSortedValues *sorted, Datum value);

extern int64 gpusort_sorted_values_count(const GsSortedValues *sorted);

/*
 * Returns the value at a position, from 0.  It is valid until the next call if it is passed by
 * reference.  Ascending positions are fastest.
 */
extern Datum gpusort_sorted_values_get(GsSortedValues *sorted, int64 position);

/* The same, but values passed by reference are copied into the current memory context. */
extern Datum gpusort_sorted_values_copy(GsSortedValues *sorted, int64 position);

/*
 * Frees the memory and the file of values that are passed by value.  The list cannot be used
 * any more.
 */
extern void gpusort_sorted_values_clear(GsSortedValues *sorted);

#endif							/* GPUSORT_AGG_PRIVATE_H */
