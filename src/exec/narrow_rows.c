/*-------------------------------------------------------------------------
 *
 * narrow_rows.c
 *		Rows without the columns that are always NULL.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/tuptable.h"
#include "nodes/primnodes.h"

#include "exec/narrow_rows.h"

static bool
is_key(const GsSortKeys *keys, AttrNumber attno)
{
	for (int k = 0; k < keys->nkeys; k++)
		if (keys->attnos[k] == attno)
			return true;
	return false;
}

/* Is the column always NULL, and not needed for sorting? */
static bool
is_absent(const Plan *input, const GsSortKeys *keys, AttrNumber attno)
{
	const TargetEntry *entry = list_nth_node(TargetEntry, input->targetlist,
											 attno - 1);

	return IsA(entry->expr, Const) && ((const Const *) entry->expr)->constisnull &&
		!is_key(keys, attno);
}

/* Find the columns of the narrow rows, and return their number. */
static int
find_columns(GsNarrowRows *rows, const Plan *input, int natts,
			 const GsSortKeys *keys)
{
	int			ncolumns = 0;

	rows->attnos = palloc(natts * sizeof(AttrNumber));
	for (AttrNumber attno = 1; attno <= natts; attno++)
	{
		if (!is_absent(input, keys, attno))
			rows->attnos[ncolumns++] = attno;
	}
	return ncolumns;
}

/* The sort keys, by the columns of the narrow rows. */
static GsSortKeys
narrow_keys(const GsNarrowRows *rows, const GsSortKeys *keys, int ncolumns)
{
	GsSortKeys	narrow = *keys;

	narrow.attnos = palloc(keys->nkeys * sizeof(AttrNumber));
	for (int k = 0; k < keys->nkeys; k++)
		for (int column = 0; column < ncolumns; column++)
			if (rows->attnos[column] == keys->attnos[k])
				narrow.attnos[k] = column + 1;
	return narrow;
}

GsNarrowRows *
gpusort_narrow_rows_create(const Plan *input, TupleDesc tupdesc,
						   const GsSortKeys *keys)
{
	GsNarrowRows *rows = palloc0(sizeof(GsNarrowRows));
	int			natts = tupdesc->natts;
	int			ncolumns;

	ncolumns = list_length(input->targetlist) == natts ?
		find_columns(rows, input, natts, keys) : natts;
	if (ncolumns == natts)
		return NULL;
	rows->tupdesc = CreateTemplateTupleDesc(ncolumns);
	for (int column = 0; column < ncolumns; column++)
		TupleDescCopyEntry(rows->tupdesc, column + 1, tupdesc,
						   rows->attnos[column]);
	TupleDescFinalize(rows->tupdesc);
	rows->keys = narrow_keys(rows, keys, ncolumns);
	rows->slot = MakeSingleTupleTableSlot(rows->tupdesc, &TTSOpsVirtual);
	memset(rows->slot->tts_isnull, 0, ncolumns * sizeof(bool));
	ExecStoreVirtualTuple(rows->slot);
	return rows;
}

TupleTableSlot *
gpusort_narrow_rows_take(const GsNarrowRows *rows, TupleTableSlot *wide)
{
	TupleTableSlot *narrow = rows->slot;

	if (TupIsNull(wide))
		return NULL;
	slot_getallattrs(wide);
	for (int column = 0; column < rows->tupdesc->natts; column++)
	{
		narrow->tts_values[column] = wide->tts_values[rows->attnos[column] - 1];
		narrow->tts_isnull[column] = wide->tts_isnull[rows->attnos[column] - 1];
	}
	return narrow;
}

void
gpusort_narrow_rows_widen(const GsNarrowRows *rows, const TupleTableSlot *narrow,
						  TupleTableSlot *wide)
{
	ExecClearTuple(wide);
	memset(wide->tts_isnull, true, wide->tts_tupleDescriptor->natts * sizeof(bool));
	for (int column = 0; column < rows->tupdesc->natts; column++)
	{
		wide->tts_values[rows->attnos[column] - 1] = narrow->tts_values[column];
		wide->tts_isnull[rows->attnos[column] - 1] = narrow->tts_isnull[column];
	}
	ExecStoreVirtualTuple(wide);
}
