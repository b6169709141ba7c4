/*-------------------------------------------------------------------------
 *
 * range_sorter.c
 *		Sorts the rows of one range of a shared sort.
 *
 * Entries have the values of a window of the keys.  If these separate most rows, a range is
 * sorted by them, and keys, which are all over the memory, are read only where values are
 * equal.  Otherwise keys have been placed with the entries, and are collected, so that they
 * are in the cache while the range is sorted.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/memory/range_sorter.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

/* For an ordering with one chunk, whatever its length. */
#define ONE_CHUNK_SHIFT		31

/* Bytes that the radix sort processes between two callbacks. */
#define BLOCK_BYTES			32768

/* The keys of a range. */
typedef struct GsRangeKeys
{
	uint64	   *keys;
	uint32	   *numbers;		/* of the rows; entries have indexes of these */
	GsOrdering *ordering;
	GsTieSorter *ties;
} GsRangeKeys;

struct GsRangeSorter
{
	const GsSharedView *view;
	uint64	   *entries;
	uint64	   *scratch;
	GsTieSorter *ties;			/* or NULL if there are none */
	GsRangeKeys *range_keys;	/* if keys have been placed, or NULL */
};

/* Prepare to sort ranges of up to 'most' rows by keys that have been placed. */
static GsRangeKeys *
create_range_keys(const GsRangeSorter *sorter, uint32 most)
{
	const GsSharedView *view = sorter->view;
	unsigned	words = gpusort_key_plan_words(view->spec->key_plan);
	GsRangeKeys *range_keys = palloc(sizeof(GsRangeKeys));
	GsSharedRows *rows = palloc(view->nshares * sizeof(GsSharedRows));
	GsSharedKeys keys = {.chunks = &range_keys->keys,.nchunks = 1};
	GsRowStore *store;

	range_keys->keys = palloc_extended(most * words * sizeof(uint64),
									   MCXT_ALLOC_HUGE);
	range_keys->numbers = palloc_extended(most * sizeof(uint32),
										  MCXT_ALLOC_HUGE);
	range_keys->ordering = gpusort_ordering_create_view(&keys, 1, words,
														ONE_CHUNK_SHIFT);
	gpusort_ordering_set_scratch(range_keys->ordering, sorter->scratch);
	for (int p = 0; p < view->nshares; p++)
		rows[p] = view->shares[p].rows;
	store = gpusort_row_store_create_view(rows, view->nshares, view->spec,
										  view->chunk_shift);
	gpusort_row_store_set_numbers(store, range_keys->numbers);
	range_keys->ties = gpusort_tie_sorter_create(view->spec, store);
	pfree(rows);
	return range_keys;
}

GsRangeSorter *
gpusort_range_sorter_create(const GsSharedView *view)
{
	GsRangeSorter *sorter = palloc0(sizeof(GsRangeSorter));
	uint32		most = 1;

	sorter->view = view;
	for (int r = 0; r < view->nranges; r++)
		most = Max(most, gpusort_shares_count(view->shares, view->nshares, r));
	sorter->entries = palloc_extended(most * sizeof(uint64), MCXT_ALLOC_HUGE);
	sorter->scratch = palloc_extended(most * sizeof(uint64), MCXT_ALLOC_HUGE);
	gpusort_ordering_set_scratch(view->ordering, sorter->scratch);
	sorter->ties = gpusort_tie_sorter_create(view->spec, view->store);
	if (view->places_keys)
		sorter->range_keys = create_range_keys(sorter, most);
	return sorter;
}

/* Collect the entries of a range.  Returns their number. */
static uint32
collect_entries(GsRangeSorter *sorter, int range)
{
	const GsSharedView *view = sorter->view;
	uint32		filled = 0;

	for (int p = 0; p < view->nshares; p++)
	{
		const GsShare *share = &view->shares[p];
		uint32		n = gpusort_share_rows(share, range);

		if (n > 0)
			memcpy(sorter->entries + filled, share->placed + share->starts[range],
				   n * sizeof(uint64));
		filled += n;
	}
	return filled;
}

