/*-------------------------------------------------------------------------
 *
 * stock_ties.c
 *		Puts ties of an input in stock PostgreSQL's order, for pg_gpusort.debug_stock_ties.
 *
 * SQL does not define the order of ties, but PostgreSQL's own regression tests
 * rely on the order that its sort happens to produce.  So a tuplesort sorts the rows before
 * they go to our sort.  Our sorts are stable, so their result is that of stock PostgreSQL, and
 * they know nothing of this.
 *
 * Sorted rows would be no test for a sort.  Therefore they are read several times, and each pass
 * returns other groups of ties:
 *
 *		tuplesort	a1 a2 b1 b2 b3 c1 d1
 *		returned	b1 b2 b3 d1 a1 a2 c1
 *
 * With a bound, the tuplesort returns no more rows.  Those that come after them follow in input
 * order, since our sort should have some to drop.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <limits.h>

#include "common/hashfn.h"
#include "utils/guc.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

#include "exec/row_source.h"
#include "key/key_comparison.h"
#include "work.h"

#define NPASSES		8

/* A sorted row, and its sort keys. */
typedef struct GsStockRow
{
	TupleTableSlot *slot;
	Datum	   *keys;
	bool	   *isnull;
} GsStockRow;

struct GsStockTies
{
	const GsSortSpec *spec;
	TupleDesc	tupdesc;
	GsSortKeys	keys;
	GsRowReader read;
	void	   *arg;
	MemoryContext context;
	const GsKeyComparison *comparison;	/* NULL until it is needed */
	GsStockRow	rows[2];		/* the last two, in turn */

	Tuplesortstate *sort;		/* NULL before the first row is requested */
	Tuplestorestate *input;		/* the same rows, if there is a bound */
	uint32		pass;
	int64		nrows;			/* rows of the pass so far */
	uint32		group;			/* number of the last one's group */
};

static GsStockRow
make_row(const GsStockTies *ties)
{
	return (GsStockRow)
	{
		.slot = MakeSingleTupleTableSlot(ties->tupdesc, &TTSOpsMinimalTuple),
			.keys = palloc(ties->keys.nkeys * sizeof(Datum)),
			.isnull = palloc(ties->keys.nkeys * sizeof(bool))
	};
}

GsStockTies *
gpusort_stock_ties_create(const GsSortSpec *spec, GsRowReader read, void *arg)
{
	GsStockTies *ties = palloc0(sizeof(GsStockTies));

	ties->spec = spec;
	ties->tupdesc = spec->tupdesc;
	ties->keys = spec->keys;
	ties->read = read;
	ties->arg = arg;
	ties->context = CurrentMemoryContext;
	ties->rows[0] = make_row(ties);
	ties->rows[1] = make_row(ties);
	return ties;
}

void
gpusort_stock_ties_reset(GsStockTies *ties)
{
	if (ties->sort == NULL)
		return;
	ExecClearTuple(ties->rows[0].slot);
	ExecClearTuple(ties->rows[1].slot);
	tuplesort_end(ties->sort);
	ties->sort = NULL;
	if (ties->input != NULL)
		tuplestore_end(ties->input);
	ties->input = NULL;
}

/* Begin to read the sorted rows from the first one on. */
static void
begin_pass(GsStockTies *ties, uint32 pass)
{
	tuplesort_rescan(ties->sort);
	ties->pass = pass;
	ties->nrows = 0;
	ties->group = 0;
}

/* Sort the rows as a stock sort in memory does. */
static void
sort_rows(GsStockTies *ties)
{
	const GsSortKeys *keys = &ties->keys;
	MemoryContext caller = MemoryContextSwitchTo(ties->context);
	TupleTableSlot *row;

	if (ties->comparison == NULL)
		ties->comparison = gpusort_key_comparison_create(keys);
	ties->sort = tuplesort_begin_heap(ties->tupdesc, keys->nkeys, keys->attnos, keys->operators,
									  keys->collations, keys->nulls_first, MAX_KILOBYTES, NULL,
									  TUPLESORT_RANDOMACCESS | TUPLESORT_ALLOWBOUNDED);
	if (ties->spec->bound > 0)
	{
		tuplesort_set_bound(ties->sort, ties->spec->bound);
		ties->input = tuplestore_begin_heap(false, false, MAX_KILOBYTES);
	}
	MemoryContextSwitchTo(caller);
	while (row = ties->read(ties->arg), !TupIsNull(row))
	{
		CHECK_FOR_INTERRUPTS();
		tuplesort_puttupleslot(ties->sort, row);
		if (ties->input != NULL)
			tuplestore_puttupleslot(ties->input, row);
	}
	tuplesort_performsort(ties->sort);
	begin_pass(ties, 0);
}

/*
 * Where to store the next row.  The last one is in the other, and in the memory of the tuplesort,
 * so it stays valid meanwhile.
 */
static GsStockRow *
next_row(GsStockTies *ties)
{
	return &ties->rows[ties->nrows % 2];
}

/* Compare the last row of the pass with the next one, which has been stored. */
static int
compare_next(GsStockTies *ties)
{
	const GsStockRow *last = &ties->rows[(ties->nrows + 1) % 2];
	GsStockRow *row = next_row(ties);

	for (int k = 0; k < ties->keys.nkeys; k++)
		row->keys[k] = slot_getattr(row->slot, ties->keys.attnos[k], &row->isnull[k]);
	if (ties->nrows == 0)
		return -1;
	return gpusort_key_comparison_compare(ties->comparison, 0, ties->keys.nkeys,
										  last->keys, last->isnull, row->keys, row->isnull);
}

/* Returns the next row of the pass, or NULL. */
static TupleTableSlot *
next_sorted(GsStockTies *ties)
{
	TupleTableSlot *slot = next_row(ties)->slot;

	CHECK_FOR_INTERRUPTS();
	if ((ties->spec->bound > 0 && ties->nrows == ties->spec->bound) ||
		!tuplesort_gettupleslot(ties->sort, true, false, slot, NULL))
		return NULL;
	if (compare_next(ties) < 0)
		ties->group++;
	ties->nrows++;
	return slot;
}

/* After the last pass: returns the next row that comes after all rows of the tuplesort, or NULL. */
static TupleTableSlot *
next_beyond(GsStockTies *ties)
{
	TupleTableSlot *slot = next_row(ties)->slot;

	while (ties->input != NULL && tuplestore_gettupleslot(ties->input, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (compare_next(ties) < 0)
			return slot;
	}
	return NULL;
}

TupleTableSlot *
gpusort_stock_ties_next(GsStockTies *ties)
{
	if (ties->sort == NULL)
		sort_rows(ties);
	for (;;)
	{
		TupleTableSlot *slot = next_sorted(ties);

		if (slot != NULL && murmurhash32(ties->group) % NPASSES == ties->pass)
			return slot;
		if (slot != NULL)
			continue;
		if (ties->pass + 1 == NPASSES)
			return next_beyond(ties);
		begin_pass(ties, ties->pass + 1);
	}
}
