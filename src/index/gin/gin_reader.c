/*-------------------------------------------------------------------------
 *
 * gin_reader.c
 *		Reads the keys of a GIN index and their TIDs from a sort.
 *
 * A key has several rows if it has many TIDs, if memory was full between them, or if several
 * processes have found it.  Its rows come in the order of their first TIDs, and the TIDs of a row
 * ascend.  So when the next row is known, all TIDs before its first one can be written, and few
 * have to be merged.
 *
 * A key is compared with the one before by the operator class's function, to find rows of equal
 * keys that have other bytes.  This also tells whether the sort, which uses encodings, has
 * them in order.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "index/gin/gin_private.h"
#include "key/distrust.h"
#include "settings.h"
#include "work.h"

/* Room for TIDs in the beginning. */
#define FIRST_TIDS		1024

struct GsGinReader
{
	GsGinOrder *order;
	GsSort	   *sort;
	MemoryContext context;
	MemoryContext scratch;		/* for what comparisons leak */
	TupleTableSlot *slot;

	bool		has_row;		/* is there a row that has not been used? */
	GsGinRow	row;			/* if so; it is in the slot */
	bool		wrong;			/* are keys not in order? */

	/* The current key: */
	GsGinKey	key;
	char	   *value;			/* what it points to */
	Size		value_size;		/* bytes that 'value' has room for */
	bool		ended;			/* have all of its rows been used? */
	uint64	   *tids;			/* in ascending order */
	uint64	   *added;			/* of the row that is being added */
	uint32		ntids;
	uint32		max_tids;		/* that each array has room for */
	uint32		nfinal;			/* no TID will come before or between these */
	uint32		ngiven;			/* how many of those the caller has */
};

/* ----------------------------------------------------------------
 *		rows and keys
 * ----------------------------------------------------------------
 */

static void
read_row(GsGinReader *reader)
{
	reader->has_row = gpusort_sort_next(reader->sort, true, reader->slot);
	if (reader->has_row)
		gpusort_gin_order_load(reader->order, reader->slot, &reader->row);
}

GsGinReader *
gpusort_gin_reader_begin(GsGinOrder *order, GsSort *sort, TupleDesc tupdesc)
{
	GsGinReader *reader = palloc0(sizeof(GsGinReader));

	reader->order = order;
	reader->sort = sort;
	reader->context = CurrentMemoryContext;
	reader->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN comparison",
											ALLOCSET_SMALL_SIZES);
	reader->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	reader->max_tids = FIRST_TIDS;
	reader->tids = palloc(FIRST_TIDS * sizeof(uint64));
	reader->added = palloc(FIRST_TIDS * sizeof(uint64));
	reader->ended = true;
	read_row(reader);
	return reader;
}

/* Make the key of the row the current one. */
static void
keep_key(GsGinReader *reader)
{
	const GsGinKey *key = &reader->row.key;
	const GsGinColumn *column = &reader->order->columns[key->attnum - 1];
	Size		size;

	reader->key = *key;
	if (key->category != GIN_CAT_NORM_KEY || column->attbyval)
		return;
	size = gpusort_gin_order_key_bytes(column, key->value);
	gpusort_work_add(size);
	if (size > reader->value_size)
	{
		if (reader->value != NULL)
			pfree(reader->value);
		reader->value_size = size * 2;
		reader->value = MemoryContextAllocHuge(reader->context, reader->value_size);
	}
	memcpy(reader->value, DatumGetPointer(key->value), size);
	reader->key.value = PointerGetDatum(reader->value);
}

static bool
has_equal_bytes(const GsGinColumn *column, Datum a, Datum b)
{
	Size		size;

	if (column->attbyval)
		return a == b;
	size = gpusort_gin_order_key_bytes(column, a);
	return size == gpusort_gin_order_key_bytes(column, b) &&
		memcmp(DatumGetPointer(a), DatumGetPointer(b), size) == 0;
}

/* Compare the current key with that of the row. */
static int
compare_keys(GsGinReader *reader)
{
	const GsGinKey *a = &reader->key;
	const GsGinKey *b = &reader->row.key;
	MemoryContext caller;
	int			cmp;

	if (a->attnum != b->attnum)
		return a->attnum < b->attnum ? -1 : 1;
	if (a->category != b->category)
		return a->category < b->category ? -1 : 1;
	if (a->category != GIN_CAT_NORM_KEY ||
		has_equal_bytes(&reader->order->columns[a->attnum - 1], a->value, b->value))
		return 0;
	CHECK_FOR_INTERRUPTS();
	caller = MemoryContextSwitchTo(reader->scratch);
	cmp = gpusort_gin_order_compare(reader->order, a, b);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(reader->scratch);
	return cmp;
}

/*
 * Has the row the current key?  Keys without a sort operator are sorted by the same function, and
 * it does not matter if that contradicts itself.
 */
static bool
is_same_key(GsGinReader *reader)
{
	int			cmp = compare_keys(reader);

	if (cmp > 0 && gpusort_verify != GS_VERIFY_OFF &&
		OidIsValid(reader->order->columns[reader->key.attnum - 1].operator))
		reader->wrong = true;
	return cmp == 0;
}

