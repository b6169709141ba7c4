/*-------------------------------------------------------------------------
 *
 * tuple_rows.h
 *		Rows that a sort keeps as whole tuples.
 *
 * For a row of many columns, the sort copies the tuple in which the row arrives,
 * and returns it in a slot that extracts only the columns that are requested, as a
 * stock sort does.
 *
 * Within the sort, such a row is an array of values and one of NULL flags like any
 * other.  Of its columns only the sort keys are set.  Two columns are added: a
 * pointer to the tuple, in the format of a MinimalTuple, and its length in bytes.
 * Until the sort has copied the tuple, the fields before t_infomask2 are undefined,
 * because the tuple may be on a heap page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TUPLE_ROWS_H
#define GPUSORT_TUPLE_ROWS_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

/* Makes rows of tuples in slots. */
typedef struct GsTupleRows GsTupleRows;

/*
 * Is it faster to keep rows with these numbers of columns, of fixed and of variable length, as
 * whole tuples, if they arrive as tuples?
 */
extern bool gpusort_tuple_rows_pay(int fixed_columns, int variable_columns);

/*
 * Prepare for rows of the type spec->tupdesc, in the current memory context, and describe the sort
 * of them: sets spec->tupdesc and spec->tuple_attno.  'spec' must stay valid, and the result as
 * long as the sort.
 */
extern GsTupleRows *gpusort_tuple_rows_create(GsSortSpec *spec);

/*
 * Returns the row of 'slot' as a row with a whole tuple, which can be added to the sort,
 * in a slot that belongs to 'rows'; or NULL if 'slot' is empty.  The row is valid until
 * the next call, and as long as that in 'slot' is.
 */
extern TupleTableSlot *gpusort_tuple_rows_wrap(GsTupleRows *rows,
											   TupleTableSlot *slot);

/* Returns the slot in which wrap() returns rows. */
extern TupleTableSlot *gpusort_tuple_rows_slot(GsTupleRows *rows);

/*
 * Extract the sort keys from the tuple of a row that a sort has returned, so that the
 * row can be sorted again.  Does nothing if rows are not whole tuples.
 */
extern void gpusort_tuple_row_extract_keys(const GsSortSpec *spec,
										   Datum *values, bool *isnull);

static inline void
gpusort_tuple_row_get_keys(const GsSortSpec *spec, Datum *values, bool *isnull)
{
	if (spec->tuple_attno > 0)
		gpusort_tuple_row_extract_keys(spec, values, isnull);
}

#endif							/* GPUSORT_TUPLE_ROWS_H */
