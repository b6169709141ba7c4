/*-------------------------------------------------------------------------
 *
 * tie_sorter.c
 *		Puts rows in order whose encoded keys are equal but do not say all.
 *
 * The key of a text is its first 8 bytes.  Rows with equal keys form a run.  A
 * short run is sorted by comparisons.  In a long one each row gets the words
 * that follow for its key, in the place of those that are the same in all of
 * them; the run is sorted again by radix, and falls into runs that have even
 * more in common.  So no memory is needed, and rows are compared only where
 * there are few of them, or where no words can tell them apart.
 *
 * All sorting is stable: rows come as they are in their run, which at first is
 * in the order of their numbers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "key/key_comparison.h"
#include "sort/tie_sorter.h"

/* Rows up to which a run is sorted by comparisons at once. */
#define SHORT_RUN			24

/* Rows up to which comparisons sort by insertion. */
#define INSERTION_ROWS		8

/* How many rows ahead keys and rows are fetched into the cache. */
#define PREFETCH_ROWS		24

#ifdef __GNUC__
#define PREFETCH(address)	__builtin_prefetch(address)
#else
#define PREFETCH(address)	((void) 0)
#endif

/* The sort keys of a row. */
typedef struct GsTieRow
{
	uint64		entry;
	Datum	   *values;			/* nkeys */
	bool	   *isnull;
} GsTieRow;

struct GsTieSorter
{
	const GsKeyPlan *key_plan;
	const GsSortKeys *keys;
	TupleDesc	tupdesc;
	const GsRowStore *store;
	unsigned	words;
	GsKeyComparison *comparison;	/* NULL until it is needed */
	MemoryContext context;
	MemoryContext scratch;		/* for what comparators leave behind */
	GsTieRow	rows[INSERTION_ROWS];
};

GsTieSorter *
gpusort_tie_sorter_create(const GsSessionSpec *spec, const GsRowStore *store)
{
	GsTieSorter *sorter;
	int			nkeys = spec->keys.nkeys;
	int			first;

	if (gpusort_key_plan_is_exact(spec->key_plan, &first))
		return NULL;
	sorter = palloc0(sizeof(GsTieSorter));
	sorter->key_plan = spec->key_plan;
	sorter->keys = &spec->keys;
	sorter->tupdesc = spec->tupdesc;
	sorter->store = store;
	sorter->words = gpusort_key_plan_words(spec->key_plan);
	sorter->context = CurrentMemoryContext;
	sorter->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort comparisons",
											ALLOCSET_SMALL_SIZES);
	for (int i = 0; i < INSERTION_ROWS; i++)
	{
		sorter->rows[i].values = palloc(nkeys * sizeof(Datum));
		sorter->rows[i].isnull = palloc(nkeys * sizeof(bool));
	}
	return sorter;
}

/* Read sort keys 'from' to 'to' - 1 of an entry's row. */
static inline void
read_keys(const GsTieSorter *sorter, uint64 entry, int from, int to,
		  GsTieRow *row)
{
	row->entry = entry;
	gpusort_row_store_get_columns(sorter->store, (uint32) entry,
								  sorter->keys->attnos + from, to - from,
								  row->values + from, row->isnull + from);
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
 *		by comparisons
 * ----------------------------------------------------------------
 */

/* Does row 'b', which comes behind 'a', have to go before it? */
static inline bool
goes_before(const GsTieSorter *sorter, int first, const GsTieRow *b,
			const GsTieRow *a)
{
	return gpusort_key_comparison_compare(sorter->comparison, first,
										  a->values, a->isnull,
										  b->values, b->isnull) > 0;
}

static void
insertion_sort(GsTieSorter *sorter, uint64 *entries, uint32 count, int first)
{
	for (uint32 i = 0; i < count; i++)
	{
		GsTieRow	row = sorter->rows[i];
		uint32		j = i;

		read_keys(sorter, entries[i], first, sorter->keys->nkeys, &row);
		for (; j > 0 && goes_before(sorter, first, &row, &sorter->rows[j - 1]);
			 j--)
			sorter->rows[j] = sorter->rows[j - 1];
		sorter->rows[j] = row;
	}
	for (uint32 i = 0; i < count; i++)
		entries[i] = sorter->rows[i].entry;
}

/* Merge entries, sorted up to 'middle' and from there on. */
static void
merge_entries(GsTieSorter *sorter, uint64 *entries, uint32 middle,
			  uint32 count, uint64 *scratch, int first)
{
	int			nkeys = sorter->keys->nkeys;
	GsTieRow   *left = &sorter->rows[0];
	GsTieRow   *right = &sorter->rows[1];
	uint32		l = 0;
	uint32		r = middle;
	uint32		out = 0;

	read_keys(sorter, entries[middle - 1], first, nkeys, left);
	read_keys(sorter, entries[middle], first, nkeys, right);
	if (!goes_before(sorter, first, right, left))
		return;

	memcpy(scratch, entries, middle * sizeof(uint64));
	read_keys(sorter, scratch[0], first, nkeys, left);
	for (;;)
	{
		if (goes_before(sorter, first, right, left))
		{
			entries[out++] = right->entry;
			if (++r == count)
				break;
			read_keys(sorter, entries[r], first, nkeys, right);
		}
		else
		{
			entries[out++] = left->entry;
			if (++l == middle)
				return;
			read_keys(sorter, scratch[l], first, nkeys, left);
		}
	}
	memcpy(entries + out, scratch + l, (middle - l) * sizeof(uint64));
}

/* Sort entries by sort keys from 'first' on. */
static void
merge_sort(GsTieSorter *sorter, uint64 *entries, uint32 count,
		   uint64 *scratch, int first)
{
	uint32		middle = count / 2;

	CHECK_FOR_INTERRUPTS();
	if (count <= INSERTION_ROWS)
		insertion_sort(sorter, entries, count, first);
	else
	{
		merge_sort(sorter, entries, middle, scratch, first);
		merge_sort(sorter, entries + middle, count - middle, scratch, first);
		merge_entries(sorter, entries, middle, count, scratch, first);
	}
	MemoryContextReset(sorter->scratch);
}

static void
sort_by_comparisons(GsTieSorter *sorter, GsOrdering *ordering,
					uint64 *entries, uint32 count, int first)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->context);

	if (sorter->comparison == NULL)
		sorter->comparison = gpusort_key_comparison_create(sorter->keys);
	MemoryContextSwitchTo(sorter->scratch);
	merge_sort(sorter, entries, count, gpusort_ordering_scratch(ordering),
			   first);
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		by more words
 * ----------------------------------------------------------------
 */

