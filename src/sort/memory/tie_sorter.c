/*-------------------------------------------------------------------------
 *
 * tie_sorter.c
 *		Puts rows in order whose encoded keys are equal but do not say all.
 *
 * The key of a text is its first 8 bytes.  Rows with equal keys form a run.  A
 * short run is sorted by comparisons.  In a long one each row gets other words
 * for its key, in the place of those that are the same in all of them; the run is
 * sorted again by radix, and falls into runs that have even more in common.  So no
 * memory is needed, and rows are compared only where there are few of them, or
 * where no words can tell them apart.
 *
 * Bytes of strings are read a bounded number of times.  Words of strings take a run
 * apart by how each relates to one of them (key/string_pivot.c): that reads what
 * they have in common once, and finds duplicates.  With a pivot from the middle,
 * runs get smaller soon, whatever the strings are like; if not, comparisons do the
 * rest after as many rounds as would have sorted the rows.
 *
 * All sorting is stable: rows come as they are in their run, which at first is
 * in the order of their numbers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "fmgr.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "sort/memory/tie_comparisons.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

/* Rows up to which a run is sorted by comparisons at once. */
#define SHORT_RUN			24

/* The same if a comparison takes long: of what is compressed, or begins alike. */
#define SHORT_COSTLY_RUN	4
#define LONG_START			1024

/*
 * Rounds by words of strings that a run may take more than the logarithm of its
 * rows, which is how often comparisons would read each of them; and those by words
 * of others, which take one word at a time.
 */
#define MORE_ROUNDS			4
#define WORD_ROUNDS			4

/* How many rows ahead keys and rows are fetched into the cache. */
#define PREFETCH_ROWS		24

#ifdef __GNUC__
#define PREFETCH(address)	__builtin_prefetch(address)
#else
#define PREFETCH(address)	((void) 0)
#endif

struct GsTieSorter
{
	const GsKeyPlan *key_plan;
	const GsSortKeys *keys;
	TupleDesc	tupdesc;
	const GsRowStore *store;
	unsigned	words;
	GsTieComparisons *comparisons;
	MemoryContext scratch;		/* for copies of values */

	/* Sort keys of a row. */
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

/* The same of one that is not NULL. */
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

/* Is a value compressed or stored elsewhere? */
static inline bool
is_toasted(const GsTieSorter *sorter, int key, Datum value)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

	return attribute_of_key(sorter, key)->attlen == -1 &&
		(VARATT_IS_COMPRESSED(varlena) || VARATT_IS_EXTERNAL(varlena));
}

/* Fetch rows into the cache that will be read soon after the i-th. */
static inline void
fetch_ahead(const GsTieSorter *sorter, const uint64 *entries, uint32 i,
			uint32 count)
{
	if (i + PREFETCH_ROWS >= count)
		return;
	gpusort_row_store_prefetch(sorter->store,
							   (uint32) entries[i + PREFETCH_ROWS]);
	gpusort_row_store_prefetch_elsewhere(sorter->store,
										 (uint32) entries[i + PREFETCH_ROWS / 2]);
}

/* ----------------------------------------------------------------
 *		words
 * ----------------------------------------------------------------
 */

/* Give the rows of a run the words at the cursor for their keys. */
static void
encode_run(GsTieSorter *sorter, GsOrdering *ordering, const uint64 *entries,
		   uint32 count, const GsKeyCursor *cursor)
{
	int			from;
	int			to;

	gpusort_key_plan_span(sorter->key_plan, cursor, &from, &to);
	for (uint32 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fetch_ahead(sorter, entries, i, count);
		read_keys(sorter, entries[i], from, to);
		gpusort_key_plan_encode_at(sorter->key_plan, cursor, sorter->values,
								   sorter->isnull,
								   gpusort_ordering_key(ordering,
														(uint32) entries[i]));
	}
}

