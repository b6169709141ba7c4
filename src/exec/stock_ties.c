/*-------------------------------------------------------------------------
 *
 * stock_ties.c
 *		Exchanges ties of an input, for pg_gpusort.debug_stock_ties.
 *
 * SQL does not define the order of ties, but PostgreSQL's own regression tests
 * rely on the order that its sort happens to produce.  That sort is deterministic:
 * its steps depend only on the keys in input order.  We therefore pass the keys in
 * that order, with the row numbers, to a tuplesort, which returns ties in the order
 * of stock PostgreSQL.
 *
 * The rows are then returned with the same keys at each position as in the input, but
 * those of a group of ties in that order:
 *
 *		input		b1 a1 b2 a2 b3
 *		tuplesort	a1 a2 b3 b1 b2
 *		returned	b3 a1 b1 a2 b2
 *
 * Our sorts are stable, so their result is that of stock PostgreSQL, and they know nothing
 * of this.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <limits.h>

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "exec/stock_ties.h"
#include "key/key_comparison.h"
#include "sort/base/tuple_rows.h"
#include "work.h"

#define INITIAL_CAPACITY	1024

struct GsStockTies
{
	const GsSortSpec *spec;
	GsRowReader read;
	void	   *arg;
	MemoryContext parent;
	const GsKeyComparison *comparison;
	TupleDesc	key_desc;		/* the sort keys of a row, and its number */
	TupleTableSlot *keys;
	TupleTableSlot *slot;		/* for a row */

	/* NULL before the first row is requested. */
	MemoryContext context;		/* for what follows */
	MinimalTuple *rows;			/* in input order */
	int64		nrows;
	int64		next;			/* position to return next */
	int64	   *order;			/* numbers of sorted rows */
	int64	   *groups;			/* of each row: where its group begins in
								 * 'order', or -1 if the tuplesort has not
								 * returned it */
	int64	   *taken;			/* of that group: how many rows have been
								 * returned */
};

static TupleDesc
make_key_desc(const GsSortSpec *spec)
{
	TupleDesc	desc = CreateTemplateTupleDesc(spec->keys.nkeys + 1);

	for (int k = 0; k < spec->keys.nkeys; k++)
		TupleDescCopyEntry(desc, k + 1, spec->tupdesc, spec->keys.attnos[k]);
	TupleDescInitEntry(desc, spec->keys.nkeys + 1, "row", INT8OID, -1, 0);
	TupleDescFinalize(desc);
	return desc;
}

GsStockTies *
gpusort_stock_ties_create(const GsSortSpec *spec, GsRowReader read, void *arg)
{
	GsStockTies *ties = palloc0(sizeof(GsStockTies));

	ties->spec = spec;
	ties->read = read;
	ties->arg = arg;
	ties->parent = CurrentMemoryContext;
	ties->comparison = gpusort_key_comparison_create(&spec->keys);
	ties->key_desc = make_key_desc(spec);
	ties->keys = MakeSingleTupleTableSlot(ties->key_desc, &TTSOpsVirtual);
	ties->slot = MakeSingleTupleTableSlot(spec->tupdesc, &TTSOpsVirtual);
	return ties;
}

void
gpusort_stock_ties_reset(GsStockTies *ties)
{
	if (ties->context != NULL)
		MemoryContextDelete(ties->context);
	ties->context = NULL;
}

/* Copy a row.  Of a whole tuple, the fields before t_infomask2 are undefined. */
static MinimalTuple
copy_row(const GsSortSpec *spec, TupleTableSlot *row)
{
	Size		start = offsetof(MinimalTupleData, t_infomask2);
	MinimalTuple tuple;
	Size		bytes;

	if (spec->tuple_attno == 0)
		return ExecCopySlotMinimalTuple(row);
	bytes = row->tts_values[spec->tuple_attno];
	tuple = palloc0(bytes);
	memcpy((char *) tuple + start,
		   (char *) DatumGetPointer(row->tts_values[spec->tuple_attno - 1]) + start,
		   bytes - start);
	tuple->t_len = bytes;
	return tuple;
}

/* Store such a copy in the slot, in the form in which it was read. */
static TupleTableSlot *
store_row(const GsStockTies *ties, MinimalTuple tuple)
{
	const GsSortSpec *spec = ties->spec;
	TupleTableSlot *slot = ties->slot;
	HeapTupleData heap_tuple;

	ExecClearTuple(slot);
	if (spec->tuple_attno == 0)
	{
		heap_tuple.t_len = tuple->t_len + MINIMAL_TUPLE_OFFSET;
		heap_tuple.t_data = (HeapTupleHeader) ((char *) tuple - MINIMAL_TUPLE_OFFSET);
		heap_deform_tuple(&heap_tuple, spec->tupdesc, slot->tts_values, slot->tts_isnull);
	}
	else
	{
		memset(slot->tts_isnull, 0, spec->tupdesc->natts * sizeof(bool));
		slot->tts_values[spec->tuple_attno - 1] = PointerGetDatum(tuple);
		slot->tts_values[spec->tuple_attno] = (Datum) tuple->t_len;
		gpusort_tuple_row_extract_keys(spec, slot->tts_values, slot->tts_isnull);
	}
	return ExecStoreVirtualTuple(slot);
}

