/*-------------------------------------------------------------------------
 *
 * shared_sort.c
 *		Sorts the rows of several processes in memory that they have in common.
 *
 * This file sorts the ranges in which shared_view.c has placed the rows, and has who sorts which
 * range, and who reads it.
 *
 * A process that has no memory for the sorted rows of a range leaves them to the leader, which
 * copies them to memory of its own.  It does not sort the range again: the tie sorter has
 * replaced words of the keys, which all processes share.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "portability/instr_time.h"
#include "storage/condition_variable.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "sort/memory/shared_sort.h"
#include "sort/memory/shared_view.h"
#include "sort/memory/tie_sorter.h"
#include "work.h"

typedef enum GsRangeState
{
	GS_RANGE_UNSORTED,
	GS_RANGE_SORTED,
	GS_RANGE_LEFT				/* entries are sorted; the leader copies the
								 * rows, for want of memory */
} GsRangeState;

struct GsSharedSort
{
	GsSharedBudget *budget;
	unsigned	chunk_shift;
	int			nshares;
	pg_atomic_uint32 stopped;	/* do the other processes leave the remaining
								 * ranges to the leader? */
	pg_atomic_uint32 next_range;	/* that nobody has taken */
	int			nranges;
	ConditionVariable range_sorted; /* a range is no longer unsorted */
	pg_atomic_uint32 states[GPUSORT_MAX_RANGES];	/* GsRangeState */
	GsSortedRange ranges[GPUSORT_MAX_RANGES];
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
	GsRangeWriter *private_writer;	/* in the leader, for ranges left to it */
	int64		nsorted;		/* rows of ranges that were sorted here */
	double		wait_ms;		/* for ranges that are read, or to sort them */
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
gpusort_shared_sort_init(void *memory, GsSharedBudget *budget, const GsSortSpec *spec)
{
	GsSharedSort *shared = memory;
	int			processes = spec->processes;

	memset(shared, 0, gpusort_shared_sort_size(processes));
	shared->budget = budget;
	shared->chunk_shift = gpusort_memory_sort_choose_shift(spec, budget->limit, processes);
	shared->nshares = processes;
	pg_atomic_init_u32(&shared->stopped, 0);
	pg_atomic_init_u32(&shared->next_range, 0);
	ConditionVariableInit(&shared->range_sorted);
	for (int r = 0; r < GPUSORT_MAX_RANGES; r++)
		pg_atomic_init_u32(&shared->states[r], GS_RANGE_UNSORTED);
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

	return gpusort_memory_sort_create_shared(member->spec,
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

/* For an ordering with one chunk, whatever its length. */
#define ONE_CHUNK_SHIFT		31

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

/*
 * Create a sorter in the current memory context, after all processes have placed their
 * rows.
 */
static GsRangeSorter *
range_sorter_create(const GsSharedView *view)
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
										gpusort_ordering_check_interrupts, NULL);
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

/*
 * Sort the rows of a range.  Returns their entries, whose low 32 bits are row numbers of the
 * view, and sets *count to the number of rows.  They are valid until the next call.  Ties
 * are in the order of row numbers.  Calls comparators, which may raise errors, and checks
 * for interrupts.
 */
static const uint64 *
range_sorter_sort(GsRangeSorter *sorter, int range, uint32 *count)
{
	CHECK_FOR_INTERRUPTS();
	*count = collect_entries(sorter, range);
	if (sorter->range_keys != NULL)
		sort_by_keys(sorter, range, *count);
	else
		sort_by_values(sorter, *count);
	return sorter->entries;
}

/*
 * Keep the sorted entries of a range, right after sorting it, in place of those from which it
 * was sorted.  A range must not be sorted twice, as sorting may change its keys.
 */
static void
range_sorter_keep(GsRangeSorter *sorter, int range)
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

/*
 * Returns the entries of a range that were kept, by the sorter of any process, as they were
 * sorted.  They are valid until the next call.
 */
static const uint64 *
range_sorter_get(GsRangeSorter *sorter, int range, uint32 *count)
{
	*count = collect_entries(sorter, range);
	return sorter->entries;
}

/* ----------------------------------------------------------------
 *		sorting all ranges
 * ----------------------------------------------------------------
 */

/* Make what sorting ranges needs.  All processes have placed their rows. */
static void
prepare_ranges(GsSharedMember *member, GsBudget *budget)
{
	GsSharedView *view = member->view;

	member->sorter = range_sorter_create(view);
	member->writer = gpusort_range_writer_create(view->store, budget,
												 view->has_nulls);
}

/*
 * Sort a range and write its rows.  If there is no memory for them, leave the sorted entries
 * to the leader.
 */
static GsRangeState
sort_range(GsSharedMember *member, int range)
{
	uint32		count;
	const uint64 *entries = range_sorter_sort(member->sorter, range,
											  &count);

	member->nsorted += count;
	if (gpusort_range_writer_write(member->writer, entries, count,
								   &member->shared->ranges[range]))
		return GS_RANGE_SORTED;
	range_sorter_keep(member->sorter, range);
	return GS_RANGE_LEFT;
}

/*
 * Take a range that nobody has taken, and sort it.  Returns false if there is none.
 */
static bool
sort_next_range(GsSharedMember *member)
{
	GsSharedSort *shared = member->shared;
	uint32		range = pg_atomic_fetch_add_u32(&shared->next_range, 1);
	GsRangeState state;

	if (range >= (uint32) shared->nranges)
		return false;
	state = sort_range(member, (int) range);
	pg_write_barrier();			/* who sees the state sees the rows, or the
								 * entries */
	pg_atomic_write_u32(&shared->states[range], state);
	ConditionVariableBroadcast(&shared->range_sorted);
	return true;
}

/* ----------------------------------------------------------------
 *		the sort as a whole
 * ----------------------------------------------------------------
 */

uint32
gpusort_shared_wait_event(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = GPUSORT_NEW_WAIT_EVENT("GpuSortShared");
	return event;
}

static bool
is_stopped(const GsSharedSort *shared)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &shared->stopped) != 0;
}

