/*-------------------------------------------------------------------------
 *
 * shared_view.c
 *		All rows of a shared sort, as each of its processes sees them.
 *
 * What a process derives from the rows, such as the number of ranges and their splitters,
 * all processes derive alike, each for itself.  Only where rows are placed passes from one
 * process to another.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/memory/shared_view.h"
#include "work.h"

/*
 * A range has about this many rows, so that its entries are sorted in the second-level
 * cache.  There are a few ranges for each process, so that all end at about the same time,
 * unless they would be very small.
 */
#define ROWS_PER_RANGE		49152
#define RANGES_PER_PROCESS	8
#define MIN_ROWS_PER_RANGE	2048

/* Rows with NULL keys have ranges of their own. */
#define NCLASSES			2
#define MOST_RANGES			(GPUSORT_MAX_SLOTS - NCLASSES)

/* Rows that are sorted apart from others: those with, or without a NULL key. */
struct GsRowClass
{
	bool		null_keys;
	uint32		nrows;
	int			first_range;
	GsRangeSplitters *splitters;
};

/* ----------------------------------------------------------------
 *		publishing the rows of a process
 * ----------------------------------------------------------------
 */

static void
collect_bits(GsShare *share, const GsKeySort *key_sort)
{
	GsKeyTable	keys = gpusort_key_sort_key_table(key_sort);

	gpusort_key_bits_begin(&share->bits);
	gpusort_key_bits_collect(&share->bits, &keys, share->keys.nrows,
							 gpusort_key_sort_check_interrupts);
}

/*
 * Make an entry for each row, those of rows with NULL keys last.  Returns false if there
 * is no memory.
 */
static bool
separate_null_keys(GsShare *share, GsKeySort *key_sort, GsBudget *budget)
{
	Size		bytes = share->keys.nrows * sizeof(uint64);

	if (!gpusort_budget_reserve(budget, bytes))
		return false;
	share->arrived = gpusort_budget_alloc(budget, bytes);
	if (share->arrived == NULL)
		return false;
	(void) gpusort_key_sort_fill_entries(key_sort, 0, share->keys.nrows, share->arrived,
										 share->arrived + share->keys.nrows -
										 share->keys.nnull_keys);
	return true;
}

bool
gpusort_share_publish(GsShare *share, const GsSortSpec *spec, GsMemorySort *rows)
{
	GsKeySort  *key_sort = gpusort_memory_sort_keys(rows);
	GsBudget   *budget = gpusort_memory_sort_budget(rows);

	/* Others would not understand our keys. */
	if (!gpusort_key_plan_is_common(spec->key_plan))
		return false;
	share->keys = gpusort_key_sort_share(key_sort);
	share->rows = gpusort_row_store_share(gpusort_memory_sort_store(rows));
	if (share->keys.nrows > 0)
	{
		collect_bits(share, key_sort);
		share->placed = gpusort_budget_alloc(budget, share->keys.nrows *
											 sizeof(uint64));
		if (share->placed == NULL)
			return false;
	}
	if (share->keys.nnull_keys > 0 &&
		!separate_null_keys(share, key_sort, budget))
		return false;
	budget->published = true;
	return true;
}

bool
gpusort_shares_have_numbers(const GsShare *shares, int nshares,
							unsigned chunk_shift)
{
	uint64		chunks = 0;

	for (int p = 0; p < nshares; p++)
		chunks += shares[p].keys.nchunks;
	return chunks << chunk_shift <= GPUSORT_MAX_ROWS;
}

uint32
gpusort_shares_count(const GsShare *shares, int nshares, int range)
{
	uint32		count = 0;

	for (int p = 0; p < nshares; p++)
		count += gpusort_share_rows(&shares[p], range);
	return count;
}

/* ----------------------------------------------------------------
 *		the view of all rows
 * ----------------------------------------------------------------
 */

static void
combine_shares(GsSharedView *view)
{
	int			n = view->nshares;
	GsSharedKeys *keys = palloc(n * sizeof(GsSharedKeys));
	GsSharedRows *rows = palloc(n * sizeof(GsSharedRows));
	uint32		nchunks = 0;

	view->first_rows = palloc(n * sizeof(uint32));
	for (int p = 0; p < n; p++)
	{
		keys[p] = view->shares[p].keys;
		rows[p] = view->shares[p].rows;
		view->has_nulls |= rows[p].has_nulls;
		view->nrows += keys[p].nrows;
		view->first_rows[p] = nchunks << view->chunk_shift;
		nchunks += keys[p].nchunks;
	}
	view->key_sort =
		gpusort_key_sort_create_view(keys, n,
									 gpusort_key_plan_words(view->spec->key_plan),
									 view->chunk_shift);
	view->store = gpusort_row_store_create_view(rows, n, view->spec,
												view->chunk_shift);
	pfree(keys);
	pfree(rows);
}

