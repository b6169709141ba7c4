/*-------------------------------------------------------------------------
 *
 * shared_ranges.c
 *		Ranges of sorted rows, which several processes make and their leader reads.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "sort/memory/shared_ranges.h"

/*
 * Where a range is that has been made.  Who has taken the range writes the slot, and then
 * 'ready', under the mutex.  From then on it is the leader's, until that has read the range.
 */
typedef struct GsRangeSlot
{
	int			ready;			/* the number of the range, plus 1; or 0 */
	bool		left;			/* to the leader, for want of memory */
	GsRangePiece *pieces;
} GsRangeSlot;

struct GsSharedRanges
{
	pg_atomic_uint32 nranges;	/* as the first process has divided the rows;
								 * or 0 */
	pg_atomic_uint32 nranges_own;	/* ranges that processes have read for
									 * themselves, */
	pg_atomic_uint64 nrows_own; /* and their rows */

	slock_t		mutex;			/* for what follows */
	int			next_range;		/* that nobody has taken */
	int			nread;			/* ranges whose slots the leader has given
								 * back */
	bool		stopped;		/* do the other processes leave the remaining
								 * ranges to the leader? */
	ConditionVariable progress; /* any of this has changed */
	GsRangeSlot slots[GPUSORT_MAX_SLOTS];
};

Size
gpusort_shared_ranges_size(void)
{
	return MAXALIGN(sizeof(GsSharedRanges));
}

GsSharedRanges *
gpusort_shared_ranges_init(void *memory)
{
	GsSharedRanges *shared = memory;

	memset(shared, 0, sizeof(GsSharedRanges));
	pg_atomic_init_u32(&shared->nranges, 0);
	pg_atomic_init_u32(&shared->nranges_own, 0);
	pg_atomic_init_u64(&shared->nrows_own, 0);
	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->progress);
	return shared;
}

uint32
gpusort_shared_wait_event(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = GPUSORT_NEW_WAIT_EVENT("GpuSortShared");
	return event;
}

/* ----------------------------------------------------------------
 *		making ranges
 * ----------------------------------------------------------------
 */

/* All processes must come to the same ranges. */
static void
check_ranges(GsSharedRanges *shared, int nranges)
{
	uint32		first = 0;

	if (!pg_atomic_compare_exchange_u32(&shared->nranges, &first, nranges) &&
		first != (uint32) nranges)
		elog(ERROR, "processes have divided the rows of a sort into %u and %d ranges",
			 first, nranges);
}

GsRanges *
gpusort_ranges_create(GsSharedRanges *shared, const GsSortSpec *spec,
					  const GsRangeSource *source, void *arg,
					  int nranges, int nslots, int64 nrows)
{
	GsRanges   *ranges = palloc0(sizeof(GsRanges));

	Assert(nslots <= GPUSORT_MAX_SLOTS);
	check_ranges(shared, nranges);
	ranges->shared = shared;
	ranges->spec = spec;
	ranges->source = source;
	ranges->arg = arg;
	ranges->context = CurrentMemoryContext;
	ranges->nranges = nranges;
	ranges->nslots = nslots;
	ranges->nrows = nrows;
	ranges->first = ranges;
	ranges->format = gpusort_row_format_create(spec);
	ranges->reading = -1;
	if (nslots >= nranges)
		ranges->starts = palloc0(Max(nranges, 1) * sizeof(int64));
	return ranges;
}

void
gpusort_ranges_pair(GsRanges *first, GsRanges *second)
{
	Assert(first->nranges == second->nranges);
	second->first = first;
}

static GsRangeSlot *
slot_of(const GsRanges *ranges, int range)
{
	return &ranges->shared->slots[range % ranges->nslots];
}

/*
 * Take the next range.  Returns -1 if there is none now, and sets *end to whether there will
 * be none later.  The leader takes ranges also after the others have been stopped.
 */
static int
take_range(const GsRanges *ranges, bool *end)
{
	GsSharedRanges *shared = ranges->shared;
	bool		is_leader = ranges->spec->team == NULL;
	bool		has_slots = ranges->spec->group_keys == 0;
	int			range = -1;

	SpinLockAcquire(&shared->mutex);
	*end = shared->next_range >= ranges->nranges || (shared->stopped && !is_leader);
	if (!*end && (!has_slots || shared->next_range < shared->nread + ranges->nslots))
		range = shared->next_range++;
	SpinLockRelease(&shared->mutex);
	return range;
}

/* Make a range that this process has taken. */
static void
make_range(const GsRanges *ranges, int range)
{
	GsSharedRanges *shared = ranges->shared;
	GsRangeSlot *slot = slot_of(ranges, range);
	MemoryContext caller = MemoryContextSwitchTo(ranges->context);

	slot->left = !ranges->source->make(ranges->arg, range, &slot->pieces);
	MemoryContextSwitchTo(caller);
	SpinLockAcquire(&shared->mutex);
	slot->ready = range + 1;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->progress);
}