char *
gpusort_gin_reader_wrong_encoding(const GsGinReader *reader)
{
	const GsGinColumn *column = &reader->order->columns[reader->key.attnum - 1];

	return reader->wrong ?
		gpusort_distrust_add(column->operator, column->collation) : NULL;
}

/* ----------------------------------------------------------------
 *		TIDs
 * ----------------------------------------------------------------
 */

/* Make room for 'count' more TIDs. */
static void
reserve_tids(GsGinReader *reader, Size count)
{
	Size		needed = reader->ntids + count;

	if (needed <= reader->max_tids)
		return;
	reader->max_tids = Max(needed, reader->max_tids * 2);
	reader->tids = repalloc_huge(reader->tids, reader->max_tids * sizeof(uint64));
	reader->added = repalloc_huge(reader->added, reader->max_tids * sizeof(uint64));
}

/* Read the TIDs of the row.  Returns their number. */
static uint32
decode_row(const GsGinRow *row, uint64 *tids)
{
	const uint8 *bytes;
	const uint8 *end;
	uint64		last = row->first;
	uint32		n = 0;

	tids[n++] = last;
	if (row->others == NULL)
		return n;
	bytes = (const uint8 *) VARDATA_ANY(row->others);
	end = bytes + VARSIZE_ANY_EXHDR(row->others);
	while (bytes < end)
	{
		uint64		difference;

		if (likely(end - bytes >= GPUSORT_VARBYTE_ROOM))
			bytes = gpusort_varbyte_read_ahead(bytes, &difference);
		else
			bytes = gpusort_varbyte_read(bytes, &difference);
		if (unlikely(difference == 0))
		{
			/* The next one is a TID. */
			last = 0;
			continue;
		}
		tids[n++] = last += difference;
	}
	return n;
}

/* Merge 'count' added TIDs with the others.  There is room for all of them. */
static void
merge_tids(GsGinReader *reader, uint32 count)
{
	uint64	   *tids = reader->tids;
	uint32		before = reader->ntids;
	uint32		n = before + count;
	uint32		next = n;

	/* From the last one on; equal ones leave a gap. */
	while (count > 0)
	{
		uint64		tid = reader->added[count - 1];

		if (before > 0 && tids[before - 1] > tid)
			tids[--next] = tids[--before];
		else
		{
			if (before > 0 && tids[before - 1] == tid)
				before--;
			tids[--next] = tid;
			count--;
		}
	}
	memmove(tids + before, tids + next, (n - next) * sizeof(uint64));
	reader->ntids = before + (n - next);
}

/* Add the TIDs of the row to those of the current key. */
static void
add_row(GsGinReader *reader)
{
	uint64	   *added;
	uint32		count;

	reserve_tids(reader, 1 + (reader->row.others == NULL ? 0 :
							  VARSIZE_ANY_EXHDR(reader->row.others)));
	added = reader->tids + reader->ntids;
	count = decode_row(&reader->row, added);
	gpusort_work_add(count * sizeof(uint64));
	if (reader->ntids == 0 || added[-1] < added[0])
		reader->ntids += count;
	else
	{
		memcpy(reader->added, added, count * sizeof(uint64));
		merge_tids(reader, count);
	}
}

/* Returns how many of the TIDs are before those of the row. */
static uint32
count_before_row(const GsGinReader *reader)
{
	uint64		limit = reader->row.first;
	uint32		low = 0;
	uint32		high = reader->ntids;

	if (high > 0 && reader->tids[high - 1] < limit)
		return high;
	while (low < high)
	{
		uint32		middle = low + (high - low) / 2;

		if (reader->tids[middle] < limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Add the row to the current key, and go to the next one. */
static void
use_row(GsGinReader *reader)
{
	CHECK_FOR_INTERRUPTS();
	reader->ntids -= reader->ngiven;
	memmove(reader->tids, reader->tids + reader->ngiven, reader->ntids * sizeof(uint64));
	reader->ngiven = 0;
	reader->nfinal = count_before_row(reader);
	add_row(reader);
	read_row(reader);
}

bool
gpusort_gin_reader_next(GsGinReader *reader, GsGinKey *key)
{
	Assert(reader->ended);
	if (!reader->has_row || reader->wrong)
		return false;
	keep_key(reader);
	reader->ntids = 0;
	reader->ngiven = 0;
	reader->ended = false;
	use_row(reader);
	*key = reader->key;
	return true;
}

uint32
gpusort_gin_reader_tids(GsGinReader *reader, const uint64 **tids)
{
	uint32		count;

	while (!reader->ended && reader->ngiven == reader->nfinal)
	{
		if (reader->has_row && is_same_key(reader))
			use_row(reader);
		else
		{
			reader->ended = true;
			reader->nfinal = reader->ntids;
		}
	}
	count = Min(reader->nfinal - reader->ngiven, GPUSORT_GIN_READER_TIDS);
	*tids = reader->tids + reader->ngiven;
	reader->ngiven += count;
	return count;
}
