/*-------------------------------------------------------------------------
 *
 * shared_sort.c
 *		Sorts the rows of several processes in memory that they have in common.
 *
 * This file sorts the ranges in which shared_view.c has placed the rows; shared_ranges.c decides
 * who sorts which range, and reads them.
 *
 * If a process had no memory for the sorted rows of a range, the leader sorts the range again,
 * and reads the rows where they are.  So the keys that all processes share are not changed: the
 * tie sorter, which overwrites words of keys, gets copies.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "storage/shmem.h"
#include "utils/memutils.h"

#include "sort/memory/shared_sort.h"
#include "sort/memory/shared_view.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

struct GsSharedSort
{
	GsSharedBudget *budget;
	GsSharedRanges *ranges;
	unsigned	chunk_shift;
	int			nshares;
	GsRangePiece pieces[GPUSORT_MAX_SLOTS]; /* of each range */
	GsShare		shares[FLEXIBLE_ARRAY_MEMBER];
};

typedef struct GsRangeSorter GsRangeSorter;

struct GsSharedMember
{
	GsSharedSort *shared;
	const GsSortSpec *spec;
	MemoryContext context;		/* for the view and what it needs */
	GsSharedView *view;			/* NULL until all rows are published */

	/* Once rows have been placed. */
	GsRangeSorter *sorter;
	GsRangeWriter *writer;
	int64		nsorted;		/* rows of ranges that were sorted here */

	/* Rows of the range that this process reads where they are. */
	GsRowsInPlace left;
	MemoryContext left_context; /* for their addresses */
};

/* ----------------------------------------------------------------
 *		beginning
 * ----------------------------------------------------------------
 */

Size
gpusort_shared_sort_size(int processes)
{
	return MAXALIGN(sizeof(GsSharedSort) + processes * sizeof(GsShare));
}

GsSharedSort *
gpusort_shared_sort_init(void *memory, GsSharedBudget *budget, GsSharedRanges *ranges,
						 const GsSortSpec *spec)
{
	GsSharedSort *shared = memory;
	int			processes = spec->processes;

	memset(shared, 0, gpusort_shared_sort_size(processes));
	shared->budget = budget;
	shared->ranges = ranges;
	shared->chunk_shift = gpusort_memory_sort_choose_shift(spec, budget->limit, processes);
	shared->nshares = processes;
	return shared;
}

bool
gpusort_shared_sort_fits(unsigned words, double rows, int width, Size memory,
						 int processes)
{
	/* Each row is copied once. */
	double		bytes = gpusort_memory_sort_estimate(words, rows, width) +
		rows * MAXALIGN(width);

	return bytes <= (double) memory * processes &&
		bytes <= (double) gpusort_warm_memory_shared_limit();
}

GsSharedMember *
gpusort_shared_member_create(GsSharedSort *shared, const GsSortSpec *spec)
{
	GsSharedMember *member = palloc0(sizeof(GsSharedMember));

	Assert(spec->process < shared->nshares);
	member->shared = shared;
	member->spec = spec;
	member->context = AllocSetContextCreate(CurrentMemoryContext,
											"pg_gpusort shared sort",
											ALLOCSET_DEFAULT_SIZES);
	return member;
}

GsMemorySort *
gpusort_shared_member_begin_rows(GsSharedMember *member)
{
	GsSharedSort *shared = member->shared;

	return gpusort_memory_sort_create(member->spec,
									  gpusort_budget_create_shared(shared->budget),
									  shared->chunk_shift);
}

/* ----------------------------------------------------------------
 *		sorting the rows of one range
 *
 * Entries have the values of a window of the keys.  If these separate most rows, a range is
 * sorted by them, and keys, which are all over the memory, are read only where values are
 * equal.  Otherwise keys have been placed with the entries, and are collected, so that they
 * are in the cache while the range is sorted.
 * ----------------------------------------------------------------
 */

/* For a key sort with one chunk, whatever its length. */
#define ONE_CHUNK_SHIFT		31

struct GsRangeSorter
{
	const GsSharedView *view;
	uint64	   *entries;
	uint64	   *scratch;

