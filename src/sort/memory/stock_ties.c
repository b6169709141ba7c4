/*-------------------------------------------------------------------------
 *
 * stock_ties.c
 *		Sorts ties as stock PostgreSQL does, for pg_gpusort.debug_stock_ties.
 *
 * SQL does not define the order of ties, but PostgreSQL's own regression tests
 * rely on the order that its sort happens to produce.  That sort is deterministic:
 * its steps depend only on the keys in input order.  We therefore pass the keys in
 * that order, with the row numbers, to a tuplesort, which then returns the ties
 * in the order of stock PostgreSQL.
 *
 * Since a tuplesort uses the comparators and not the encoded keys, this also
 * verifies the encoding: at each position, both orders must have rows that the
 * comparators consider equal.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <limits.h>

#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "key/key_comparison.h"
#include "sort/memory/stock_ties.h"
#include "work.h"

typedef struct StockTies
{
	int			nkeys;
	const GsKeyComparison *comparison;
	Datum	   *values;			/* nkeys for each row */
	bool	   *isnull;
} StockTies;

static bool
are_equal(const StockTies *ties, uint32 row, uint32 other)
{
	Size		left = (Size) row * ties->nkeys;
	Size		right = (Size) other * ties->nkeys;

	return gpusort_key_comparison_compare(ties->comparison, 0,
										  ties->values + left,
										  ties->isnull + left,
										  ties->values + right,
										  ties->isnull + right) == 0;
}

static void
read_keys(StockTies *ties, const GsRowStore *store,
		  const GsSortKeys *keys, uint32 nrows)
{
	Size		nvalues = (Size) nrows * keys->nkeys;

	ties->values = MemoryContextAllocHuge(CurrentMemoryContext,
										  nvalues * sizeof(Datum));
	ties->isnull = MemoryContextAllocHuge(CurrentMemoryContext,
										  nvalues * sizeof(bool));
	for (uint32 row = 0; row < nrows; row++)
	{
		Size		first = (Size) row * keys->nkeys;

		CHECK_FOR_INTERRUPTS();
		gpusort_row_store_get_columns(store, row, keys->attnos, keys->nkeys,
									  ties->values + first,
									  ties->isnull + first);
	}
}

/* Describe the tuples to sort: the sort keys of a row, and its number. */
static TupleDesc
make_tupdesc(TupleDesc rows, const GsSortKeys *keys)
{
	TupleDesc	tupdesc = CreateTemplateTupleDesc(keys->nkeys + 1);

	for (int k = 0; k < keys->nkeys; k++)
		TupleDescCopyEntry(tupdesc, k + 1, rows, keys->attnos[k]);
	TupleDescInitEntry(tupdesc, keys->nkeys + 1, "row", INT4OID, -1, 0);
	TupleDescFinalize(tupdesc);
	return tupdesc;
}

static Tuplesortstate *
begin_sort(TupleDesc tupdesc, const GsSortKeys *keys)
{
	AttrNumber *attnos = palloc(keys->nkeys * sizeof(AttrNumber));

	for (int k = 0; k < keys->nkeys; k++)
		attnos[k] = k + 1;
	return tuplesort_begin_heap(tupdesc, keys->nkeys, attnos, keys->operators,
								keys->collations, keys->nulls_first,
								MAX_KILOBYTES, NULL, TUPLESORT_NONE);
}

static void
put_rows(Tuplesortstate *sort, const StockTies *ties, TupleDesc tupdesc,
		 uint32 nrows)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	int			nkeys = ties->nkeys;

	for (uint32 row = 0; row < nrows; row++)
	{
		Size		first = (Size) row * nkeys;

		CHECK_FOR_INTERRUPTS();
		ExecClearTuple(slot);
		memcpy(slot->tts_values, ties->values + first, nkeys * sizeof(Datum));
		memcpy(slot->tts_isnull, ties->isnull + first, nkeys * sizeof(bool));
		slot->tts_values[nkeys] = UInt32GetDatum(row);
		slot->tts_isnull[nkeys] = false;
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(sort, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
}

/* Replace the entries by those in the order of the tuplesort. */
static void
take_order(Tuplesortstate *sort, const StockTies *ties, TupleDesc tupdesc,
		   uint64 *entries)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(tupdesc,
													&TTSOpsMinimalTuple);
	bool		isnull;

	for (uint32 i = 0; tuplesort_gettupleslot(sort, true, false, slot, NULL); i++)
	{
		uint32		row = DatumGetUInt32(slot_getattr(slot, ties->nkeys + 1,
													  &isnull));

		CHECK_FOR_INTERRUPTS();
		if (!are_equal(ties, row, (uint32) entries[i]))
			elog(ERROR, "encoded keys do not have the order of the sort operators");
		entries[i] = row;
	}
	ExecDropSingleTupleTableSlot(slot);
}

void
gpusort_stock_ties_apply(GsOrdering *ordering, const GsRowStore *store,
						 TupleDesc rows, const GsSortKeys *keys)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort stock ties",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	uint32		nrows = gpusort_ordering_count(ordering);
	TupleDesc	tupdesc = make_tupdesc(rows, keys);
	Tuplesortstate *sort = begin_sort(tupdesc, keys);
	StockTies	ties;

	ties.nkeys = keys->nkeys;
	ties.comparison = gpusort_key_comparison_create(keys);
	read_keys(&ties, store, keys, nrows);
	put_rows(sort, &ties, tupdesc, nrows);
	tuplesort_performsort(sort);
	take_order(sort, &ties, tupdesc, gpusort_ordering_entries(ordering));
	tuplesort_end(sort);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}