/* Make the next range, or wait until there is something new.  Returns false at the end. */
static bool
make_next_range(const GsRanges *ranges)
{
	bool		end;
	int			range = take_range(ranges, &end);

	if (range >= 0)
	{
		ConditionVariableCancelSleep();
		make_range(ranges, range);
		return true;
	}
	if (!end)
		ConditionVariableSleep(&ranges->shared->progress, gpusort_shared_wait_event());
	return !end;
}

void
gpusort_ranges_make(GsRanges *ranges)
{
	while (make_next_range(ranges))
		;
	ConditionVariableCancelSleep();
}

void
gpusort_shared_ranges_stop(GsSharedRanges *shared)
{
	SpinLockAcquire(&shared->mutex);
	shared->stopped = true;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->progress);
}

/* ----------------------------------------------------------------
 *		reading ranges
 * ----------------------------------------------------------------
 */

static bool
is_ready(const GsRanges *ranges, int range)
{
	GsSharedRanges *shared = ranges->shared;
	bool		ready;

	SpinLockAcquire(&shared->mutex);
	ready = slot_of(ranges, range)->ready == range + 1;
	SpinLockRelease(&shared->mutex);
	return ready;
}

/* Make other ranges until this one is ready, or wait for the process that makes it. */
static void
wait_for_range(GsRanges *ranges, int range)
{
	instr_time	start;
	instr_time	end;

	if (is_ready(ranges, range))
		return;
	INSTR_TIME_SET_CURRENT(start);
	do
	{
		if (!make_next_range(ranges))
			ConditionVariableSleep(&ranges->shared->progress, gpusort_shared_wait_event());
	} while (!is_ready(ranges, range));
	ConditionVariableCancelSleep();
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	ranges->wait_ms += INSTR_TIME_GET_MILLISEC(end);
}

/* All rows of the range that is read have been read: its slot can be used again. */
static void
give_slot_back(const GsRanges *ranges)
{
	GsSharedRanges *shared = ranges->shared;

	SpinLockAcquire(&shared->mutex);
	shared->nread++;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->progress);
}

static int64
count_rows(const GsRangePiece *piece)
{
	int64		nrows = 0;

	for (; piece != NULL && piece->range.nrows > 0; piece = piece->next)
		nrows += piece->range.nrows;
	return nrows;
}

/*
 * Count the rows of the range that is read.  Where it ends, one process has found out, and where
 * the next one begins, another: no row must be in both or in neither.
 */
static void
check_rows(GsRanges *ranges)
{
	int64		nrows = count_rows(ranges->piece);

	ranges->longest = Max(ranges->longest, nrows);
	if (ranges->reading == ranges->nranges - 1 && ranges->start + nrows != ranges->nrows)
		elog(ERROR, "ranges of a sort have " INT64_FORMAT " instead of " INT64_FORMAT " rows",
			 ranges->start + nrows, ranges->nrows);
}

/* Begin to read the range ranges->reading from its source, where it begins at ranges->start. */
static void
open_source(GsRanges *ranges)
{
	MemoryContext caller = MemoryContextSwitchTo(ranges->context);

	ranges->rows.nrows = 0;
	ranges->left = true;
	ranges->source->open(ranges->arg, ranges->reading);
	MemoryContextSwitchTo(caller);
}

/* The same for a range that is ready, which is in its slot unless it was left. */
static void
open_range(GsRanges *ranges)
{
	const GsRangeSlot *slot = slot_of(ranges, ranges->reading);

	if (slot->left)
	{
		open_source(ranges);
		return;
	}
	ranges->rows.nrows = 0;
	ranges->left = false;
	ranges->piece = slot->pieces;
	check_rows(ranges);
}

static void
begin_next_range(GsRanges *ranges)
{
	if (ranges->reading >= 0 && ranges->starts == NULL)
		give_slot_back(ranges);
	if (++ranges->reading >= ranges->nranges)
		elog(ERROR, "ranges of a sort have fewer rows than they should");
	wait_for_range(ranges, ranges->reading);
	if (ranges->starts != NULL)
		ranges->starts[ranges->reading] = ranges->start;
	open_range(ranges);
	ranges->nleft += ranges->left;
}

/* Go back to the range with a position.  It may also be the one that is read. */
static void
go_back(GsRanges *ranges, int64 position)
{
	if (ranges->starts == NULL)
		elog(ERROR, "rows that are merged together are read a second time");
	while (ranges->starts[ranges->reading] > position)
		ranges->reading--;
	ranges->start = ranges->starts[ranges->reading];
	open_range(ranges);
}

/* Sets ranges->rows to the next rows of the range.  Returns false if there are none. */
static bool
next_rows(GsRanges *ranges)
{
	const GsRangePiece *piece = ranges->piece;

	if (ranges->left)
		return ranges->source->next(ranges->arg, &ranges->rows);
	if (piece == NULL || piece->range.nrows == 0)
		return false;
	ranges->rows = piece->range;
	ranges->piece = piece->next;
	return true;
}