/* Give the rows of a run the words at the cursor for their keys. */
static void
encode_run(GsTieSorter *sorter, GsOrdering *ordering, const uint64 *entries,
		   uint32 count, const GsKeyCursor *cursor)
{
	GsTieRow   *row = &sorter->rows[0];
	int			from;
	int			to;

	gpusort_key_plan_span(sorter->key_plan, cursor, &from, &to);
	for (uint32 i = 0; i < count; i++)
	{
		fetch_ahead(sorter, entries, i, count);
		read_keys(sorter, entries[i], from, to, row);
		gpusort_key_plan_encode_at(sorter->key_plan, cursor, row->values,
								   row->isnull,
								   gpusort_ordering_key(ordering,
														(uint32) entries[i]));
	}
	CHECK_FOR_INTERRUPTS();
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

	while (length < count &&
		   have_equal_keys(key, gpusort_ordering_key(ordering,
													 (uint32) entries[length]),
						   sorter->words))
	{
		if (length + PREFETCH_ROWS < count)
			PREFETCH(gpusort_ordering_key(ordering,
										  (uint32) entries[length + PREFETCH_ROWS]));
		length++;
	}
	if (length + PREFETCH_ROWS < count)
		PREFETCH(gpusort_ordering_key(ordering,
									  (uint32) entries[length + PREFETCH_ROWS]));
	return length;
}

static void sort_runs(GsTieSorter *sorter, GsOrdering *ordering,
					  uint64 *entries, uint32 count, GsKeyCursor cursor);

/* Have all rows of a run the same value of a sort key, bit for bit? */
static bool
are_alike(GsTieSorter *sorter, const uint64 *entries, uint32 count, int key)
{
	Form_pg_attribute att = TupleDescAttr(sorter->tupdesc,
										  sorter->keys->attnos[key] - 1);
	GsTieRow	first = sorter->rows[0];
	GsTieRow	row = sorter->rows[1];

	read_keys(sorter, entries[0], key, key + 1, &first);
	for (uint32 i = 1; i < count; i++)
	{
		fetch_ahead(sorter, entries, i, count);
		read_keys(sorter, entries[i], key, key + 1, &row);
		if (row.isnull[key] != first.isnull[key] ||
			(!row.isnull[key] &&
			 !datum_image_eq(first.values[key], row.values[key],
							 att->attbyval, att->attlen)))
			return false;
	}
	return true;
}

/* Sort a run, whose rows have equal words up to those at the cursor. */
static void
sort_run(GsTieSorter *sorter, GsOrdering *ordering, uint64 *entries,
		 uint32 count, GsKeyCursor cursor)
{
	GsTieRow   *row = &sorter->rows[0];
	GsKeyRest	rest;
	int			first;

	/* Of any row, since they are alike as far as the answer is concerned. */
	read_keys(sorter, entries[0], 0, sorter->keys->nkeys, row);
	rest = gpusort_key_plan_go_on(sorter->key_plan, row->values, row->isnull,
								  &cursor, &first);

	/* Duplicates of a long string would go through all of its words. */
	if (rest != GS_KEY_EQUAL && count > SHORT_RUN &&
		gpusort_key_plan_ends_stage(sorter->key_plan, &cursor, first) &&
		are_alike(sorter, entries, count, first))
		rest = gpusort_key_plan_pass(sorter->key_plan, &cursor, &first);

	if (rest == GS_KEY_EQUAL)
		return;
	if (rest == GS_KEY_COMPARE || count <= SHORT_RUN)
		sort_by_comparisons(sorter, ordering, entries, count, first);
	else
	{
		encode_run(sorter, ordering, entries, count, &cursor);
		gpusort_ordering_sort_some(ordering, entries, count);
		sort_runs(sorter, ordering, entries, count, cursor);
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
