/*-------------------------------------------------------------------------
 *
 * first_keys.c
 *		The first sort keys of the rows of a sort, for those who need no more of the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "settings.h"
#include "sort/base/tuple_rows.h"
#include "sort/first_keys.h"
#include "sort/sort_private.h"

static int
column_of_key(const GsSort *sort)
{
	return sort->spec->keys.attnos[0] - 1;
}

static Form_pg_attribute
attribute_of_key(const GsSort *sort)
{
	return TupleDescAttr(sort->spec->tupdesc, column_of_key(sort));
}

static TupleTableSlot *
make_slot(const GsSort *sort)
{
	return MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
}

/* Move the cursor to the next row, and get its first key. */
static inline bool
next_key(GsSort *sort, TupleTableSlot *slot, NullableDatum *key)
{
	int			column = column_of_key(sort);

	if (!gpusort_sort_next(sort, true, slot))
		return false;
	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	key->value = slot->tts_values[column];
	key->isnull = slot->tts_isnull[column];
	return true;
}

/* ----------------------------------------------------------------
 *		different keys
 * ----------------------------------------------------------------
 */

/* The last key that is not NULL. */
typedef struct GsLastKey
{
	SortSupportData ssup;
	Form_pg_attribute attribute;
	bool		exists;
	bool		lasting;		/* do keys stay where they are? */
	Datum		value;
	int64		rows;			/* with this key */
} GsLastKey;

static bool
is_new(GsLastKey *last, Datum key)
{
	if (!last->exists)
		return true;
	if (last->attribute->attbyval && key == last->value)
		return false;
	return ApplySortComparator(last->value, false, key, false, &last->ssup) != 0;
}

static void
remember(GsLastKey *last, Datum key)
{
	if (last->attribute->attbyval || last->lasting)
		last->value = key;
	else
	{
		if (last->exists)
			pfree(DatumGetPointer(last->value));
		last->value = datumCopy(key, false, last->attribute->attlen);
	}
	last->exists = true;
	last->rows = 0;
}

/* Count the rows that follow. */
static void
count_rows(GsSort *sort, TupleTableSlot *slot, GsLastKey *last, GsKeyCounts *counts)
{
	NullableDatum key;

	while (next_key(sort, slot, &key))
	{
		if (counts->rows++ % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		if (key.isnull)
			continue;
		if (is_new(last, key.value))
		{
			remember(last, key.value);
			counts->groups++;
		}
		if (++last->rows > counts->most)
		{
			counts->most = last->rows;
			counts->mode = last->attribute->attbyval ? last->value : (Datum) 0;
		}
	}
}

/*
 * Can keys be counted by their words?  Then the rows, which are all over the memory, are not read,
 * but for one of each range: their order is checked.
 */
static bool
can_count_words(const GsSort *sort)
{
	return sort->location == GS_ROWS_SHARED && sort->spec->group_keys > 0 &&
		sort->ranges->counts_keys &&
		(sort->checked.check == NULL || gpusort_verify != GS_VERIFY_ALL);
}

/* Count the rows of ranges by the words of their keys. */
static void
count_words(GsSort *sort, TupleTableSlot *slot, GsKeyCounts *counts)
{
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;
	int64		before = counts->rows;

	while (gpusort_ranges_count_keys(sort->ranges, counts, values, isnull))
	{
		uint32		n = (uint32) (counts->rows - before);

		CHECK_FOR_INTERRUPTS();
		before = counts->rows;
		sort->nrows += n;
		gpusort_sort_skip(sort, n);
		if (n > 0)
			(void) gpusort_sort_check_in_place(sort, values, isnull);
	}
}

bool
gpusort_first_keys_count(GsSort *sort, GsKeyCounts *counts)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort last key",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	TupleTableSlot *slot = make_slot(sort);
	GsLastKey	last = {
		.attribute = attribute_of_key(sort),
		.lasting = gpusort_sort_is_lasting(sort)
	};

	gpusort_key_comparison_prepare(&sort->spec->keys, 0, &last.ssup);
	if (can_count_words(sort))
		count_words(sort, slot, counts);
	else
		count_rows(sort, slot, &last, counts);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return !gpusort_sort_is_lost(sort);
}

/* Of keys that are as frequent, the first one is the mode. */
void
gpusort_first_keys_add(const GsSort *sort, GsKeyCounts *counts, const GsKeyCounts *other)
{
	SortSupportData ssup = {0};

	gpusort_key_comparison_prepare(&sort->spec->keys, 0, &ssup);
	counts->rows += other->rows;
	counts->groups += other->groups;
	if (other->most > counts->most ||
		(other->most == counts->most && other->most > 0 && attribute_of_key(sort)->attbyval &&
		 ApplySortComparator(other->mode, false, counts->mode, false, &ssup) < 0))
	{
		counts->most = other->most;
		counts->mode = other->mode;
	}
}

/* ----------------------------------------------------------------
 *		keys by position
 * ----------------------------------------------------------------
 */

struct GsFirstKeys
{
	GsSort	   *sort;
	TupleTableSlot *slot;
	int64		first;			/* position of the first key that is not NULL */
	int64		number;			/* of such keys */
};

/* Read the first key of the row at a position, counted from 0. */
static void
read_key(const GsFirstKeys *keys, int64 position, NullableDatum *key)
{
	gpusort_sort_go_to(keys->sort, position);
	if (!next_key(keys->sort, keys->slot, key))
		elog(ERROR, "a sort has no row at position " INT64_FORMAT, position);
}

static bool
is_null(const GsFirstKeys *keys, int64 position)
{
	NullableDatum key;

	read_key(keys, position, &key);
	return key.isnull;
}

/* Returns how many of the first rows have a key that is NULL, or is not, as 'isnull' says. */
static int64
count_first(const GsFirstKeys *keys, bool isnull)
{
	int64		low = 0;
	int64		high = gpusort_sort_count(keys->sort);

	if (high > 0 && is_null(keys, high - 1) == isnull)
		return high;
	while (low < high)
	{
		int64		middle = low + (high - low) / 2;

		CHECK_FOR_INTERRUPTS();
		if (is_null(keys, middle) == isnull)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

GsFirstKeys *
gpusort_first_keys_create(GsSort *sort)
{
	GsFirstKeys *keys = palloc0(sizeof(GsFirstKeys));

	keys->sort = sort;
	keys->slot = make_slot(sort);
	if (sort->spec->keys.nulls_first[0])
	{
		keys->first = count_first(keys, true);
		keys->number = gpusort_sort_count(sort) - keys->first;
	}
	else
		keys->number = count_first(keys, false);
	return keys;
}

int64
gpusort_first_keys_number(const GsFirstKeys *keys)
{
	return keys->number;
}

Datum
gpusort_first_keys_get(GsFirstKeys *keys, int64 position)
{
	NullableDatum key;

	read_key(keys, keys->first + position, &key);
	return key.value;
}
