/*-------------------------------------------------------------------------
 *
 * shared_sort.c
 *		Sorts the rows of several processes in memory that they have in common.
 *
 * This file has what passes between the processes: who waits for whom, who sorts which range,
 * and who reads it.  shared_view.c places rows in ranges, and range_sorter.c sorts those.
 *
 * A process that has no memory for the sorted rows of a range leaves them to the leader, which
 * copies them to memory of its own.  It does not sort the range again: the tie sorter has
 * replaced words of the keys, which all processes share.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "portability/instr_time.h"
#include "storage/barrier.h"
#include "storage/condition_variable.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "sort/memory/range_sorter.h"
#include "sort/memory/shared_sort.h"
#include "sort/memory/shared_view.h"
#include "work.h"

/* The first phase of the barrier: rows are being added. */
#define PHASE_ADD			0

typedef enum GsRangeState
{
	GS_RANGE_UNSORTED,
	GS_RANGE_SORTED,
	GS_RANGE_LEFT				/* entries are sorted; the leader copies the
								 * rows, for want of memory */
} GsRangeState;

/* Why the processes do not sort together. */
typedef enum GsRefusal
{
	GS_REFUSED_NOT,
	GS_REFUSED_ADDING,			/* rows do not fit, or cannot be shared */
	GS_REFUSED_PLACING			/* likewise, found when other processes may be
								 * reading them already */
} GsRefusal;

struct GsSharedSort
{
	GsSharedBudget budget;		/* must be first */
	Barrier		barrier;
	unsigned	string_words;	/* in all key plans */
	unsigned	chunk_shift;
	int			nshares;
	pg_atomic_uint32 refusal;	/* GsRefusal */
	pg_atomic_uint32 stopped;	/* do the other processes leave the remaining
								 * ranges to the leader? */
	pg_atomic_uint32 next_range;	/* that nobody has taken */
	int			nranges;
	bool		places_keys;	/* along with the entries? */
	ConditionVariable range_sorted; /* a range is no longer unsorted */
	pg_atomic_uint32 states[GPUSORT_MAX_RANGES];	/* GsRangeState */
	GsSortedRange ranges[GPUSORT_MAX_RANGES];
	GsShare		shares[FLEXIBLE_ARRAY_MEMBER];
};

struct GsSharedMember
{
	GsSharedSort *shared;
	const GsSortSpec *spec;
	bool		attached;
	MemoryContext context;		/* for the view and what it needs */
	GsSharedView *view;			/* NULL until all rows are published */

	/* Once rows have been placed. */
	GsRangeSorter *sorter;
	GsRangeWriter *writer;
	GsRangeWriter *private_writer;	/* in the leader, for ranges left to it */
	int64		nsorted;		/* rows of ranges that were sorted here */
	double		wait_ms;
};

/* ----------------------------------------------------------------
 *		beginning
 * ----------------------------------------------------------------
 */

static Size
bytes_of_struct(int processes)
{
	return MAXALIGN(sizeof(GsSharedSort) + processes * sizeof(GsShare));
}

GsSharedSort *
gpusort_shared_sort_create(const GsSortSpec *spec, int processes, Size extra)
{
	Size		limit = mul_size(gpusort_sort_spec_memory(spec), processes);
	Size		bytes = bytes_of_struct(processes);
	GsSharedSort *shared = (GsSharedSort *)
		gpusort_budget_create_group(limit, bytes + extra);

	if (shared == NULL)
		return NULL;
	memset((char *) shared + sizeof(GsSharedBudget), 0,
		   bytes - sizeof(GsSharedBudget));
	BarrierInit(&shared->barrier, 0);
	shared->chunk_shift = gpusort_memory_sort_choose_shift(spec, limit, processes);
	shared->string_words = gpusort_key_plan_string_words(spec->key_plan);
	shared->nshares = processes;
	pg_atomic_init_u32(&shared->refusal, GS_REFUSED_NOT);
	pg_atomic_init_u32(&shared->stopped, 0);
	pg_atomic_init_u32(&shared->next_range, 0);
	ConditionVariableInit(&shared->range_sorted);
	for (int r = 0; r < GPUSORT_MAX_RANGES; r++)
		pg_atomic_init_u32(&shared->states[r], GS_RANGE_UNSORTED);
	return shared;
}

void *
gpusort_shared_sort_extra(GsSharedSort *shared)
{
	return (char *) shared + bytes_of_struct(shared->nshares);
}

GsSharedBudget *
gpusort_shared_sort_budget(GsSharedSort *shared)
{
	return &shared->budget;
}

