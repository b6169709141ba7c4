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

GsRangeMaker *
gpusort_range_maker_create(GsSharedRanges *shared, const GsSortSpec *spec,
						   const GsRangeSource *source, void *arg,
						   int nranges, int nslots, int64 nrows)
{
	GsRangeMaker *maker = palloc0(sizeof(GsRangeMaker));

	Assert(nslots <= GPUSORT_MAX_SLOTS);
	check_ranges(shared, nranges);
	maker->shared = shared;
	maker->spec = spec;
	maker->source = source;
	maker->arg = arg;
	maker->context = CurrentMemoryContext;
	maker->nranges = nranges;
	maker->nslots = nslots;
	maker->nrows = nrows;
	maker->first = maker;
	return maker;
}

void
gpusort_range_makers_pair(GsRangeMaker *first, GsRangeMaker *second)
{
	Assert(first->nranges == second->nranges);
	second->first = first;
}

static GsRangeSlot *
slot_of(const GsRangeMaker *maker, int range)
{
	return &maker->shared->slots[range % maker->nslots];
}

/*
 * Take the next range.  Returns -1 if there is none now, and sets *end to whether there will
 * be none later.  The leader takes ranges also after the others have been stopped.
 */
static int
take_range(const GsRangeMaker *maker, bool *end)
{
	GsSharedRanges *shared = maker->shared;
	bool		is_leader = maker->spec->team == NULL;
	bool		has_slots = maker->spec->group_keys == 0;
	int			range = -1;

	SpinLockAcquire(&shared->mutex);
	*end = shared->next_range >= maker->nranges || (shared->stopped && !is_leader);
	if (!*end && (!has_slots || shared->next_range < shared->nread + maker->nslots))
		range = shared->next_range++;
	SpinLockRelease(&shared->mutex);
	return range;
}

/* Make a range that this process has taken. */
static void
make_range(const GsRangeMaker *maker, int range)
{
	GsSharedRanges *shared = maker->shared;
	GsRangeSlot *slot = slot_of(maker, range);
	MemoryContext caller = MemoryContextSwitchTo(maker->context);

	slot->left = !maker->source->make(maker->arg, range, &slot->pieces);
	MemoryContextSwitchTo(caller);
	SpinLockAcquire(&shared->mutex);
	slot->ready = range + 1;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->progress);
}

/* Make the next range, or wait until there is something new.  Returns false at the end. */
static bool
make_next_range(const GsRangeMaker *maker)
{
	bool		end;
	int			range = take_range(maker, &end);

	if (range >= 0)
	{
		ConditionVariableCancelSleep();
		make_range(maker, range);
		return true;
	}
	if (!end)
		ConditionVariableSleep(&maker->shared->progress, gpusort_shared_wait_event());
	return !end;
}

void
gpusort_range_maker_run(GsRangeMaker *maker)
{
	while (make_next_range(maker))
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

GsRangeReader *
gpusort_range_reader_create(GsRangeMaker *maker)
{
	GsRangeReader *reader = palloc0(sizeof(GsRangeReader));

	reader->format = gpusort_row_format_create(maker->spec);
	reader->nrows = maker->nrows;
	reader->maker = maker;
	reader->reading = -1;
	if (maker->nslots >= maker->nranges)
		reader->starts = palloc0(Max(maker->nranges, 1) * sizeof(int64));
	return reader;
}

static bool
is_ready(const GsRangeMaker *maker, int range)
{
	GsSharedRanges *shared = maker->shared;
	bool		ready;

	SpinLockAcquire(&shared->mutex);
	ready = slot_of(maker, range)->ready == range + 1;
	SpinLockRelease(&shared->mutex);
	return ready;
}

/* Make other ranges until this one is ready, or wait for the process that makes it. */
static void
wait_for_range(GsRangeMaker *maker, int range)
{
	instr_time	start;
	instr_time	end;

	if (is_ready(maker, range))
		return;
	INSTR_TIME_SET_CURRENT(start);
	do
	{
		if (!make_next_range(maker))
			ConditionVariableSleep(&maker->shared->progress, gpusort_shared_wait_event());
	} while (!is_ready(maker, range));
	ConditionVariableCancelSleep();
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	maker->wait_ms += INSTR_TIME_GET_MILLISEC(end);
}

/* All rows of the range that is read have been read: its slot can be used again. */
static void
give_slot_back(const GsRangeMaker *maker)
{
	GsSharedRanges *shared = maker->shared;

	SpinLockAcquire(&shared->mutex);
	shared->nread++;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->progress);
}

