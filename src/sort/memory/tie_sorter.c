/*-------------------------------------------------------------------------
 *
 * tie_sorter.c
 *		Sorts ties whose encoded keys are not exact.
 *
 * The key of a text, for example, has only its first 8 bytes.  Rows with equal
 * keys form a group of ties.  A short group is sorted by comparisons.  In a long
 * group, the words of the keys, which are the same in all of its rows, are
 * overwritten by the words that follow.  The group is then sorted again by radix,
 * and the new groups in it have even more in common.  This needs no additional
 * memory, and rows are compared only in short groups, or where no words can
 * distinguish them.
 *
 * The bytes of strings are read a bounded number of times.  Strings of a group get
 * words that tell how they relate to one of them, the pivot (key/string_pivot.c).
 * That reads their common prefix only once, and finds duplicates.  Since the pivot
 * is from the middle of the group, groups usually shrink fast, whatever the strings
 * are.  If they do not, comparisons sort the rest after as many rounds as a merge
 * sort would have needed.
 *
 * All steps are stable.  Initially, the rows of a group are in the order of their
 * numbers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "core/prefetch.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

/* Groups of up to this many rows are sorted by comparisons at once. */
#define SHORT_GROUP			24

/*
 * The same for groups whose comparisons are slow, because the values are compressed
 * or have a common prefix of LONG_START bytes.
 */
#define SHORT_COSTLY_GROUP	4
#define LONG_START			1024

/*
 * Limits on the number of rounds before comparisons take over.  For strings, the
 * limit is MORE_ROUNDS above the binary logarithm of the number of rows, which is
 * how often comparisons would read each row.  For other types, each round covers
 * one more word, and the limit is WORD_ROUNDS.
 */
#define MORE_ROUNDS			4
#define WORD_ROUNDS			4

/* How many rows ahead we prefetch keys. */
#define PREFETCH_ROWS		24

struct GsTieSorter
{
	const GsKeyPlan *key_plan;
	const GsSortKeys *keys;
	TupleDesc	tupdesc;
	const GsRowStore *store;
	unsigned	words;
	GsTieComparisons *comparisons;
	MemoryContext scratch;		/* for detoasted values */

	/* The sort keys of a row. */
	Datum	   *values;
	bool	   *isnull;
};

GsTieSorter *
gpusort_tie_sorter_create(const GsSortSpec *spec, const GsRowStore *store)
{
	GsTieSorter *sorter;
	int			first;

	if (gpusort_key_plan_is_exact(spec->key_plan, &first))
		return NULL;
	sorter = palloc0(sizeof(GsTieSorter));
	sorter->key_plan = spec->key_plan;
	sorter->keys = &spec->keys;
	sorter->tupdesc = spec->tupdesc;
	sorter->store = store;
	sorter->words = gpusort_key_plan_words(spec->key_plan);
	sorter->comparisons = gpusort_tie_comparisons_create(spec, store);
	sorter->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort ties",
											ALLOCSET_SMALL_SIZES);
	sorter->values = palloc(spec->keys.nkeys * sizeof(Datum));
	sorter->isnull = palloc(spec->keys.nkeys * sizeof(bool));
	return sorter;
}

/* Read sort keys 'from' to 'to' - 1 of an entry's row. */
static inline void
read_keys(const GsTieSorter *sorter, uint64 entry, int from, int to)
{
	gpusort_row_store_get_columns(sorter->store, (uint32) entry,
								  sorter->keys->attnos + from, to - from,
								  sorter->values + from, sorter->isnull + from);
}

/* Read a single sort key that is not NULL. */
static inline Datum
read_key(const GsTieSorter *sorter, uint64 entry, int key)
{
	Datum		value;
	bool		isnull;

	gpusort_row_store_get_columns(sorter->store, (uint32) entry,
								  &sorter->keys->attnos[key], 1,
								  &value, &isnull);
	return value;
}

static inline Form_pg_attribute
attribute_of_key(const GsTieSorter *sorter, int key)
{
	return TupleDescAttr(sorter->tupdesc, sorter->keys->attnos[key] - 1);
}

/* Is a value compressed or stored out of line? */
static inline bool
is_toasted(const GsTieSorter *sorter, int key, Datum value)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

	return attribute_of_key(sorter, key)->attlen == -1 &&
		(VARATT_IS_COMPRESSED(varlena) || VARATT_IS_EXTERNAL(varlena));
}

/* ----------------------------------------------------------------
 *		words
 * ----------------------------------------------------------------
 */