unsigned
gpusort_shared_sort_string_words(const GsSharedSort *shared)
{
	return shared->string_words;
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

Size
gpusort_shared_sort_bytes(const GsSharedSort *shared)
{
	return pg_atomic_read_u64((pg_atomic_uint64 *) &shared->budget.granted);
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

bool
gpusort_shared_member_attach(GsSharedMember *member)
{
	member->attached = BarrierAttach(&member->shared->barrier) == PHASE_ADD;
	if (!member->attached)
		BarrierDetach(&member->shared->barrier);
	return member->attached;
}

GsMemorySort *
gpusort_shared_member_begin_rows(GsSharedMember *member)
{
	GsSharedSort *shared = member->shared;

	return gpusort_memory_sort_create_shared(member->spec,
											 gpusort_budget_create_shared(&shared->budget),
											 shared->chunk_shift);
}

/* ----------------------------------------------------------------
 *		sorting ranges
 * ----------------------------------------------------------------
 */

/* Make what sorting ranges needs.  All processes have placed their rows. */
static void
prepare_ranges(GsSharedMember *member, GsBudget *budget)
{
	GsSharedView *view = member->view;

	member->sorter = gpusort_range_sorter_create(view);
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
	const uint64 *entries = gpusort_range_sorter_sort(member->sorter, range,
													  &count);

	member->nsorted += count;
	if (gpusort_range_writer_write(member->writer, entries, count,
								   &member->shared->ranges[range]))
		return GS_RANGE_SORTED;
	gpusort_range_sorter_keep(member->sorter, range);
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

static GsRefusal
refusal(const GsSharedSort *shared)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &shared->refusal);
}

static bool
is_refused(const GsSharedSort *shared)
{
	return refusal(shared) != GS_REFUSED_NOT;
}

/* Refuse the sort, unless it is refused. */
static void
refuse(GsSharedSort *shared, GsRefusal reason)
{
	uint32		expected = GS_REFUSED_NOT;

	(void) pg_atomic_compare_exchange_u32(&shared->refusal, &expected, reason);
}

void
gpusort_shared_sort_refuse(GsSharedSort *shared)
{
	refuse(shared, GS_REFUSED_ADDING);
}

bool
gpusort_shared_sort_refused_early(const GsSharedSort *shared)
{
	return refusal(shared) == GS_REFUSED_ADDING;
}

static bool
is_stopped(const GsSharedSort *shared)
{
	return pg_atomic_read_u32((pg_atomic_uint32 *) &shared->stopped) != 0;
}

void
gpusort_shared_sort_stop(GsSharedSort *shared)
{
	pg_atomic_write_u32(&shared->stopped, 1);
}

void
gpusort_shared_member_refuse(GsSharedMember *member)
{
	if (member->attached)
		refuse(member->shared, GS_REFUSED_ADDING);
}

/* Let the others go on without this process. */
static void
leave(GsSharedMember *member)
{
	BarrierDetach(&member->shared->barrier);
	member->attached = false;
}

/*
 * Wait until all processes have come so far.  Returns false if the sort is refused; who
 * learns that need not wait.
 */
static bool
wait_for_others(GsSharedSort *shared)
{
	if (!is_refused(shared))
		(void) BarrierArriveAndWait(&shared->barrier, gpusort_shared_wait_event());
	return !is_refused(shared);
}

static GsSharedView *
create_view(const GsSharedMember *member)
{
	GsSharedSort *shared = member->shared;

	return gpusort_shared_view_create(shared->shares, shared->nshares,
									  shared->chunk_shift, member->spec);
}

/* Publish and place our rows.  Returns false if the sort is refused. */
static bool
place_together(GsSharedMember *member, GsMemorySort *rows)
{
	GsSharedSort *shared = member->shared;
	int			process = member->spec->process;
	GsSharedView *view;

	if (!is_refused(shared) &&
		!gpusort_share_publish(&shared->shares[process], member->spec, rows))
		refuse(shared, GS_REFUSED_ADDING);
	if (!wait_for_others(shared))
		return false;

	/* All processes come to the same result. */
	if (!gpusort_shares_have_numbers(shared->shares, shared->nshares,
									 shared->chunk_shift))
	{
		refuse(shared, GS_REFUSED_ADDING);
		return false;
	}
	view = member->view = create_view(member);
	gpusort_shared_view_split(view);
	shared->nranges = view->nranges;	/* the same in all processes */
	shared->places_keys = view->places_keys;
	if (!gpusort_shared_view_place(view, process,
								   gpusort_memory_sort_budget(rows)))
		refuse(shared, GS_REFUSED_PLACING);
	return wait_for_others(shared);
}

bool
gpusort_shared_member_sort(GsSharedMember *member, GsMemorySort *rows)
{
	GsSharedSort *shared = member->shared;
	GsBudget   *budget;
	MemoryContext caller;
	bool		placed;

	/* If no process took part, there is nothing to read. */
	if (!member->attached)
		return !is_refused(shared) && shared->nranges > 0;
	if (rows == NULL)
	{
		refuse(shared, GS_REFUSED_ADDING);
		leave(member);
		return false;
	}
	budget = gpusort_memory_sort_budget(rows);
	caller = MemoryContextSwitchTo(member->context);
	placed = place_together(member, rows);
	leave(member);
	if (placed)
	{
		prepare_ranges(member, budget);
		if (member->spec->target != NULL)
			while (!is_stopped(shared) && sort_next_range(member))
				;
	}
	else if (refusal(shared) == GS_REFUSED_ADDING)
		gpusort_budget_set_published(budget, false);
	MemoryContextSwitchTo(caller);
	return placed;
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
	const uint64 *entries = gpusort_range_sorter_get(member->sorter, range,
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
	if (member->view == NULL)
	{
		/* The leader took no part, and a range is left to it. */
		member->view = create_view(member);
		member->view->nranges = member->shared->nranges;
		member->view->places_keys = member->shared->places_keys;
		prepare_ranges(member, NULL);
	}
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

int64
gpusort_shared_member_rows(const GsSharedMember *member)
{
	return member->nsorted;
}

double
gpusort_shared_member_wait_ms(const GsSharedMember *member)
{
	return member->wait_ms;
}