	/* Rows that are sorted by their keys. */
	uint64	   *keys;
	uint32	   *numbers;		/* of the rows; entries have indexes of these */
	GsKeySort  *key_sort;		/* of the keys */
	GsTieSorter *ties;			/* or NULL if there are none */
};

/*
 * Create a sorter in the current memory context, after all processes have placed their
 * rows.
 */
static GsRangeSorter *
range_sorter_create(const GsSharedView *view)
{
	GsRangeSorter *sorter = palloc0(sizeof(GsRangeSorter));
	unsigned	words = gpusort_key_plan_words(view->spec->key_plan);
	GsSharedKeys keys = {.chunks = &sorter->keys,.nchunks = 1};
	Size		most = 1;

	sorter->view = view;
	for (int r = 0; r < view->nranges; r++)
		most = Max(most, gpusort_shares_count(view->shares, view->nshares, r));
	sorter->entries = palloc_extended(most * sizeof(uint64), MCXT_ALLOC_HUGE);
	sorter->scratch = palloc_extended(most * sizeof(uint64), MCXT_ALLOC_HUGE);
	sorter->keys = palloc_extended(most * words * sizeof(uint64), MCXT_ALLOC_HUGE);
	sorter->numbers = palloc_extended(most * sizeof(uint32), MCXT_ALLOC_HUGE);
	sorter->key_sort = gpusort_key_sort_create_view(&keys, 1, words, ONE_CHUNK_SHIFT);
	gpusort_key_sort_set_scratch(sorter->key_sort, sorter->scratch);
	sorter->ties = gpusort_tie_sorter_create(view->spec, view->store);
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

static void
collect_keys(const GsRangeSorter *sorter, int range)
{
	const GsSharedView *view = sorter->view;
	unsigned	words = gpusort_key_plan_words(view->spec->key_plan);
	uint64	   *keys = sorter->keys;

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

static void
copy_keys(const GsRangeSorter *sorter, const uint64 *entries, uint32 count)
{
	GsKeySort  *key_sort = sorter->view->key_sort;
	unsigned	words = gpusort_key_plan_words(sorter->view->spec->key_plan);

	for (uint32 i = 0; i < count; i++)
		memcpy(sorter->keys + (Size) i * words,
			   gpusort_key_sort_key(key_sort, (uint32) entries[i]), words * sizeof(uint64));
}

/* Sort entries by their keys, which have been copied, and which breaking ties overwrites. */
static void
sort_by_keys(GsRangeSorter *sorter, uint64 *entries, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		sorter->numbers[i] = (uint32) entries[i];
		entries[i] = i;
	}
	gpusort_key_sort_some(sorter->key_sort, entries, count);
	if (sorter->ties != NULL)
	{
		gpusort_row_store_set_numbers(sorter->view->store, sorter->numbers);
		gpusort_tie_sorter_sort(sorter->key_sort, entries, count, sorter->ties);
		gpusort_row_store_set_numbers(sorter->view->store, NULL);
	}
	for (uint32 i = 0; i < count; i++)
		entries[i] = sorter->numbers[(uint32) entries[i]];
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

	gpusort_radix_sort_by_values((uint64_t *) entries, (uint64_t *) sorter->scratch, count,
								 gpusort_key_sort_check_interrupts);
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
		copy_keys(sorter, entries + start, end - start);
		sort_by_keys(sorter, entries + start, end - start);
		for (uint32 i = start; i < end; i++)
			entries[i] |= (uint64) value << 32;
	}
}

/*
 * Sort the rows of a range, which may be done more than once.  Returns their entries, whose low
 * 32 bits are row numbers of the view, and sets *count to the number of rows.  They are valid
 * until the next call.  Ties are in the order of row numbers.  Calls comparators, which may raise
 * errors, and checks for interrupts.
 */
static const uint64 *
range_sorter_sort(GsRangeSorter *sorter, int range, uint32 *count)
{
	CHECK_FOR_INTERRUPTS();
	*count = collect_entries(sorter, range);
	if (sorter->view->places_keys)
	{
		collect_keys(sorter, range);
		sort_by_keys(sorter, sorter->entries, *count);
	}
	else
		sort_by_values(sorter, *count);
	return sorter->entries;
}