static void
add_bits(GsKeyBits *bits, const GsShare *shares, int nshares)
{
	for (int p = 0; p < nshares; p++)
		if (shares[p].keys.nrows > 0)
			gpusort_key_bits_add(bits, &shares[p].bits);
}

/*
 * Make the window of the most significant bits in which any keys differ, also those of 'others'
 * unless that is NULL.
 */
static void
make_window(GsSharedView *view, const GsShare *others)
{
	unsigned	words = gpusort_key_plan_words(view->spec->key_plan);
	GsKeyBits	bits;
	uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS];

	gpusort_key_bits_begin(&bits);
	add_bits(&bits, view->shares, view->nshares);
	if (others != NULL)
		add_bits(&bits, others, view->nshares);
	gpusort_key_bits_varying(&bits, words, varying);
	view->complete = !gpusort_key_window_make(varying, words, &view->window);
}

bool
gpusort_shared_view_has_null_keys(const GsSharedView *view, int range)
{
	const GsRowClass *class = &view->classes[range < view->classes[1].first_range ? 0 : 1];

	return class->null_keys;
}

/* ----------------------------------------------------------------
 *		dividing rows into ranges
 * ----------------------------------------------------------------
 */

static uint32
class_rows(const GsShare *share, bool null_keys)
{
	return null_keys ? share->keys.nnull_keys :
		share->keys.nrows - share->keys.nnull_keys;
}

/*
 * Returns the number within its process of the i-th row of a class, in the order of
 * arrival.
 */
static inline uint32
row_of_class(const GsShare *share, bool null_keys, uint32 i)
{
	if (share->arrived == NULL)
		return i;
	if (null_keys)
		i += class_rows(share, false);
	return (uint32) share->arrived[i];
}

/* Choose splitters for the ranges of a class, by a sample of its rows. */
static void
split_class(GsSharedView *view, GsRowClass *class, int nranges)
{
	uint32		count = Min(class->nrows, (uint32) nranges * GPUSORT_SAMPLE_PER_RANGE);
	uint64	   *sample = palloc(count * sizeof(uint64));
	uint64		before = 0;		/* rows of the processes before */
	uint32		i = 0;

	for (int p = 0; p < view->nshares; p++)
	{
		const GsShare *share = &view->shares[p];
		uint32		nrows = class_rows(share, class->null_keys);

		for (; i < count; i++)
		{
			uint64		row = (uint64) i * class->nrows / count - before;

			if (row >= nrows)
				break;
			sample[i] = view->first_rows[p] +
				row_of_class(share, class->null_keys, (uint32) row);
		}
		before += nrows;
	}
	class->splitters =
		gpusort_range_splitters_create(view->spec, view->key_sort, view->store,
									   &view->window, sample, count, nranges);
	pfree(sample);
}

/* Returns how many ranges there should be. */
static int
choose_ranges(const GsSharedView *view)
{
	uint64		ranges = Max(view->nrows / ROWS_PER_RANGE,
							 Min((uint64) view->nshares * RANGES_PER_PROCESS,
								 view->nrows / MIN_ROWS_PER_RANGE));

	return (int) Min(Max(ranges, 1), MOST_RANGES);
}

/* Divide the rows into ranges. */
static void
split(GsSharedView *view)
{
	int			all_ranges = choose_ranges(view);
	bool		nulls_first = gpusort_key_plan_nulls_first(view->spec->key_plan);
	int			first_range = 0;

	view->classes = palloc0(NCLASSES * sizeof(GsRowClass));
	for (int c = 0; c < NCLASSES; c++)
	{
		GsRowClass *class = &view->classes[c];
		int			nranges;

		class->null_keys = (c == 0) == nulls_first;
		for (int p = 0; p < view->nshares; p++)
			class->nrows += class_rows(&view->shares[p],
									   class->null_keys);
		class->first_range = first_range;
		if (class->nrows == 0)
			continue;
		nranges = 1 + (int) ((all_ranges - 1) * (uint64) class->nrows / view->nrows);
		first_range += nranges;
		split_class(view, class, nranges);
		view->longest = Max(view->longest, class->nrows *
							gpusort_range_splitters_longest(class->splitters));
		view->places_keys |= !(view->complete && view->exact) &&
			!gpusort_range_splitters_separate(class->splitters, class->nrows);
	}

	view->nranges = first_range;
	view->has_long_range = view->longest * view->nranges >= 2.0 * view->nrows;
}

GsSharedView *
gpusort_shared_view_create(GsShare *shares, int nshares, unsigned chunk_shift,
						   const GsSortSpec *spec, const GsShare *others)
{
	GsSharedView *view = palloc0(sizeof(GsSharedView));
	int			first_compared;

	view->spec = spec;
	view->shares = shares;
	view->nshares = nshares;
	view->chunk_shift = chunk_shift;
	view->exact = gpusort_key_plan_is_exact(spec->key_plan, &first_compared);
	combine_shares(view);
	make_window(view, others);
	split(view);
	return view;
}