/* Collect the keys of a range likewise. */
static void
collect_keys(const GsRangeSorter *sorter, int range, uint64 *keys)
{
	const GsSharedView *view = sorter->view;
	unsigned	words = gpusort_key_plan_words(view->spec->key_plan);

	for (int p = 0; p < view->nshares; p++)
	{
		const GsShare *share = &view->shares[p];
		Size		length = (Size) gpusort_share_rows(share, range) * words;

		if (length > 0)
			memcpy(keys, share->placed_keys + (Size) share->starts[range] * words,
				   length * sizeof(uint64));
		keys += length;
	}
}

/* GsStopCallback; see ordering.c. */
static bool
check_interrupts(void *arg)
{
	gpusort_work_add(BLOCK_BYTES);
	CHECK_FOR_INTERRUPTS();
	return false;
}

/*
 * Sort the entries of a range by their values, and then the few rows with equal ones by
 * their keys, which are all over the memory.
 */
static void
sort_by_values(GsRangeSorter *sorter, uint32 count)
{
	const GsSharedView *view = sorter->view;
	uint64	   *entries = sorter->entries;
	uint32		end;

	(void) gpusort_radix_sort_by_values((uint64_t *) entries,
										(uint64_t *) sorter->scratch, count,
										check_interrupts, NULL);
	if (view->complete && view->exact)
		return;
	for (uint32 start = 0; start < count; start = end)
	{
		uint32		value = gpusort_entry_value(entries[start]);

		end = start + 1;
		while (end < count && gpusort_entry_value(entries[end]) == value)
			end++;
		if (end - start == 1)
			continue;
		CHECK_FOR_INTERRUPTS();
		if (!view->complete)
			gpusort_ordering_sort_some(view->ordering, entries + start,
									   end - start);
		if (sorter->ties != NULL)
			gpusort_tie_sorter_sort(view->ordering, entries + start,
									end - start, sorter->ties);
	}
}

/* Sort the entries of a range by keys that are together in the cache. */
static void
sort_by_keys(GsRangeSorter *sorter, int range, uint32 count)
{
	GsRangeKeys *range_keys = sorter->range_keys;

	collect_keys(sorter, range, range_keys->keys);
	for (uint32 i = 0; i < count; i++)
	{
		range_keys->numbers[i] = (uint32) sorter->entries[i];
		sorter->entries[i] = i;
	}
	gpusort_ordering_sort_some(range_keys->ordering, sorter->entries, count);
	if (range_keys->ties != NULL)
		gpusort_tie_sorter_sort(range_keys->ordering, sorter->entries, count,
								range_keys->ties);
	for (uint32 i = 0; i < count; i++)
		sorter->entries[i] = range_keys->numbers[(uint32) sorter->entries[i]];
}

const uint64 *
gpusort_range_sorter_sort(GsRangeSorter *sorter, int range, uint32 *count)
{
	CHECK_FOR_INTERRUPTS();
	*count = collect_entries(sorter, range);
	if (sorter->range_keys != NULL)
		sort_by_keys(sorter, range, *count);
	else
		sort_by_values(sorter, *count);
	return sorter->entries;
}

void
gpusort_range_sorter_keep(GsRangeSorter *sorter, int range)
{
	const GsSharedView *view = sorter->view;
	const uint64 *entries = sorter->entries;

	for (int p = 0; p < view->nshares; p++)
	{
		const GsShare *share = &view->shares[p];
		uint32		n = gpusort_share_rows(share, range);

		if (n > 0)
			memcpy(share->placed + share->starts[range], entries,
				   n * sizeof(uint64));
		entries += n;
	}
}

const uint64 *
gpusort_range_sorter_get(GsRangeSorter *sorter, int range, uint32 *count)
{
	*count = collect_entries(sorter, range);
	return sorter->entries;
}
