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

#include "key/key_comparison.h"
#include "sort/stock_ties.h"

typedef struct TieSorter
{
	int			nkeys;
	const GsKeyComparison *comparison;
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
	return gpusort_key_comparison_compare(sorter->comparison, 0,
										  sorter->values + left,
										  sorter->isnull + left,
										  sorter->values + right,
										  sorter->isnull + right);
}

static void
read_keys(TieSorter *sorter, const GsRowStore *store,
		  const GsSortKeys *keys, uint32 nrows)
{
	Size		nvalues = (Size) nrows * keys->nkeys;

	sorter->values = MemoryContextAllocHuge(CurrentMemoryContext,
											nvalues * sizeof(Datum));
	sorter->isnull = MemoryContextAllocHuge(CurrentMemoryContext,
											nvalues * sizeof(bool));
	for (uint32 row = 0; row < nrows; row++)
	{
		Size		place = (Size) row * keys->nkeys;

		gpusort_row_store_get_columns(store, row, keys->attnos, keys->nkeys,
									  sorter->values + place,
									  sorter->isnull + place);
	}
}

void
gpusort_stock_ties_apply(GsOrdering *ordering, const GsRowStore *store,
						 const GsSortKeys *keys)
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

	sorter.nkeys = keys->nkeys;
	sorter.comparison = gpusort_key_comparison_create(keys);
	read_keys(&sorter, store, keys, nrows);
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