/*
 * Overwrite the key of the row whose sort keys have been read by the words at the cursor.  Returns
 * false if it has a NULL for which these have no place yet: encode all rows of the group again.
 */
static inline bool
encode_row(const GsTieSorter *sorter, GsKeySort *key_sort, uint64 entry, GsKeyCursor *cursor,
		   int first)
{
	if (cursor->slice == 0 && !cursor->nulls && sorter->isnull[first])
	{
		cursor->nulls = true;
		return false;
	}
	gpusort_key_plan_encode_at(sorter->key_plan, cursor, sorter->values, sorter->isnull,
							   gpusort_key_sort_key(key_sort, (uint32) entry));
	return true;
}

/* Overwrite the keys of a group's rows by the words at the cursor. */
static void
encode_group(GsTieSorter *sorter, GsKeySort *key_sort, const uint64 *entries,
			 uint32 count, GsKeyCursor *cursor)
{
	int			from;
	int			to;
	uint32		i = 0;

	gpusort_key_plan_span(sorter->key_plan, cursor, &from, &to);
	while (i < count)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_row_store_fetch_ahead(sorter->store, entries + i, count - i);
		read_keys(sorter, entries[i], from, to);
		i = encode_row(sorter, key_sort, entries[i], cursor, from) ? i + 1 : 0;
	}
}

/* The same for strings, whose words relate them to a pivot. */
static void
encode_strings(GsTieSorter *sorter, GsKeySort *key_sort,
			   const uint64 *entries, uint32 count, GsKeyCursor *cursor,
			   int key)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->scratch);
	GsPivot		pivot;

	gpusort_key_plan_set_pivot(sorter->key_plan, cursor,
							   read_key(sorter, entries[count / 2], key),
							   &pivot);
	for (uint32 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_row_store_fetch_ahead(sorter->store, entries + i, count - i);
		gpusort_pivot_encode(&pivot, read_key(sorter, entries[i], key),
							 gpusort_key_sort_key(key_sort,
												  (uint32) entries[i]));
	}
	gpusort_pivot_drop(&pivot);
	MemoryContextSwitchTo(caller);
}

static inline bool
have_equal_keys(const uint64 *a, const uint64 *b, unsigned words)
{
	for (unsigned w = 0; w < words; w++)
		if (a[w] != b[w])
			return false;
	return true;
}

/* Returns the number of rows in the group that begins with the first entry. */
static uint32
group_length(const GsTieSorter *sorter, const GsKeySort *key_sort,
			 const uint64 *entries, uint32 count)
{
	const uint64 *key = gpusort_key_sort_key(key_sort, (uint32) entries[0]);
	uint32		length = 1;

	gpusort_work_add(sizeof(uint64));
	while (length < count &&
		   have_equal_keys(key, gpusort_key_sort_key(key_sort,
													 (uint32) entries[length]),
						   sorter->words))
	{
		if (length + PREFETCH_ROWS < count)
			gpusort_prefetch(gpusort_key_sort_key(key_sort,
												  (uint32) entries[length + PREFETCH_ROWS]));
		length++;
		gpusort_work_add(sizeof(uint64));
		if (length % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
	}
	if (length + PREFETCH_ROWS < count)
		gpusort_prefetch(gpusort_key_sort_key(key_sort,
											  (uint32) entries[length + PREFETCH_ROWS]));
	return length;
}

/* ----------------------------------------------------------------
 *		groups of ties
 * ----------------------------------------------------------------
 */

static void sort_groups(GsTieSorter *sorter, GsKeySort *key_sort,
						uint64 *entries, uint32 count, GsKeyCursor cursor);

/* A value of a sort key, which is not toasted. */
typedef struct GsPlainValue
{
	int			key;
	Datum		value;
	Size		size;			/* of a varlena */
} GsPlainValue;

/* Get the value of an entry's row, in the current memory context. */
static GsPlainValue
plain_value(const GsTieSorter *sorter, uint64 entry, int key)
{
	GsPlainValue plain = {.key = key,.value = read_key(sorter, entry, key)};

	if (attribute_of_key(sorter, key)->attlen == -1)
	{
		plain.size = toast_raw_datum_size(plain.value);
		plain.value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(plain.value));
	}
	return plain;
}