/* ----------------------------------------------------------------
 *		sorting all ranges
 * ----------------------------------------------------------------
 */

/* GsRangeSource.make: sort a range and write its rows. */
static bool
sort_range(void *arg, int range, GsRangePiece **pieces)
{
	GsSharedMember *member = arg;
	uint32		count;
	const uint64 *entries = range_sorter_sort(member->sorter, range, &count);

	*pieces = &member->shared->pieces[range];
	member->nsorted += count;
	return gpusort_range_writer_write(member->writer, entries, count, &(*pieces)->range);
}

/* GsRangeSource.open: sort a range again, and find its rows. */
static void
open_range(void *arg, int range)
{
	GsSharedMember *member = arg;
	uint32		count;
	const uint64 *entries = range_sorter_sort(member->sorter, range, &count);
	MemoryContext caller;

	if (member->spec->group_keys > 0)
		member->nsorted += count;
	MemoryContextReset(member->left_context);
	caller = MemoryContextSwitchTo(member->left_context);
	gpusort_range_writer_find(member->writer, entries, count, &member->left);
	MemoryContextSwitchTo(caller);
}

/* GsRangeSource.next: return all rows of the range at once. */
static bool
next_rows(void *arg, GsRowsInPlace *rows)
{
	GsSharedMember *member = arg;

	*rows = member->left;
	member->left.nrows = 0;
	return rows->nrows > 0;
}

/* GsRangeSource.count */
static int64
count_range(void *arg, int range)
{
	const GsSharedView *view = ((const GsSharedMember *) arg)->view;

	return gpusort_shares_count(view->shares, view->nshares, range);
}

/* ----------------------------------------------------------------
 *		counting keys without their rows, which are all over the memory
 * ----------------------------------------------------------------
 */

/* Are rows sorted by values, and do these and the words of keys tell which keys are equal? */
static bool
words_tell_keys(const GsSharedView *view)
{
	return view->spec->keys.nkeys == 1 && view->exact && !view->places_keys;
}

static inline bool
have_same_key(const GsSharedView *view, uint64 a, uint64 b)
{
	unsigned	words = gpusort_key_plan_words(view->spec->key_plan);

	if (gpusort_entry_value(a) != gpusort_entry_value(b))
		return false;
	return view->complete || memcmp(gpusort_key_sort_key(view->key_sort, (uint32) a),
									gpusort_key_sort_key(view->key_sort, (uint32) b),
									words * sizeof(uint64)) == 0;
}

static Datum
key_of(const GsSharedView *view, uint64 entry)
{
	const GsSortSpec *spec = view->spec;
	Datum		value;
	bool		isnull;

	if (!TupleDescAttr(spec->tupdesc, spec->keys.attnos[0] - 1)->attbyval)
		return (Datum) 0;
	gpusort_row_store_get_columns(view->store, (uint32) entry, spec->keys.attnos, 1,
								  &value, &isnull);
	return value;
}

/* GsRangeSource.count_keys */
static void
count_keys(void *arg, int range, GsKeyCounts *counts, Datum *values, bool *isnull)
{
	GsSharedMember *member = arg;
	const GsSharedView *view = member->view;
	bool		null_keys = gpusort_shared_view_has_null_keys(view, range);
	uint32		count;
	uint32		end;
	const uint64 *entries = range_sorter_sort(member->sorter, range, &count);

	member->nsorted += count;
	counts->rows += count;
	for (uint32 start = null_keys ? count : 0; start < count; start = end)
	{
		for (end = start + 1; end < count; end++)
			if (!have_same_key(view, entries[start], entries[end]))
				break;
		counts->groups++;
		if (end - start > counts->most)
		{
			counts->most = end - start;
			counts->mode = key_of(view, entries[start]);
		}
	}
	if (count > 0)
		gpusort_row_store_get(view->store, (uint32) entries[0], values, isnull);
}