/* Returns the number of rows in the pieces of a range. */
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
check_rows(const GsRangeReader *reader)
{
	GsRangeMaker *maker = reader->maker;
	int64		nrows = count_rows(reader->piece);

	maker->longest = Max(maker->longest, nrows);
	if (reader->reading == maker->nranges - 1 && reader->start + nrows != reader->nrows)
		elog(ERROR, "ranges of a sort have " INT64_FORMAT " instead of " INT64_FORMAT " rows",
			 reader->start + nrows, reader->nrows);
}

/* Begin to read the range reader->reading from its source, where it begins at reader->start. */
static void
open_source(GsRangeReader *reader)
{
	const GsRangeMaker *maker = reader->maker;
	MemoryContext caller = MemoryContextSwitchTo(maker->context);

	reader->rows.nrows = 0;
	reader->left = true;
	maker->source->open(maker->arg, reader->reading);
	MemoryContextSwitchTo(caller);
}

/* The same for a range that is ready, which is in its slot unless it was left. */
static void
open_range(GsRangeReader *reader)
{
	const GsRangeSlot *slot = slot_of(reader->maker, reader->reading);

	if (slot->left)
	{
		open_source(reader);
		return;
	}
	reader->rows.nrows = 0;
	reader->left = false;
	reader->piece = slot->pieces;
	check_rows(reader);
}

/* Go to the next range. */
static void
begin_next_range(GsRangeReader *reader)
{
	GsRangeMaker *maker = reader->maker;

	if (reader->reading >= 0 && reader->starts == NULL)
		give_slot_back(maker);
	if (++reader->reading >= maker->nranges)
		elog(ERROR, "ranges of a sort have fewer rows than they should");
	wait_for_range(maker, reader->reading);
	if (reader->starts != NULL)
		reader->starts[reader->reading] = reader->start;
	open_range(reader);
	maker->nleft += reader->left;
}

/* Go back to the range with a position.  It may also be the one that is read. */
static void
go_back(GsRangeReader *reader, int64 position)
{
	if (reader->starts == NULL)
		elog(ERROR, "rows that are merged together are read a second time");
	while (reader->starts[reader->reading] > position)
		reader->reading--;
	reader->start = reader->starts[reader->reading];
	open_range(reader);
}

/* Sets reader->rows to the next rows of the range.  Returns false if there are none. */
static bool
next_rows(GsRangeReader *reader)
{
	const GsRangeMaker *maker = reader->maker;
	const GsRangePiece *piece = reader->piece;

	if (reader->left)
		return maker->source->next(maker->arg, &reader->rows);
	if (piece == NULL || piece->range.nrows == 0)
		return false;
	reader->rows = piece->range;
	reader->piece = piece->next;
	return true;
}

void
gpusort_range_reader_seek(GsRangeReader *reader, int64 position)
{
	if (position < reader->start)
		go_back(reader, position);
	while (position - reader->start >= reader->rows.nrows)
	{
		reader->start += reader->rows.nrows;
		reader->rows.nrows = 0;
		while (reader->reading < 0 || !next_rows(reader))
			begin_next_range(reader);
	}
}