void
gpusort_ranges_seek(GsRanges *ranges, int64 position)
{
	if (position < ranges->start)
		go_back(ranges, position);
	while (position - ranges->start >= ranges->rows.nrows)
	{
		ranges->start += ranges->rows.nrows;
		ranges->rows.nrows = 0;
		while (ranges->reading < 0 || !next_rows(ranges))
			begin_next_range(ranges);
	}
}

void
gpusort_ranges_jump(GsRanges *ranges, int64 position)
{
	const GsRangeSource *source = ranges->source;
	int64		start = 0;
	int64		nrows;
	int			range = 0;

	Assert(position < ranges->nrows);
	if (source->count == NULL || ranges->starts == NULL ||
		(uint64) (position - ranges->start) < ranges->rows.nrows)
		return;
	while (nrows = source->count(ranges->arg, range), position - start >= nrows)
	{
		ranges->starts[range++] = start;
		start += nrows;
	}
	ranges->starts[range] = start;
	ranges->reading = range;
	ranges->start = start;
	open_source(ranges);
}

/*
 * This process has read the last row of a range of its own.  The last one of all compares the
 * number of rows with that before they were sorted.  Each adds its rows first, so the last one
 * must read their number after it has found out that it is the last.
 */
static void
check_own_range(GsRanges *ranges)
{
	GsSharedRanges *shared = ranges->shared;
	int64		nrows;

	pg_atomic_fetch_add_u64(&shared->nrows_own, ranges->start - ranges->own_start);
	if (pg_atomic_add_fetch_u32(&shared->nranges_own, 1) != (uint32) ranges->nranges)
		return;
	nrows = pg_atomic_read_u64(&shared->nrows_own);
	if (nrows != ranges->nrows)
		elog(ERROR, "ranges of a sort have " INT64_FORMAT " instead of " INT64_FORMAT " rows",
			 nrows, ranges->nrows);
}

/*
 * Returns the next range that this process reads: the one that it has taken for the other sort of a
 * pair, or that nobody has taken.  Returns -1 if there is none.
 */
static int
next_own_range(GsRanges *ranges)
{
	GsRanges   *first = ranges->first;
	MemoryContext caller;
	bool		end;
	int			range;

	if (ranges->nread < list_length(first->taken))
		return list_nth_int(first->taken, ranges->nread++);
	range = take_range(first, &end);
	if (range < 0)
		return -1;
	caller = MemoryContextSwitchTo(first->context);
	first->taken = lappend_int(first->taken, range);
	MemoryContextSwitchTo(caller);
	ranges->nread++;
	return range;
}

/* Go to the next range.  Returns false if there is none. */
static bool
begin_own_range(GsRanges *ranges)
{
	ranges->reading = next_own_range(ranges);
	if (ranges->reading < 0)
		return false;
	ranges->own_start = ranges->start;
	ranges->nown++;
	return true;
}

/* Go to the next range, and begin to read it. */
static bool
open_own_range(GsRanges *ranges)
{
	if (!begin_own_range(ranges))
		return false;
	open_source(ranges);
	return true;
}

int64
gpusort_ranges_advance(GsRanges *ranges)
{
	ranges->start += ranges->rows.nrows;
	ranges->rows.nrows = 0;
	do
	{
		if (ranges->reading < 0)
			continue;
		if (ranges->source->next(ranges->arg, &ranges->rows))
			return ranges->rows.nrows;
		check_own_range(ranges);
	} while (open_own_range(ranges));
	return 0;
}

bool
gpusort_ranges_count_keys(GsRanges *ranges, GsKeyCounts *counts, Datum *values, bool *isnull)
{
	int64		before = counts->rows;
	MemoryContext caller;

	if (!begin_own_range(ranges))
		return false;
	caller = MemoryContextSwitchTo(ranges->context);
	ranges->source->count_keys(ranges->arg, ranges->reading, counts, values, isnull);
	MemoryContextSwitchTo(caller);
	ranges->start += counts->rows - before;
	check_own_range(ranges);
	return true;
}

void
gpusort_ranges_in_place(GsRanges *ranges, int64 position, GsRowsInPlace *rows)
{
	uint64		within;

	gpusort_ranges_seek(ranges, position);
	within = position - ranges->start;
	*rows = ranges->rows;
	rows->format = ranges->format;
	rows->nrows -= within;

	/* The addresses of rows that were left are in memory of this process. */
	rows->lasting = !ranges->left;
	if (rows->addresses != NULL)
	{
		rows->addresses += within;
		rows->first = rows->addresses[0];
	}
	else
		rows->first += within * rows->row_bytes;
	if (rows->nulls != NULL)
		rows->nulls += within * rows->format->null_bytes;
}
