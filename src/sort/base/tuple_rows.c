/*-------------------------------------------------------------------------
 *
 * tuple_rows.c
 *		Rows that a sort keeps as whole tuples.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"

#include "sort/base/tuple_rows.h"

/*
 * Rows with few columns are packed: each column is then at a constant offset, and
 * a row takes fewer bytes than a tuple.  Packing takes longer with each column, and
 * as long for one of variable length as for several others.
 */
#define PACKING_LIMIT			8
#define PACKING_VARIABLE_COLUMN	3

struct GsTupleRows
{
	const GsSortKeys *keys;
	int			last_key;		/* the last column that is a sort key */
	AttrNumber	tuple_attno;
	TupleDesc	tupdesc;		/* with the tuple and its length */
	TupleTableSlot *slot;
	MemoryContext context;
	MinimalTuple copy;			/* of the row last wrapped, or NULL; in
								 * 'context' */
};

bool
gpusort_tuple_rows_pay(int fixed_columns, int variable_columns)
{
	return fixed_columns + PACKING_VARIABLE_COLUMN * variable_columns >=
		PACKING_LIMIT;
}

/* The columns of the rows, and two that stand for the tuple. */
static TupleDesc
make_tupdesc(TupleDesc tupdesc)
{
	int			natts = tupdesc->natts;
	TupleDesc	rows = CreateTemplateTupleDesc(natts + 2);

	for (int i = 1; i <= natts; i++)
		TupleDescCopyEntry(rows, i, tupdesc, i);
	TupleDescInitEntry(rows, natts + 1, "tuple", INT8OID, -1, 0);
	TupleDescInitEntry(rows, natts + 2, "bytes", INT8OID, -1, 0);
	TupleDescFinalize(rows);
	return rows;
}

GsTupleRows *
gpusort_tuple_rows_create(GsSortSpec *spec)
{
	GsTupleRows *rows = palloc0(sizeof(GsTupleRows));
	const GsSortKeys *keys = &spec->keys;

	rows->keys = keys;
	rows->context = CurrentMemoryContext;
	for (int k = 0; k < keys->nkeys; k++)
		rows->last_key = Max(rows->last_key, keys->attnos[k]);
	spec->tuple_attno = rows->tuple_attno = spec->tupdesc->natts + 1;
	spec->tupdesc = rows->tupdesc = make_tupdesc(spec->tupdesc);
	rows->slot = MakeSingleTupleTableSlot(rows->tupdesc, &TTSOpsVirtual);
	memset(rows->slot->tts_isnull, 0, rows->tupdesc->natts * sizeof(bool));
	ExecStoreVirtualTuple(rows->slot);
	return rows;
}

TupleTableSlot *
gpusort_tuple_rows_slot(GsTupleRows *rows)
{
	return rows->slot;
}

/* The tuple of a slot in the format of a MinimalTuple, and its length. */
static const char *
find_tuple(GsTupleRows *rows, TupleTableSlot *slot, Size *bytes)
{
	MemoryContext caller;
	MinimalTuple minimal;
	bool		is_copy;

	if (TTS_IS_HEAPTUPLE(slot) || TTS_IS_BUFFERTUPLE(slot))
	{
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &is_copy);

		Assert(!is_copy);
		*bytes = tuple->t_len - MINIMAL_TUPLE_OFFSET;
		return (char *) tuple->t_data + MINIMAL_TUPLE_OFFSET;
	}
	caller = MemoryContextSwitchTo(rows->context);
	minimal = ExecFetchSlotMinimalTuple(slot, &is_copy);
	MemoryContextSwitchTo(caller);
	if (is_copy)
		rows->copy = minimal;
	*bytes = minimal->t_len;
	return (char *) minimal;
}

TupleTableSlot *
gpusort_tuple_rows_wrap(GsTupleRows *rows, TupleTableSlot *slot)
{
	Datum	   *values = rows->slot->tts_values;
	bool	   *isnull = rows->slot->tts_isnull;
	const char *tuple;
	Size		bytes;

	if (rows->copy != NULL)
		pfree(rows->copy);
	rows->copy = NULL;
	if (TupIsNull(slot))
		return NULL;
	slot_getsomeattrs(slot, rows->last_key);
	for (int k = 0; k < rows->keys->nkeys; k++)
	{
		int			column = rows->keys->attnos[k] - 1;

		values[column] = slot->tts_values[column];
		isnull[column] = slot->tts_isnull[column];
	}
	tuple = find_tuple(rows, slot, &bytes);
	values[rows->tuple_attno - 1] = PointerGetDatum(tuple);
	values[rows->tuple_attno] = (Datum) bytes;
	return rows->slot;
}

void
gpusort_tuple_row_extract_keys(const GsSortSpec *spec, Datum *values,
							   bool *isnull)
{
	char	   *minimal = DatumGetPointer(values[spec->tuple_attno - 1]);
	HeapTupleData tuple;

	tuple.t_len = ((MinimalTuple) minimal)->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) (minimal - MINIMAL_TUPLE_OFFSET);
	for (int k = 0; k < spec->keys.nkeys; k++)
	{
		int			attno = spec->keys.attnos[k];

		values[attno - 1] = heap_getattr(&tuple, attno, spec->tupdesc,
										 &isnull[attno - 1]);
	}
}
