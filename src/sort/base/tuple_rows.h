/*-------------------------------------------------------------------------
 *
 * tuple_rows.h
 *		Rows that a sort keeps as whole tuples.
 *
 * A row of many columns is not taken apart: the sort copies the tuple in which it
 * arrives, and returns it in a slot that extracts only those columns that are
 * asked for, as a stock sort does.
 *
 * Inside the sort, such a row still is an array of values and one of NULL flags.
 * They have the columns of the row, of which only the sort keys are set, and two
 * more columns: a pointer to the tuple, in the format of a MinimalTuple, and its
 * length in bytes.  What is before the infomasks of the tuple is not valid until
 * the sort has copied it, so that the tuple can lie on a page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TUPLE_ROWS_H
#define GPUSORT_TUPLE_ROWS_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

/* Makes rows of tuples in slots. */
typedef struct GsTupleRows GsTupleRows;

/* Should a sort keep rows of that type, which arrive as tuples, as such? */
extern bool gpusort_tuple_rows_pay(TupleDesc tupdesc);

/* Prepare for rows of that type, in the current memory context. */
extern GsTupleRows *gpusort_tuple_rows_create(TupleDesc tupdesc,
											  const GsSortKeys *keys);

/*
 * Set spec->tupdesc and spec->tuple_attno for a sort of such rows, which have to
 * stay.
 */
extern void gpusort_tuple_rows_describe(const GsTupleRows *rows,
										GsSortSpec *spec);

/*
 * Returns the row of a slot, in a slot that the sort can take it from.  It is
 * valid until the next call, and as long as the row stays in its slot.
 */
extern TupleTableSlot *gpusort_tuple_rows_wrap(GsTupleRows *rows,
											   TupleTableSlot *slot);

/* Returns the slot in which wrap() returns rows. */
extern TupleTableSlot *gpusort_tuple_rows_slot(GsTupleRows *rows);

/* Set the values of a row that stand for a tuple of so many bytes. */
static inline void
gpusort_tuple_row_set(const GsSortSpec *spec, Datum *values, const void *tuple,
					  Size bytes)
{
	values[spec->tuple_attno - 1] = PointerGetDatum(tuple);
	values[spec->tuple_attno] = (Datum) bytes;
}

/*
 * Set the sort keys of a row that the sort has returned without them, which a row
 * that is to be sorted again needs.  Does nothing unless rows are whole tuples.
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