static GsSharedView *
create_view(const GsSharedMember *member)
{
	GsSharedSort *shared = member->shared;

	return gpusort_shared_view_create(shared->shares, shared->nshares,
									  shared->chunk_shift, member->spec);
}

bool
gpusort_shared_member_publish(GsSharedMember *member, GsMemorySort *rows)
{
	GsShare    *share = &member->shared->shares[member->spec->process];

	return gpusort_share_publish(share, member->spec, rows);
}

void
gpusort_shared_member_unpublish(GsSharedMember *member, GsMemorySort *rows)
{
	gpusort_budget_set_published(gpusort_memory_sort_budget(rows), false);
}

bool
gpusort_shared_member_place(GsSharedMember *member, GsMemorySort *rows)
{
	GsSharedSort *shared = member->shared;
	MemoryContext caller;
	GsSharedView *view;
	bool		placed;

	/* All processes come to the same result. */
	if (!gpusort_shares_have_numbers(shared->shares, shared->nshares, shared->chunk_shift))
		return false;
	caller = MemoryContextSwitchTo(member->context);
	view = member->view = create_view(member);
	gpusort_shared_view_split(view);
	shared->nranges = view->nranges;	/* the same in all processes */
	placed = gpusort_shared_view_place(view, member->spec->process,
									   gpusort_memory_sort_budget(rows));
	MemoryContextSwitchTo(caller);
	return placed;
}

void
gpusort_shared_member_sort(GsSharedMember *member, GsMemorySort *rows)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	if (member->shared->nranges != member->view->nranges)
		elog(ERROR, "processes have divided the rows of a sort into %d and %d ranges",
			 member->shared->nranges, member->view->nranges);
	prepare_ranges(member, gpusort_memory_sort_budget(rows));
	if (member->spec->team != NULL)
		while (!is_stopped(member->shared) && sort_next_range(member))
			;
	MemoryContextSwitchTo(caller);
}

