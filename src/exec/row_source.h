/*-------------------------------------------------------------------------
 *
 * row_source.h
 *		Reads the input of a sort node or a GpuSortSink node, and returns the sorted rows.
 *
 * A plain scan is read page by page; any other input is executed.  The sort gets rows in one of
 * three forms: as they are; as whole tuples (sort/base/tuple_rows.h), if there are many columns and
 * the input has tuples; or as narrow rows.  If a query uses only some columns of a subquery, the
 * planner has its plan return NULL for the others, of which there may be many.  Narrow rows lack
 * these columns, so that the sort need not store them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_SOURCE_H
#define GPUSORT_ROW_SOURCE_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"

#include "sort/base/sort_spec.h"
#include "sort/sort.h"

typedef struct GsRowSource GsRowSource;

/*
 * Create a source that reads the rows of 'input', which are of type 'tupdesc', in the current
 * memory context.  'sorted' is the node whose rows go to the sort: the input, or that of a sink
 * below it.  Sets what 'spec' says of the rows.  spec->keys must be set, and 'spec' must stay.  All
 * processes that put rows into a sort have to agree on 'whole_tuples'.
 */
extern GsRowSource *gpusort_row_source_create(PlanState *input, const PlanState *sorted,
											  TupleDesc tupdesc, bool whole_tuples,
											  GsSortSpec *spec);

/*
 * Create the source of a sort node, when that begins and has its input.  Decides whether rows are
 * whole tuples.
 */
extern GsRowSource *gpusort_row_source_create_for_node(CustomScanState *css, PlanState *sorted,
													   GsSortSpec *spec);

/*
 * Determine how to read the input, before it is read for the first time or again.
 * Returns whether it will be read by pages.
 */
extern bool gpusort_row_source_prepare(GsRowSource *source);

/* Returns the next row, for the sort, or NULL or an empty slot. */
extern TupleTableSlot *gpusort_row_source_next(GsRowSource *source);

/* Add all rows to a sort, or as many as it takes. */
extern void gpusort_row_source_add_rows(GsRowSource *source, GsSort *sort);

/*
 * Returns a row that the caller has read from the input in the form that the sort keeps.
 */
extern TupleTableSlot *gpusort_row_source_take(const GsRowSource *source,
											   TupleTableSlot *slot);

/* Does the source leave out rows that are beyond the bound of its sort? */
extern bool gpusort_row_source_is_cut(const GsRowSource *source);

/* Rescan the input, to read it again from its start. */
extern void gpusort_row_source_rewind(GsRowSource *source);

/*
 * Of the source of a sort node: are the rows that it returns those of gpusort_sort_next(), all of
 * them and as they are?
 */
extern bool gpusort_row_source_is_plain(const GsRowSource *source);

/*
 * Of the source of a sort node: move the cursor of a sort of these rows.  'slot' is the scan slot
 * of the node.  Returns the slot with the row, or empty.
 */
extern TupleTableSlot *gpusort_row_source_return(const GsRowSource *source, GsSort *sort,
												 bool forward, TupleTableSlot *slot);

/* Make the state of a custom node, in as many bytes, which are 0. */
static inline Node *
gpusort_make_node_state(Size bytes, const CustomExecMethods *methods)
{
	CustomScanState *css = palloc0(bytes);

	NodeSetTag(css, T_CustomScanState);
	css->methods = methods;
	return (Node *) css;
}

/*
 * Have a custom node return rows in a slot for minimal tuples, which extracts columns when they are
 * asked for, instead of the virtual slot that the executor has made.
 */
extern void gpusort_row_source_return_tuples(CustomScanState *css);

/* ---- Ties of an input in stock PostgreSQL's order: stock_ties.c ---- */

typedef struct GsStockTies GsStockTies;

/* Returns the next row of the input, or NULL or an empty slot. */
typedef TupleTableSlot *(*GsRowReader) (void *arg);

/*
 * Prepare to return the rows of an input in another order, in the current memory context.  'spec'
 * describes them.  Later only its bound counts, which must be set when the first row is requested.
 */
extern GsStockTies *gpusort_stock_ties_create(const GsSortSpec *spec, GsRowReader read,
											  void *arg);

/*
 * Returns the next row, or NULL after the last one.  A stable sort of these rows is in the order of
 * a stock sort of those that were read.  Beyond a bound, some are left out.  The row is valid until
 * the next call.
 */
extern TupleTableSlot *gpusort_stock_ties_next(GsStockTies *ties);

/* Free the rows.  If more are requested, they are read again. */
extern void gpusort_stock_ties_reset(GsStockTies *ties);

#endif							/* GPUSORT_ROW_SOURCE_H */