void
gpusort_range_reader_jump(GsRangeReader *reader, int64 position)
{
	const GsRangeMaker *maker = reader->maker;
	const GsRangeSource *source = maker->source;
	int64		start = 0;
	int64		nrows;
	int			range = 0;

	Assert(position < maker->nrows);
	if (source->count == NULL || reader->starts == NULL ||
		(uint64) (position - reader->start) < reader->rows.nrows)
		return;
	while (nrows = source->count(maker->arg, range), position - start >= nrows)
	{
		reader->starts[range++] = start;
		start += nrows;
	}
	reader->starts[range] = start;
	reader->reading = range;
	reader->start = start;
	open_source(reader);
}

/*
 * This process has read the last row of a range of its own.  The last one of all compares the
 * number of rows with that before they were sorted.  Each adds its rows first, so the last one
 * must read their number after it has found out that it is the last.
 */
static void
check_own_range(GsRangeReader *reader)
{
	GsRangeMaker *maker = reader->maker;
	GsSharedRanges *shared = maker->shared;
	int64		nrows;

	pg_atomic_fetch_add_u64(&shared->nrows_own, reader->start - reader->own_start);
	if (pg_atomic_add_fetch_u32(&shared->nranges_own, 1) != (uint32) maker->nranges)
		return;
	nrows = pg_atomic_read_u64(&shared->nrows_own);
	if (nrows != maker->nrows)
		elog(ERROR, "ranges of a sort have " INT64_FORMAT " instead of " INT64_FORMAT " rows",
			 nrows, maker->nrows);
}

/*
 * Returns the next range that this process reads: the one that it has taken for the other sort of a
 * pair, or that nobody has taken.  Returns -1 if there is none.
 */
static int
next_own_range(GsRangeReader *reader)
{
	GsRangeMaker *first = reader->maker->first;
	MemoryContext caller;
	bool		end;
	int			range;

	if (reader->nread < list_length(first->taken))
		return list_nth_int(first->taken, reader->nread++);
	range = take_range(first, &end);
	if (range < 0)
		return -1;
	caller = MemoryContextSwitchTo(first->context);
	first->taken = lappend_int(first->taken, range);
	MemoryContextSwitchTo(caller);
	reader->nread++;
	return range;
}

/* Begin to read the next range.  Returns false if there is none. */
static bool
begin_own_range(GsRangeReader *reader)
{
	reader->reading = next_own_range(reader);
	if (reader->reading < 0)
		return false;
	open_source(reader);
	reader->own_start = reader->start;
	reader->nown++;
	return true;
}

int64
gpusort_range_reader_advance(GsRangeReader *reader)
{
	const GsRangeMaker *maker = reader->maker;

	reader->start += reader->rows.nrows;
	reader->rows.nrows = 0;
	do
	{
		if (reader->reading < 0)
			continue;
		if (maker->source->next(maker->arg, &reader->rows))
			return reader->rows.nrows;
		check_own_range(reader);
	} while (begin_own_range(reader));
	return 0;
}

bool
gpusort_range_reader_in_place(const GsRangeReader *reader, int64 position,
							  GsRowsInPlace *rows)
{
	const GsRowFormat *format = reader->format;
	const GsSortedRange *range = &reader->rows;
	uint64		within = position - reader->start;

	/* The addresses of rows that were left are in memory of this process. */
	if (within >= range->nrows || format->null_bytes != 1 || reader->left)
		return false;
	memset(rows, 0, sizeof(*rows));
	rows->nrows = range->nrows - within;
	if (range->rows != NULL)
	{
		rows->addresses = range->rows + within;
		rows->first = rows->addresses[0];
	}
	else
	{
		rows->row_bytes = range->packed ? format->packed_bytes : format->fixed_bytes;
		rows->first = range->slots + within * rows->row_bytes;
	}
	if (range->packed)
		rows->null_offset = format->columns_bytes;
	else if (range->nulls != NULL)
		rows->nulls = range->nulls + within;
	return true;
}