void
gpusort_shared_sort_stop(GsSharedSort *shared)
{
	pg_atomic_write_u32(&shared->stopped, 1);
}

/* ----------------------------------------------------------------
 *		reading, in the leader
 * ----------------------------------------------------------------
 */

static GsRangeState
state_of_range(const GsSharedSort *shared, int range)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &shared->states[range]);
}

/*
 * Write the rows of a sorted range that was left to the leader, in memory of its own.  If
 * there is none either, that is an error.
 */
static void
write_range_left(GsSharedMember *member, int range)
{
	uint32		count;
	const uint64 *entries = range_sorter_get(member->sorter, range,
											 &count);

	if (member->private_writer == NULL)
		member->private_writer =
			gpusort_range_writer_create(member->view->store,
										gpusort_budget_create(MaxAllocHugeSize),
										member->view->has_nulls);
	if (!gpusort_range_writer_write(member->private_writer, entries, count,
									&member->shared->ranges[range]))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("A sort by parallel processes has no memory for its sorted rows.")));
	pg_atomic_write_u32(&member->shared->states[range], GS_RANGE_SORTED);
}

/* Sort other ranges until this one is sorted, or wait for the process that does it. */
static void
wait_for_range(GsSharedMember *member, int range)
{
	GsSharedSort *shared = member->shared;

	while (state_of_range(shared, range) == GS_RANGE_UNSORTED &&
		   sort_next_range(member))
		;
	ConditionVariablePrepareToSleep(&shared->range_sorted);
	while (state_of_range(shared, range) == GS_RANGE_UNSORTED)
		ConditionVariableSleep(&shared->range_sorted, gpusort_shared_wait_event());
	ConditionVariableCancelSleep();
	pg_read_barrier();			/* who sees the state sees the rows, or the
								 * entries */
	if (state_of_range(shared, range) == GS_RANGE_LEFT)
		write_range_left(member, range);
}

/* GsRangePrepare: see that a range is sorted. */
static void
prepare_range(void *arg, int range)
{
	GsSharedMember *member = arg;
	instr_time	start;
	instr_time	end;
	MemoryContext caller;

	if (state_of_range(member->shared, range) == GS_RANGE_SORTED)
	{
		pg_read_barrier();
		return;
	}
	INSTR_TIME_SET_CURRENT(start);
	caller = MemoryContextSwitchTo(member->context);
	wait_for_range(member, range);
	MemoryContextSwitchTo(caller);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	member->wait_ms += INSTR_TIME_GET_MILLISEC(end);
}

GsRangeReader *
gpusort_shared_member_read(GsSharedMember *member)
{
	GsSharedSort *shared = member->shared;
	int64	   *counts = palloc(shared->nranges * sizeof(int64));
	GsRangeReader *reader;

	for (int r = 0; r < shared->nranges; r++)
		counts[r] = gpusort_shares_count(shared->shares, shared->nshares, r);
	reader = gpusort_range_reader_create_array(member->spec, shared->ranges,
											   counts, shared->nranges,
											   prepare_range, member);
	pfree(counts);
	return reader;
}

void
gpusort_shared_member_report(const GsSharedMember *member, const GsMemorySort *rows,
							 GsSortReport *report)
{
	Size		bytes = member->spec->team != NULL ? gpusort_memory_sort_bytes(rows) :
		pg_atomic_read_u64(&member->shared->budget->granted);

	report->kind = GS_KIND_CPU;
	report->space = GS_SPACE_MEMORY;
	report->space_kb = (bytes + 1023) / 1024;
	report->range_rows = member->nsorted;
	report->fetch_ms = member->wait_ms;
	strlcpy(report->method, "cpu radix, shared", sizeof(report->method));
}
