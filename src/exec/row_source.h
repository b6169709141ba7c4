/*-------------------------------------------------------------------------
 *
 * row_source.h
 *		Reads the input of a sort node or a GpuSortSink node, and returns the sorted rows.
 *
 * A plain scan is read page by page; any other input is executed.  Rows of many
 * columns are given to the sort as whole tuples (sort/base/tuple_rows.h) if the
 * input has them as tuples, and rows with columns that are always NULL as narrow rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_SOURCE_H
#define GPUSORT_ROW_SOURCE_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "key/key_plan.h"
#include "sort/base/sort_spec.h"
#include "sort/sort.h"

typedef struct GsRowSource GsRowSource;

/*
 * Rows without the columns that are always NULL.  If a query uses only some columns of a subquery,
 * the planner has its plan return NULL for the others.  The sort need not store these columns, of
 * which there may be many: it gets narrow rows of the other columns.
 */
typedef struct GsNarrowRows
{
	TupleDesc	tupdesc;		/* of the narrow rows */
	GsSortKeys	keys;			/* by their columns */
	AttrNumber *attnos;			/* their columns in the wide rows */
	TupleTableSlot *slot;		/* virtual, for a narrow row */
} GsNarrowRows;

/*
 * Describe narrow rows of 'input', whose rows are of type 'tupdesc' and are sorted by
 * 'keys', in the current memory context.  Returns NULL if all columns can have values.
 */
extern GsNarrowRows *gpusort_narrow_rows_create(const Plan *input,
												TupleDesc tupdesc,
												const GsSortKeys *keys);

/*
 * Create a source that reads the rows of 'input', which are of type 'tupdesc', in
 * the current memory context.  It sets what 'spec' says of the rows.  spec->keys
 * must be set, and 'spec' must stay.  All processes that put rows into a sort have
 * to agree on 'whole_tuples'.
 */
extern GsRowSource *gpusort_row_source_create(PlanState *input,
											  TupleDesc tupdesc,
											  bool whole_tuples,
											  GsSortSpec *spec);

/* Create a source of narrow rows, which must stay. */
extern GsRowSource *gpusort_row_source_create_narrow(PlanState *input,
													 const GsNarrowRows *narrow,
													 GsSortSpec *spec);

/*
 * Determine how to read the input, before it is read for the first time or again.
 * Returns whether it will be read by pages.
 */
extern bool gpusort_row_source_prepare(GsRowSource *source);

/* Returns the next row, for the sort, or NULL or an empty slot. */
extern TupleTableSlot *gpusort_row_source_next(GsRowSource *source);

/*
 * The same for a row that the caller has read from the input: returns it in the form
 * that the sort keeps.
 */
extern TupleTableSlot *gpusort_row_source_take(const GsRowSource *source,
											   TupleTableSlot *slot);

/* Rescan the input, to read it again from its start. */
extern void gpusort_row_source_rewind(GsRowSource *source);

/* ---- The rows of a sort node: as it reads them, sorts them and returns them ---- */

typedef struct GsNodeRows
{
	GsRowSource *source;		/* reads the input */
	const GsNarrowRows *narrow; /* what the sort gets, or NULL */
	TupleTableSlot *sorted_row; /* as the sort returns it, if rows are whole
								 * tuples or narrow; otherwise NULL */
	AttrNumber	tuple_attno;	/* the column with the whole tuple, or 0 */
} GsNodeRows;

/*
 * Decide in which form rows are sorted, and set what 'spec' says of them.  Called
 * when the node begins, with its input in place.  'sorted' is the node whose rows go to
 * the sort: the input, or that of a sink below it.  spec->keys must be set, and 'spec'
 * must stay.
 */
extern void gpusort_node_rows_init(GsNodeRows *rows, CustomScanState *css,
								   PlanState *sorted, GsSortSpec *spec);

/*
 * Move the cursor of a sort of these rows.  'slot' is the scan slot of the node.
 * Returns the slot with the row, or empty.
 */
extern TupleTableSlot *gpusort_node_rows_next(const GsNodeRows *rows,
											  GsSort *sort, bool forward,
											  TupleTableSlot *slot);

#endif							/* GPUSORT_ROW_SOURCE_H */