/* Is the sort key of the row that has been read the same, bit for bit? */
static bool
is_alike(const GsTieSorter *sorter, const GsPlainValue *one)
{
	Form_pg_attribute att = attribute_of_key(sorter, one->key);
	Datum		other = sorter->values[one->key];
	bool		alike;
	struct varlena *plain;

	if (sorter->isnull[one->key])
		return false;
	if (att->attlen != -1)
		return datum_image_eq(one->value, other, att->attbyval, att->attlen);
	if (toast_raw_datum_size(other) != one->size)
		return false;
	gpusort_work_add(one->size);
	plain = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(other));
	alike = memcmp(VARDATA_ANY(DatumGetPointer(one->value)), VARDATA_ANY(plain),
				   one->size - VARHDRSZ) == 0;
	if (plain != (struct varlena *) DatumGetPointer(other))
		pfree(plain);
	return alike;
}

/*
 * Do all rows of a group have the same value of a sort key, bit for bit?  This detects duplicates
 * that words cannot detect, or only after many rounds.  If so, overwrites the keys of the rows by
 * the words at the cursor 'next', unless that is NULL.
 */
static bool
are_alike(GsTieSorter *sorter, GsKeySort *key_sort, const uint64 *entries, uint32 count, int key,
		  GsKeyCursor *next)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->scratch);
	GsPlainValue one = plain_value(sorter, entries[0], key);
	Size		key_bytes = sorter->words * sizeof(uint64);
	uint64		common[GPUSORT_CPU_MAX_KEY_WORDS];
	int			from = key;
	int			to = key + 1;
	uint32		i = 0;

	memcpy(common, gpusort_key_sort_key(key_sort, (uint32) entries[0]), key_bytes);
	if (next != NULL)
		gpusort_key_plan_span(sorter->key_plan, next, &from, &to);
	while (i < count)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_row_store_fetch_ahead(sorter->store, entries + i, count - i);
		read_keys(sorter, entries[i], key, to);
		if (!is_alike(sorter, &one))
			break;
		i = next == NULL || encode_row(sorter, key_sort, entries[i], next, from) ? i + 1 : 0;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(sorter->scratch);
	if (i == count)
		return true;
	for (uint32 row = 0; next != NULL && row < i; row++)
		memcpy(gpusort_key_sort_key(key_sort, (uint32) entries[row]), common, key_bytes);
	return false;
}

/* Are comparisons of the strings of a group slow? */
static inline bool
are_costly(const GsTieSorter *sorter, const GsKeyCursor *cursor, int key)
{
	return cursor->start >= LONG_START ||
		is_toasted(sorter, key, sorter->values[key]);
}

/* Sort a group by comparing the sort keys from 'first' on. */
static void
compare_all(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries,
			uint32 count, int first)
{
	gpusort_tie_comparisons_sort(sorter->comparisons, entries, count,
								 gpusort_key_sort_scratch(key_sort), first,
								 sorter->keys->nkeys);
}

/* Sort a group by words that its keys have been overwritten by, and by what follows them. */
static void
sort_encoded(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries, uint32 count,
			 GsKeyCursor cursor)
{
	gpusort_key_sort_some(key_sort, entries, count);
	sort_groups(sorter, key_sort, entries, count, cursor);
}

/* Sort a group by the words of strings at the cursor, and by what follows them. */
static void
sort_by_strings(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries,
				uint32 count, GsKeyCursor cursor, int first)
{
	bool		costly = are_costly(sorter, &cursor, first);
	uint32		rounds = gpusort_key_plan_rounds(sorter->key_plan, &cursor);

	if (count <= (costly ? SHORT_COSTLY_GROUP : SHORT_GROUP) ||
		rounds > pg_ceil_log2_32(count) + MORE_ROUNDS)
	{
		compare_all(sorter, key_sort, entries, count, first);
		return;
	}

	/* The rows may be in order already.  If not, we soon notice. */
	if (rounds == 1 &&
		gpusort_tie_comparisons_in_order(sorter->comparisons, entries, count,
										 first))
		return;
	encode_strings(sorter, key_sort, entries, count, &cursor, first);
	sort_encoded(sorter, key_sort, entries, count, cursor);
}

/* Sort a group by the words at the cursor, and by what follows them. */
static void
sort_by_words(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries,
			  uint32 count, GsKeyCursor cursor, int first)
{
	if (count <= SHORT_GROUP ||
		gpusort_key_plan_rounds(sorter->key_plan, &cursor) > WORD_ROUNDS)
	{
		compare_all(sorter, key_sort, entries, count, first);
		return;
	}
	encode_group(sorter, key_sort, entries, count, &cursor);
	sort_encoded(sorter, key_sort, entries, count, cursor);
}

