/*-------------------------------------------------------------------------
 *
 * narrow_rows.h
 *		Rows without the columns that are always NULL.
 *
 * If a query uses only some columns of a subquery, the planner has its plan return NULL
 * for the others.  The sort need not store these columns, of which there may be many: it
 * gets narrow rows of the other columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NARROW_ROWS_H
#define GPUSORT_NARROW_ROWS_H

#include "executor/tuptable.h"
#include "nodes/plannodes.h"

#include "key/key_plan.h"

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

/* Return the columns of a wide row in the slot, or NULL if 'wide' is empty. */
extern TupleTableSlot *gpusort_narrow_rows_take(const GsNarrowRows *rows,
												TupleTableSlot *wide);

/* Store a narrow row in a virtual slot for wide rows, which stays valid as long. */
extern void gpusort_narrow_rows_widen(const GsNarrowRows *rows,
									  const TupleTableSlot *narrow,
									  TupleTableSlot *wide);

#endif							/* GPUSORT_NARROW_ROWS_H */
