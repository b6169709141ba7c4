/*-------------------------------------------------------------------------
 *
 * stock_ties.c
 *		pg_gpusort.debug_stock_ties: the order of stock PostgreSQL among ties.
 *
 * SQL leaves the order of rows with equal keys open, but PostgreSQL's own
 * regression tests rely on the one its quicksort happens to leave.  That sort
 * is deterministic: its steps depend on the number of rows and on the results
 * of the comparisons alone.  qsort_arg() is made from the same template, so
 * over row numbers in input order, with the sort operators' real comparators,
 * it ends in the same order.
 *
 * Since this sorts by the comparators and not by the encoded keys, it also
 * proves the encoding: at each place, both orders must have rows that the
 * comparators call equal.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "port.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

#include "sort/stock_ties.h"

typedef struct TieSorter
{
	int			nkeys;
	SortSupportData *ssup;		/* nkeys */
	Datum	   *values;			/* nkeys for each row */
	bool	   *isnull;
} TieSorter;

static int
compare_rows(const void *a, const void *b, void *arg)
{
	TieSorter  *sorter = arg;
	Size		left = (Size) *(const uint32 *) a * sorter->nkeys;
	Size		right = (Size) *(const uint32 *) b * sorter->nkeys;

	CHECK_FOR_INTERRUPTS();
	for (int k = 0; k < sorter->nkeys; k++)
	{
		int			cmp = ApplySortComparator(sorter->values[left + k],
											  sorter->isnull[left + k],
											  sorter->values[right + k],
											  sorter->isnull[right + k],
											  &sorter->ssup[k]);

		if (cmp != 0)
			return cmp;
	}
	return 0;
}

static void
prepare_comparators(TieSorter *sorter, const GsSortKeys *keys)
{
	sorter->nkeys = keys->nkeys;
	sorter->ssup = palloc0(keys->nkeys * sizeof(SortSupportData));
	for (int k = 0; k < keys->nkeys; k++)
	{
		SortSupport ssup = &sorter->ssup[k];

		ssup->ssup_cxt = CurrentMemoryContext;
		ssup->ssup_collation = keys->collations[k];
		ssup->ssup_nulls_first = keys->nulls_first[k];
		ssup->ssup_attno = keys->attnos[k];
		PrepareSortSupportFromOrderingOp(keys->operators[k], ssup);
	}
}

static void
read_keys(TieSorter *sorter, const GsRowStore *store, TupleDesc tupdesc,
		  const GsSortKeys *keys, uint32 nrows)
{
	Datum	   *values = palloc(tupdesc->natts * sizeof(Datum));
	bool	   *isnull = palloc(tupdesc->natts * sizeof(bool));
	Size		nvalues = (Size) nrows * keys->nkeys;

	sorter->values = MemoryContextAllocHuge(CurrentMemoryContext,
											nvalues * sizeof(Datum));
	sorter->isnull = MemoryContextAllocHuge(CurrentMemoryContext,
											nvalues * sizeof(bool));
	for (uint32 row = 0; row < nrows; row++)
	{
		gpusort_row_store_get(store, row, values, isnull);
		for (int k = 0; k < keys->nkeys; k++)
		{
			Size		place = (Size) row * keys->nkeys + k;

			sorter->values[place] = values[keys->attnos[k] - 1];
			sorter->isnull[place] = isnull[keys->attnos[k] - 1];
		}
	}
}

void
gpusort_stock_ties_apply(GsOrdering *ordering, const GsRowStore *store,
						 TupleDesc tupdesc, const GsSortKeys *keys)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort stock ties",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	uint32		nrows = gpusort_ordering_count(ordering);
	uint64	   *entries = gpusort_ordering_entries(ordering);
	uint32	   *rows = MemoryContextAllocHuge(context,
											  Max(nrows, 1) * sizeof(uint32));
	TieSorter	sorter;

	prepare_comparators(&sorter, keys);
	read_keys(&sorter, store, tupdesc, keys, nrows);
	for (uint32 row = 0; row < nrows; row++)
		rows[row] = row;
	qsort_arg(rows, nrows, sizeof(uint32), compare_rows, &sorter);

	for (uint32 i = 0; i < nrows; i++)
	{
		uint32		ours = (uint32) entries[i];

		if (compare_rows(&rows[i], &ours, &sorter) != 0)
			elog(ERROR, "encoded keys do not have the order of the sort operators");
		entries[i] = rows[i];
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}