static const GsRangeSource range_source = {
	.make = sort_range,
	.open = open_range,
	.next = next_rows,
	.count = count_range,
	.count_keys = count_keys
};

/* ----------------------------------------------------------------
 *		the sort as a whole
 * ----------------------------------------------------------------
 */

bool
gpusort_shared_member_publish(GsSharedMember *member, GsMemorySort *rows)
{
	GsShare    *share = &member->shared->shares[member->spec->process];

	return gpusort_share_publish(share, member->spec, rows);
}

/*
 * Ranges of about the same length are sorted in little memory, which does not count.  But if a
 * group of rows must be in one range, that can be long.
 */
static bool
has_memory_for_groups(const GsSharedView *view, GsBudget *budget)
{
	double		row_bytes = sizeof(uint32) +
		sizeof(uint64) * (2 + gpusort_key_plan_words(view->spec->key_plan));

	return view->spec->group_keys == 0 || !view->has_long_range ||
		gpusort_budget_reserve(budget, (Size) (view->longest * row_bytes));
}

static void
create_view(GsSharedMember *member, const GsSharedMember *other)
{
	GsSharedSort *shared = member->shared;
	const GsShare *others = other == NULL ? NULL : other->shared->shares;
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	member->view = gpusort_shared_view_create(shared->shares, shared->nshares,
											  shared->chunk_shift, member->spec, others);
	MemoryContextSwitchTo(caller);
}

/* All rows, of both sorts of a pair, have been published: make a view of them. */
static void
make_view(GsSharedMember *member, GsSharedMember *second)
{
	if (member->view != NULL)
		return;
	create_view(member, second);
	if (second == NULL)
		return;
	create_view(second, member);
	gpusort_shared_views_unite(member->view, second->view);
}

bool
gpusort_shared_member_place(GsSharedMember *member, GsSharedMember *second, GsMemorySort *rows)
{
	GsSharedSort *shared = member->shared;
	MemoryContext caller;
	GsSharedView *view;
	bool		placed;

	/* All processes come to the same result. */
	if (!gpusort_shares_have_numbers(shared->shares, shared->nshares, shared->chunk_shift))
		return false;
	caller = MemoryContextSwitchTo(member->context);
	make_view(member, second);
	view = member->view;
	placed = has_memory_for_groups(view, gpusort_memory_sort_budget(rows)) &&
		gpusort_shared_view_place(view, member->spec->process,
								  gpusort_memory_sort_budget(rows));
	MemoryContextSwitchTo(caller);
	return placed;
}

GsRanges *
gpusort_shared_member_prepare(GsSharedMember *member, GsSharedMember *second, GsMemorySort *rows)
{
	GsSharedSort *shared = member->shared;
	MemoryContext caller = MemoryContextSwitchTo(member->context);
	GsSharedView *view;
	GsRanges   *ranges;

	make_view(member, second);	/* in a process that has come later */
	view = member->view;
	member->sorter = range_sorter_create(view);
	member->writer = gpusort_range_writer_create(view->store, gpusort_memory_sort_budget(rows),
												 view->has_nulls);
	member->left_context = AllocSetContextCreate(member->context, "pg_gpusort range",
												 ALLOCSET_SMALL_SIZES);
	ranges = gpusort_ranges_create(shared->ranges, member->spec, &range_source, member,
								   view->nranges, GPUSORT_MAX_SLOTS, view->nrows);
	ranges->counts_keys = words_tell_keys(view);
	MemoryContextSwitchTo(caller);
	return ranges;
}

void
gpusort_shared_member_report(const GsSharedMember *member, const GsMemorySort *rows,
							 GsSortReport *report)
{
	Size		bytes = member->spec->team != NULL ? gpusort_memory_sort_bytes(rows) :
		pg_atomic_read_u64(&member->shared->budget->granted);

	report->kind = GS_KIND_CPU;
	report->space_kb = (bytes + 1023) / 1024;
	report->range_rows = member->nsorted;
	strlcpy(report->method, "cpu radix, shared", sizeof(report->method));
}