/* Divide the rows of a class alike in both sorts.  Returns the number of ranges. */
static int
unite_class(const GsSharedView *view, GsRowClass *a, GsRowClass *b)
{
	if (a->nrows == 0 && b->nrows == 0)
		return 0;
	if (a->nrows > 0 && b->nrows > 0)
		gpusort_range_splitters_unite(a->splitters, b->splitters, view->spec->key_plan);
	return 1 + gpusort_range_splitters_count(a->nrows > 0 ? a->splitters : b->splitters);
}

void
gpusort_shared_views_unite(GsSharedView *a, GsSharedView *b)
{
	int			first_range = 0;

	for (int c = 0; c < NCLASSES; c++)
	{
		a->classes[c].first_range = b->classes[c].first_range = first_range;
		first_range += unite_class(a, &a->classes[c], &b->classes[c]);
	}
	a->nranges = b->nranges = first_range;
}

/* ----------------------------------------------------------------
 *		placing rows
 * ----------------------------------------------------------------
 */

/* Find the ranges of our rows of a class, and count the rows of each range. */
static void
find_ranges(const GsSharedView *view, const GsShare *share,
			const GsRowClass *class, uint16 *ranges, uint32 *counts)
{
	GsKeyTable	keys = gpusort_key_sort_key_table(view->key_sort);
	uint32		first = view->first_rows[share - view->shares];
	uint32		n = class_rows(share, class->null_keys);

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = first + row_of_class(share, class->null_keys, i);
		uint32		value =
			gpusort_key_window_value(&view->window,
									 gpusort_key_of_row(&keys, row));
		int			range = class->first_range +
			gpusort_range_splitters_find(class->splitters, value, row);

		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(uint64));
		ranges[i] = (uint16) range;
		counts[range]++;
	}
}

/* Place our rows of a class.  'next' has the next free index of each range. */
static void
place_class(const GsSharedView *view, const GsShare *share,
			const GsRowClass *class,
			const uint16 *ranges, uint32 *next)
{
	GsKeyTable	keys = gpusort_key_sort_key_table(view->key_sort);
	uint64	   *placed = share->placed;
	uint64	   *placed_keys = share->placed_keys;
	uint32		first = view->first_rows[share - view->shares];
	uint32		n = class_rows(share, class->null_keys);

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = first + row_of_class(share, class->null_keys, i);
		const uint64_t *key = gpusort_key_of_row(&keys, row);
		uint32		index = next[ranges[i]]++;

		if (i % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(uint64));
		placed[index] =
			(uint64) gpusort_key_window_value(&view->window, key) << 32 | row;
		if (placed_keys != NULL)
			for (unsigned w = 0; w < keys.words; w++)
				placed_keys[(Size) index * keys.words + w] = key[w];
	}
}

/* Allocate what is necessary to place the keys.  Returns false if there is no memory. */
static bool
allocate_keys(const GsSharedView *view, GsShare *share, GsBudget *budget)
{
	Size		bytes = (Size) share->keys.nrows *
		gpusort_key_plan_words(view->spec->key_plan) * sizeof(uint64);

	if (!view->places_keys || bytes == 0)
		return true;
	share->placed_keys = gpusort_budget_alloc(budget, bytes);
	return share->placed_keys != NULL;
}

bool
gpusort_shared_view_place(const GsSharedView *view, int process,
						  GsBudget *budget)
{
	GsShare    *share = &view->shares[process];
	int			nranges = view->nranges;
	Size		bytes = (nranges + 1) * sizeof(uint32);
	uint32	   *starts = gpusort_budget_alloc(budget, bytes);
	uint32	   *next = palloc0(bytes);
	uint16	   *ranges[NCLASSES];

	/* Processes read this as long as the sort lasts, whenever they come. */
	Assert(budget->published);
	if (starts == NULL || !allocate_keys(view, share, budget))
		return false;
	for (int c = 0; c < NCLASSES; c++)
	{
		const GsRowClass *class = &view->classes[c];

		ranges[c] = palloc_extended((class_rows(share, class->null_keys) + 1) *
									sizeof(uint16), MCXT_ALLOC_HUGE);
		find_ranges(view, share, class, ranges[c], next);
	}
	starts[0] = 0;
	for (int r = 0; r < nranges; r++)
	{
		starts[r + 1] = starts[r] + next[r];
		next[r] = starts[r];
	}
	for (int c = 0; c < NCLASSES; c++)
	{
		place_class(view, share, &view->classes[c], ranges[c], next);
		pfree(ranges[c]);
	}
	pfree(next);
	share->starts = starts;
	return true;
}