/* The same if these relate strings to one of them. */
static void
encode_strings(GsTieSorter *sorter, GsOrdering *ordering,
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
		fetch_ahead(sorter, entries, i, count);
		gpusort_pivot_encode(&pivot, read_key(sorter, entries[i], key),
							 gpusort_ordering_key(ordering,
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

/* The length of the run that the first entry is in. */
static uint32
run_length(const GsTieSorter *sorter, const GsOrdering *ordering,
		   const uint64 *entries, uint32 count)
{
	const uint64 *key = gpusort_ordering_key(ordering, (uint32) entries[0]);
	uint32		length = 1;

	gpusort_work_add(sizeof(uint64));
	while (length < count &&
		   have_equal_keys(key, gpusort_ordering_key(ordering,
													 (uint32) entries[length]),
						   sorter->words))
	{
		if (length + PREFETCH_ROWS < count)
			PREFETCH(gpusort_ordering_key(ordering,
										  (uint32) entries[length + PREFETCH_ROWS]));
		length++;
		gpusort_work_add(sizeof(uint64));
		if (length % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
	}
	if (length + PREFETCH_ROWS < count)
		PREFETCH(gpusort_ordering_key(ordering,
									  (uint32) entries[length + PREFETCH_ROWS]));
	return length;
}

/* ----------------------------------------------------------------
 *		runs
 * ----------------------------------------------------------------
 */

static void sort_runs(GsTieSorter *sorter, GsOrdering *ordering,
					  uint64 *entries, uint32 count, GsKeyCursor cursor);

/* Has a row the same value as another one, which is not compressed, bit for bit? */
static bool
is_alike(GsTieSorter *sorter, uint64 entry, int key, Datum value, Size size)
{
	Form_pg_attribute att = attribute_of_key(sorter, key);
	bool		alike;
	Datum		other;
	struct varlena *plain;

	read_keys(sorter, entry, key, key + 1);
	other = sorter->values[key];
	if (sorter->isnull[key])
		return false;
	if (att->attlen != -1)
		return datum_image_eq(value, other, att->attbyval, att->attlen);
	if (toast_raw_datum_size(other) != size)
		return false;
	gpusort_work_add(size);
	plain = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(other));
	alike = memcmp(VARDATA_ANY(DatumGetPointer(value)), VARDATA_ANY(plain),
				   size - VARHDRSZ) == 0;
	if (plain != (struct varlena *) DatumGetPointer(other))
		pfree(plain);
	return alike;
}

/*
 * Have all rows of a run the same value of a sort key, bit for bit?  This finds
 * duplicates of what words do not reach, or only after many rounds.
 */
static bool
are_alike(GsTieSorter *sorter, const uint64 *entries, uint32 count, int key)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->scratch);
	Datum		value = read_key(sorter, entries[0], key);
	Size		size = 0;
	uint32		i;

	if (attribute_of_key(sorter, key)->attlen == -1)
	{
		size = toast_raw_datum_size(value);
		value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	}
	for (i = 1; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		fetch_ahead(sorter, entries, i, count);
		if (!is_alike(sorter, entries[i], key, value, size))
			break;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(sorter->scratch);
	return i == count;
}


/* Do comparisons of strings of a run take long? */
static inline bool
are_costly(const GsTieSorter *sorter, const GsKeyCursor *cursor, int key)
{
	return cursor->start >= LONG_START ||
		is_toasted(sorter, key, sorter->values[key]);
}

/* Sort a run by comparing sort keys from 'first' on. */
static void
compare_all(GsTieSorter *sorter, GsOrdering *ordering, uint64 *entries,
			uint32 count, int first)
{
	gpusort_tie_comparisons_sort(sorter->comparisons, entries, count,
								 gpusort_ordering_scratch(ordering), first,
								 sorter->keys->nkeys);
}

/* Sort a run by the words of strings at the cursor, and what follows them. */
static void
sort_by_strings(GsTieSorter *sorter, GsOrdering *ordering, uint64 *entries,
				uint32 count, GsKeyCursor cursor, int first)
{
	bool		costly = are_costly(sorter, &cursor, first);
	uint32		rounds = gpusort_key_plan_rounds(sorter->key_plan, &cursor);

	if (count <= (costly ? SHORT_COSTLY_RUN : SHORT_RUN) ||
		rounds > pg_ceil_log2_32(count) + MORE_ROUNDS)
	{
		compare_all(sorter, ordering, entries, count, first);
		return;
	}

	/* To decompress each value once is the least that can be done. */
	if (costly && rounds == 1 &&
		gpusort_tie_comparisons_in_order(sorter->comparisons, entries, count,
										 first))
		return;
	encode_strings(sorter, ordering, entries, count, &cursor, first);
	gpusort_ordering_sort_some(ordering, entries, count);
	sort_runs(sorter, ordering, entries, count, cursor);
}

/* Sort a run by the words at the cursor, and what follows them. */
static void
sort_by_words(GsTieSorter *sorter, GsOrdering *ordering, uint64 *entries,
			  uint32 count, GsKeyCursor cursor, int first)
{
	if (count <= SHORT_RUN ||
		gpusort_key_plan_rounds(sorter->key_plan, &cursor) > WORD_ROUNDS)
	{
		compare_all(sorter, ordering, entries, count, first);
		return;
	}
	encode_run(sorter, ordering, entries, count, &cursor);
	gpusort_ordering_sort_some(ordering, entries, count);
	sort_runs(sorter, ordering, entries, count, cursor);
}

/*
 * Sort a run by a sort key that only comparisons can tell of, and what follows the
 * cursor where that is equal.
 */
static void
sort_by_comparisons(GsTieSorter *sorter, GsOrdering *ordering,
					uint64 *entries, uint32 count, GsKeyCursor cursor,
					int first)
{
	int			next;
	uint32		length;

	if (count <= SHORT_RUN ||
		gpusort_key_plan_skip_key(sorter->key_plan, &cursor,
								  &next) == GS_KEY_EQUAL)
	{
		compare_all(sorter, ordering, entries, count, first);
		return;
	}
	gpusort_tie_comparisons_sort(sorter->comparisons, entries, count,
								 gpusort_ordering_scratch(ordering), first,
								 first + 1);
	for (; count > 0; count -= length)
	{
		length = gpusort_tie_comparisons_equal(entries[0]);
		if (length > 1)
			sort_by_words(sorter, ordering, entries, length, cursor, next);
		entries += length;
	}
}

/* Sort a run, whose rows have equal words up to those at the cursor. */
static void
sort_run(GsTieSorter *sorter, GsOrdering *ordering, uint64 *entries,
		 uint32 count, GsKeyCursor cursor)
{
	GsKeyRest	rest;
	int			first;

	/* Of any row, since they are alike as far as the answer is concerned. */
	read_keys(sorter, entries[0], 0, sorter->keys->nkeys);
	rest = gpusort_key_plan_next_words(sorter->key_plan, sorter->values,
									   sorter->isnull,
									   gpusort_ordering_key(ordering,
															(uint32) entries[0]),
									   &cursor, &first);

	/* Strings find their duplicates by themselves. */
	if (count > SHORT_RUN &&
		(rest == GS_KEY_COMPARE ||
		 (rest == GS_KEY_WORDS &&
		  gpusort_key_plan_rounds(sorter->key_plan, &cursor) == 1)) &&
		are_alike(sorter, entries, count, first))
		rest = gpusort_key_plan_skip_key(sorter->key_plan, &cursor, &first);

	switch (rest)
	{
		case GS_KEY_EQUAL:
			break;
		case GS_KEY_WORDS:
			sort_by_words(sorter, ordering, entries, count, cursor, first);
			break;
		case GS_KEY_STRINGS:
			sort_by_strings(sorter, ordering, entries, count, cursor, first);
			break;
		case GS_KEY_COMPARE:
			sort_by_comparisons(sorter, ordering, entries, count, cursor,
								first);
			break;
	}
}

/* Sort all runs of entries that are in the order of the words at the cursor. */
static void
sort_runs(GsTieSorter *sorter, GsOrdering *ordering, uint64 *entries,
		  uint32 count, GsKeyCursor cursor)
{
	check_stack_depth();
	while (count > 0)
	{
		uint32		length = run_length(sorter, ordering, entries, count);

		CHECK_FOR_INTERRUPTS();
		if (length > 1)
			sort_run(sorter, ordering, entries, length, cursor);
		entries += length;
		count -= length;
	}
}

void
gpusort_tie_sorter_sort(GsOrdering *ordering, uint64 *entries, uint32 count,
						void *arg)
{
	GsKeyCursor start = {0};

	sort_runs(arg, ordering, entries, count, start);
}