/* Store the sort keys of a row, and its number, in their slot. */
static TupleTableSlot *
store_keys(const GsStockTies *ties, TupleTableSlot *row, int64 number)
{
	const GsSortKeys *keys = &ties->spec->keys;
	TupleTableSlot *slot = ExecClearTuple(ties->keys);

	for (int k = 0; k < keys->nkeys; k++)
		slot->tts_values[k] = slot_getattr(row, keys->attnos[k], &slot->tts_isnull[k]);
	slot->tts_values[keys->nkeys] = Int64GetDatum(number);
	slot->tts_isnull[keys->nkeys] = false;
	return ExecStoreVirtualTuple(slot);
}

static bool
are_equal(const GsStockTies *ties, const TupleTableSlot *a, const TupleTableSlot *b)
{
	return gpusort_key_comparison_compare(ties->comparison, 0, a->tts_values, a->tts_isnull,
										  b->tts_values, b->tts_isnull) == 0;
}

static Tuplesortstate *
begin_sort(const GsStockTies *ties)
{
	const GsSortKeys *keys = &ties->spec->keys;
	AttrNumber *attnos = palloc(keys->nkeys * sizeof(AttrNumber));
	Tuplesortstate *sort;

	for (int k = 0; k < keys->nkeys; k++)
		attnos[k] = k + 1;
	sort = tuplesort_begin_heap(ties->key_desc, keys->nkeys, attnos, keys->operators,
								keys->collations, keys->nulls_first, MAX_KILOBYTES, NULL,
								TUPLESORT_ALLOWBOUNDED);
	if (ties->spec->bound > 0)
		tuplesort_set_bound(sort, ties->spec->bound);
	return sort;
}

/* Read the rows, and give their keys to the tuplesort. */
static void
read_rows(GsStockTies *ties, Tuplesortstate *sort)
{
	int64		capacity = INITIAL_CAPACITY;
	TupleTableSlot *row;

	ties->nrows = 0;
	ties->rows = MemoryContextAlloc(ties->context, capacity * sizeof(MinimalTuple));
	while (row = ties->read(ties->arg), !TupIsNull(row))
	{
		MemoryContext caller = MemoryContextSwitchTo(ties->context);

		CHECK_FOR_INTERRUPTS();
		tuplesort_puttupleslot(sort, store_keys(ties, row, ties->nrows));
		if (ties->nrows == capacity)
		{
			capacity *= 2;
			ties->rows = repalloc_huge(ties->rows, capacity * sizeof(MinimalTuple));
		}
		ties->rows[ties->nrows++] = copy_row(ties->spec, row);
		MemoryContextSwitchTo(caller);
	}
}

/*
 * Take the order of rows from the tuplesort, and find their groups of ties.  Of the rows beyond
 * a bound, which it does not return, those belong to a group that are equal to the last one
 * returned.
 */
static void
take_order(GsStockTies *ties, Tuplesortstate *sort)
{
	int			number_attno = ties->spec->keys.nkeys + 1;
	int64		wanted = ties->spec->bound > 0 ? ties->spec->bound : ties->nrows;
	TupleTableSlot *last = MakeSingleTupleTableSlot(ties->key_desc, &TTSOpsMinimalTuple);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(ties->key_desc, &TTSOpsMinimalTuple);
	int64		group = 0;
	int64		n = 0;

	for (; n < wanted && tuplesort_gettupleslot(sort, true, true, slot, NULL); n++)
	{
		TupleTableSlot *other = last;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (n > 0 && !are_equal(ties, last, slot))
			group = n;
		ties->order[n] = DatumGetInt64(slot->tts_values[number_attno - 1]);
		ties->groups[ties->order[n]] = group;
		last = slot;
		slot = other;
	}
	for (int64 row = 0; row < ties->nrows && n < ties->nrows; row++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ties->groups[row] >= 0 ||
			!are_equal(ties, store_keys(ties, store_row(ties, ties->rows[row]), row), last))
			continue;
		ties->order[n++] = row;
		ties->groups[row] = group;
	}
	ExecDropSingleTupleTableSlot(last);
	ExecDropSingleTupleTableSlot(slot);
}

static void
sort_rows(GsStockTies *ties)
{
	MemoryContext caller = CurrentMemoryContext;
	Size		bytes;
	Tuplesortstate *sort;

	ties->context = AllocSetContextCreate(ties->parent, "pg_gpusort stock ties",
										  ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(ties->context);
	sort = begin_sort(ties);
	MemoryContextSwitchTo(caller);
	read_rows(ties, sort);
	MemoryContextSwitchTo(ties->context);
	tuplesort_performsort(sort);
	bytes = ties->nrows * sizeof(int64);
	ties->order = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	ties->groups = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	ties->taken = palloc_extended(bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	memset(ties->groups, -1, bytes);
	take_order(ties, sort);
	tuplesort_end(sort);
	ties->next = 0;
	MemoryContextSwitchTo(caller);
}

TupleTableSlot *
gpusort_stock_ties_next(GsStockTies *ties)
{
	int64		row;
	int64		group;

	if (ties->context == NULL)
		sort_rows(ties);
	if (ties->next == ties->nrows)
		return NULL;
	row = ties->next++;
	group = ties->groups[row];
	if (group >= 0)
		row = ties->order[group + ties->taken[group]++];
	return store_row(ties, ties->rows[row]);
}