/*
 * Sort a group by a sort key that has no further words, using comparisons, and
 * rows for which it is equal by what follows it.
 */
static void
sort_by_comparisons(GsTieSorter *sorter, GsKeySort *key_sort,
					uint64 *entries, uint32 count, GsKeyCursor cursor,
					int first)
{
	int			next;
	uint32		length;

	if (count <= SHORT_GROUP ||
		gpusort_key_plan_skip_key(sorter->key_plan, &cursor,
								  &next) == GS_KEY_EQUAL)
	{
		compare_all(sorter, key_sort, entries, count, first);
		return;
	}
	gpusort_tie_comparisons_sort(sorter->comparisons, entries, count,
								 gpusort_key_sort_scratch(key_sort), first,
								 first + 1);
	for (; count > 0; count -= length)
	{
		length = gpusort_tie_comparisons_equal(entries[0]);
		if (length > 1)
			sort_by_words(sorter, key_sort, entries, length, cursor, next);
		entries += length;
	}
}

/*
 * Does it pay to look for duplicates before a group is sorted?  Words do not find them
 * soon; a pivot does, but reads all rows of the group to the end, where a look ends at the
 * first row that is different.
 */
static inline bool
may_be_alike(const GsTieSorter *sorter, GsKeyRest rest, const GsKeyCursor *cursor,
			 int first)
{
	switch (rest)
	{
		case GS_KEY_COMPARE:
			return true;
		case GS_KEY_WORDS:
			return gpusort_key_plan_rounds(sorter->key_plan, cursor) == 1;
		case GS_KEY_STRINGS:
			return !are_costly(sorter, cursor, first);
		default:
			return false;
	}
}

/*
 * Sort a group by what follows a sort key, if all rows have the same value of it.  Returns false if
 * they have not.
 */
static bool
sort_alike(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries, uint32 count,
		   GsKeyCursor cursor, int key)
{
	int			next;
	bool		more = gpusort_key_plan_skip_key(sorter->key_plan, &cursor, &next) == GS_KEY_WORDS;

	if (!are_alike(sorter, key_sort, entries, count, key, more ? &cursor : NULL))
		return false;
	if (more)
		sort_encoded(sorter, key_sort, entries, count, cursor);
	return true;
}

/* Sort a group, whose rows have equal words before those at the cursor. */
static void
sort_group(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries,
		   uint32 count, GsKeyCursor cursor)
{
	GsKeyRest	rest;
	int			first;
	int			end;

	/* Any row will do, since the answer is the same for all of them. */
	gpusort_key_plan_span(sorter->key_plan, &cursor, &first, &end);
	read_keys(sorter, entries[0], first, end);
	rest = gpusort_key_plan_next_words(sorter->key_plan, sorter->values,
									   sorter->isnull,
									   gpusort_key_sort_key(key_sort,
															(uint32) entries[0]),
									   &cursor, &first);

	if (count > SHORT_GROUP && may_be_alike(sorter, rest, &cursor, first) &&
		sort_alike(sorter, key_sort, entries, count, cursor, first))
		return;
	switch (rest)
	{
		case GS_KEY_EQUAL:
			break;
		case GS_KEY_WORDS:
			sort_by_words(sorter, key_sort, entries, count, cursor, first);
			break;
		case GS_KEY_STRINGS:
			sort_by_strings(sorter, key_sort, entries, count, cursor, first);
			break;
		case GS_KEY_COMPARE:
			sort_by_comparisons(sorter, key_sort, entries, count, cursor,
								first);
			break;
	}
}

/* Sort all groups of ties among entries that are in the order of their keys. */
static void
sort_groups(GsTieSorter *sorter, GsKeySort *key_sort, uint64 *entries,
			uint32 count, GsKeyCursor cursor)
{
	check_stack_depth();
	while (count > 0)
	{
		uint32		length = group_length(sorter, key_sort, entries, count);

		CHECK_FOR_INTERRUPTS();
		if (length > 1)
		{
			/* The rows of the next groups can come meanwhile. */
			for (uint32 i = 0; i < Min(length, SHORT_GROUP); i++)
				gpusort_row_store_fetch_ahead(sorter->store, entries + i, count - i);
			sort_group(sorter, key_sort, entries, length, cursor);
		}
		entries += length;
		count -= length;
	}
}

void
gpusort_tie_sorter_sort(GsKeySort *key_sort, uint64 *entries, uint32 count,
						void *arg)
{
	GsKeyCursor start = {0};

	sort_groups(arg, key_sort, entries, count, start);
}
