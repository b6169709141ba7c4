/*-------------------------------------------------------------------------
 *
 * sort_rows.c
 *		Returns the rows of a sort: a cursor that checks their order.
 *
 * gpusort_sort_finish() (sort_finish.c) has put the cursor before the first row.  Here it is
 * decided from where each row comes: the backend's memory, a GPU, runs on disk, or ranges that
 * several processes have sorted.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "core/prefetch.h"
#include "key/distrust.h"
#include "sort/base/group_keys.h"
#include "sort/base/sort_stats.h"
#include "sort/base/tuple_rows.h"
#include "sort/memory/row_store.h"
#include "sort/sort_private.h"
#include "work.h"

/* ----------------------------------------------------------------
 *		rows after a mark, kept where reading them again is slow
 *
 * A merge join reads the rows of a group again for each of its outer rows.  If the group
 * crosses a chunk of a GPU session, or has many ties, that would fetch chunks or sort ties
 * each time.  The rows are in a row store.  Those of several marks follow each other there, since
 * most groups of a join have few rows, until the store has many rows or no memory for more.
 * ----------------------------------------------------------------
 */

#define MARKED_CHUNK_SHIFT	6

/* A new mark begins a new store if the old one has this many rows. */
#define MANY_MARKED_ROWS	4096

struct GsMarkedRows
{
	const GsSortSpec *spec;
	MemoryContext context;		/* of the store */
	GsRowStore *store;			/* NULL before the first mark */
	uint32		nrows;			/* in the store */
	bool		full;			/* has the store refused a row? */

	/*
	 * Positions first to end - 1 are kept, from number 'base' of the store
	 * on.
	 */
	int64		first;
	int64		end;
	uint32		base;
	bool		adding;			/* is the row at 'end' to be kept? */
};

/* Keep no rows yet. */
static GsMarkedRows *
marked_rows_create(const GsSort *sort)
{
	GsMarkedRows *marked = MemoryContextAllocZero(sort->context, sizeof(GsMarkedRows));

	marked->spec = sort->spec;
	marked->context = AllocSetContextCreate(sort->context, "pg_gpusort marked rows",
											ALLOCSET_DEFAULT_SIZES);
	return marked;
}

static void
begin_store(GsMarkedRows *marked)
{
	MemoryContext caller;
	GsBudget   *budget;

	MemoryContextReset(marked->context);
	caller = MemoryContextSwitchTo(marked->context);
	budget = gpusort_budget_create(gpusort_sort_spec_marked_memory(marked->spec));
	marked->store = gpusort_row_store_create(budget, marked->spec, MARKED_CHUNK_SHIFT);
	MemoryContextSwitchTo(caller);
	marked->nrows = 0;
	marked->full = false;
}

static inline bool
is_kept(const GsMarkedRows *marked, int64 position)
{
	return position >= marked->first && position < marked->end;
}

/*
 * The cursor returns to a mark: keep the rows that are read from there on.  Nobody may use the
 * values of a row returned before.
 */
static void
marked_rows_restore(GsMarkedRows *marked, int64 position)
{
	/* With a store of its own, more of the group may be kept. */
	if (!is_kept(marked, position) || (marked->full && marked->base > 0))
	{
		if (marked->store == NULL || marked->full || marked->nrows >= MANY_MARKED_ROWS)
			begin_store(marked);
		marked->first = marked->end = position;
		marked->base = marked->nrows;
	}
	marked->adding = true;
}

/*
 * Read the row at a position.  Returns false if it is not kept.  Values that are passed by
 * reference are valid until marked_rows_restore() is called.
 */
static bool
marked_rows_get(const GsMarkedRows *marked, int64 position,
				Datum *values, bool *isnull)
{
	if (!is_kept(marked, position))
		return false;
	gpusort_row_store_get(marked->store,
						  marked->base + (uint32) (position - marked->first),
						  values, isnull);
	return true;
}

/* Keep the row at a position, if it is the next one to be kept, and there is memory. */
static void
marked_rows_add(GsMarkedRows *marked, int64 position,
				const Datum *values, const bool *isnull)
{
	if (!marked->adding || marked->full || position != marked->end)
		return;
	if (gpusort_row_store_put(marked->store, values, isnull))
	{
		marked->nrows++;
		marked->end++;
	}
	else
		marked->full = true;
}

/* ----------------------------------------------------------------
 *		from where rows come
 * ----------------------------------------------------------------
 */

/* Read a row on a GPU that may be kept, since the cursor has returned to a mark. */
static pg_noinline bool
get_marked(GsSort *sort, int64 position, TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;

	if (marked_rows_get(sort->marked, position, values, isnull))
		return true;
	if (!gpusort_gpu_rows_get(&sort->gpu, position, values, isnull))
		return false;
	marked_rows_add(sort->marked, position, values, isnull);
	return true;
}

/*
 * Read the row at a position, counted from 0, into the arrays of a slot.  If the rows are on
 * disk, positions must ascend unless spec->random_access is set.  Returns false if the rows
 * are lost.
 */
static pg_attribute_always_inline bool
get_row(GsSort *sort, int64 position, TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;

	if (sort->location == GS_ROWS_SHARED)
		gpusort_ranges_get(sort->ranges, position, values, isnull);
	else if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_cpu_sort_get(&sort->cpu, position, values, isnull);
	else if (sort->location == GS_ROWS_IN_MEMORY)
		gpusort_memory_sort_get(sort->cpu.rows, position, values, isnull);
	else if (unlikely(sort->marked != NULL))
		return get_marked(sort, position, slot);
	else
		return gpusort_gpu_rows_get(&sort->gpu, position + sort->gpu_offset, values, isnull);
	return true;
}

bool
gpusort_sort_is_lasting(const GsSort *sort)
{
	return sort->location == GS_ROWS_IN_MEMORY ||
		(sort->location == GS_ROWS_SHARED && sort->participant->merger == NULL);
}

/*
 * Sets *rows to those from a position on, counted from 0, that are read in sequence where they are.
 * Returns false if there are none, as in a memory sort, which has them all over the memory.
 */
static bool
rows_in_place(GsSort *sort, int64 position, GsRowsInPlace *rows)
{
	if (sort->location == GS_ROWS_SHARED)
	{
		gpusort_ranges_in_place(sort->ranges, position, rows);
		/* Merged rows are in memory that is used again. */
		rows->lasting &= sort->participant->merger == NULL;
		return true;
	}
	return sort->location == GS_ROWS_ON_GPU && sort->marked == NULL &&
		gpusort_gpu_rows_in_place(&sort->gpu, position + sort->gpu_offset, rows);
}

bool
gpusort_sort_in_place(GsSort *sort, GsRowsInPlace *rows)
{
	int64		position = sort->position;

	/*
	 * Those of the next range or chunk are used only after the cursor is
	 * there.
	 */
	if (sort->location == GS_ROWS_SHARED &&
		(uint64) (position - sort->ranges->start) >= sort->ranges->rows.nrows)
		return false;
	if (sort->location == GS_ROWS_ON_GPU &&
		!gpusort_gpu_session_is_near(sort->gpu.session, position))
		return false;
	return position < sort->nrows && rows_in_place(sort, position, rows) &&
		rows->format->null_bytes == 1;
}

void
gpusort_sort_lend(GsSort *sort, GsRecallRows recall, void *arg)
{
	if (sort->location == GS_ROWS_ON_GPU)
		gpusort_gpu_session_lend(sort->gpu.session, recall, arg);
}

/* ----------------------------------------------------------------
 *		spans: rows that follow each other in memory
 * ----------------------------------------------------------------
 */

/* Fewer rows are no span. */
#define FEW_ROWS		16

/* The cursor moves elsewhere than to the next row. */
static void
leave_span(GsSort *sort)
{
	sort->span.nrows = 0;
	sort->no_span = 0;
}

/* Make a span of the rows from the one on at which the cursor is.  Returns false if it is none. */
static pg_noinline bool
find_span(GsSort *sort)
{
	GsRowsInPlace *span = &sort->span;
	int64		position = sort->position - 1;

	if (sort->spec->index_build || !rows_in_place(sort, position, span) ||
		(span->nrows = Min(span->nrows, sort->nrows - position)) < FEW_ROWS)
	{
		span->nrows = 0;
		sort->no_span = position + FEW_ROWS;
		return false;
	}
	if (sort->location == GS_ROWS_ON_GPU)
		gpusort_gpu_rows_pass(&sort->gpu, span->nrows);
	return true;
}

/* Read the first row of the span. */
static pg_attribute_always_inline void
read_span(GsSort *sort, TupleTableSlot *slot)
{
	GsRowsInPlace *span = &sort->span;
	const GsRowFormat *format = span->format;
	char	   *row = span->first;
	const uint8 *bitmap = NULL;

	span->nrows--;
	if (span->null_offset > 0)
		bitmap = gpusort_row_format_nulls(format, row);
	else if (span->nulls != NULL)
	{
		bitmap = span->nulls;
		span->nulls += format->null_bytes;
	}
	if (span->addresses == NULL)
	{
		span->first += span->row_bytes > 0 ? span->row_bytes : *span->lengths++;
		gpusort_prefetch(row + GPUSORT_PLACE_BYTES_AHEAD);
	}
	else if (span->nrows > 0)
	{
		span->first = *++span->addresses;
		if (span->nrows > GPUSORT_PLACE_ROWS_AHEAD)
			gpusort_prefetch(span->addresses[GPUSORT_PLACE_ROWS_AHEAD]);
	}
	gpusort_row_format_read_fast(format, row, bitmap, slot->tts_values, slot->tts_isnull);
}

/* ----------------------------------------------------------------
 *		order
 * ----------------------------------------------------------------
 */

/*
 * Have the check look at the next row that was not sorted together with the row before it:
 * with which a range begins that processes have shared.
 */
static void
aim_check(GsSort *sort)
{
	const GsRanges *ranges = sort->ranges;

	/* The row with that number is at a position counted from 1. */
	if (sort->location == GS_ROWS_SHARED && ranges->start + ranges->rows.nrows > 0)
		gpusort_checked_rows_aim(&sort->checked,
								 ranges->start + ranges->rows.nrows + 1 - sort->position);
}

void
gpusort_sort_begin_reading(GsSort *sort)
{
	const GsSortSpec *spec = sort->spec;
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	leave_span(sort);
	gpusort_checked_rows_begin(&sort->checked, spec->check, spec->tupdesc,
							   spec->tuple_attno > 0, gpusort_sort_is_lasting(sort));
	MemoryContextSwitchTo(caller);
	if (sort->checked.check != NULL)
		aim_check(sort);
}

/* Compare a row with the one before it, or keep it for the row after it. */
static pg_noinline bool
compare_row(GsSort *sort, TupleTableSlot *slot)
{
	bool		in_order;

	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	in_order = gpusort_checked_rows_compare(&sort->checked, slot->tts_values,
											slot->tts_isnull);
	aim_check(sort);
	return in_order;
}

/* Is the row that is returned in order, as far as that is checked? */
static inline bool
is_in_order(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	GsCheckedRows *checked = &sort->checked;

	if (unlikely(!forward))
	{
		gpusort_checked_rows_forget(checked);
		return true;
	}
	return likely(gpusort_checked_rows_first(checked, slot->tts_values, slot->tts_isnull)) &&
		(gpusort_checked_rows_skip(checked) || compare_row(sort, slot));
}

/*
 * A row is not in order.  The result of a query is wrong, and some of it may have been used
 * already; but an index build can start over.
 */
static pg_noinline void
report_wrong_order(GsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	sort->wrong_encoding = gpusort_checked_rows_distrust(&sort->checked);
	MemoryContextSwitchTo(caller);
	if (sort->spec->index_build)
		return;
	gpusort_stats_count_reason(GS_REASON_WRONG_ORDER);
	gpusort_stats_count_error();
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("sorted rows are not in order"),
			 errdetail("They were sorted by type %s.", sort->wrong_encoding),
			 errhint("Run the query again. PostgreSQL itself sorts by this type until the %s.",
					 gpusort_distrust_is_shared() ? "server restarts" : "session ends")));
}

bool
gpusort_sort_check_in_place(GsSort *sort, const Datum *values, const bool *isnull)
{
	if (sort->checked.check == NULL ||
		likely(gpusort_checked_rows_add(&sort->checked, values, isnull)))
		return true;
	report_wrong_order(sort);
	return false;
}

const char *
gpusort_sort_wrong_encoding(const GsSort *sort)
{
	return sort->wrong_encoding;
}

/* ----------------------------------------------------------------
 *		the cursor
 * ----------------------------------------------------------------
 */

/*
 * The cursor is at the last row that is known.  If this process returns ranges of its own, take
 * the next rows.  Returns false if there are none.
 */
static pg_noinline bool
take_more_rows(GsSort *sort)
{
	if (sort->spec->group_keys == 0 || sort->ranges == NULL)
		return false;
	sort->nrows += gpusort_ranges_advance(sort->ranges);
	if (sort->location == GS_ROWS_ON_GPU)
		sort->gpu_offset = sort->ranges->rows.position - sort->position;
	return sort->position < sort->nrows;
}

/*
 * Move the cursor.  Returns false if it is then before the first or after the last row.  The span
 * is left, or it has ended.
 */
static inline bool
move_cursor(GsSort *sort, bool forward)
{
	if (forward)
	{
		if (sort->position >= sort->nrows && !take_more_rows(sort))
		{
			if (unlikely(sort->ndropped > 0))
				elog(ERROR, "more rows are asked of a sort than it was to keep");
			sort->position = sort->nrows + 1;
			return false;
		}
		sort->position++;
		return true;
	}
	leave_span(sort);
	if (sort->position <= 1)
	{
		sort->position = 0;
		return false;
	}
	sort->position--;
	return true;
}

/* There is no row: clear a virtual slot.  Returns false. */
static bool
no_row(TupleTableSlot *slot)
{
	slot->tts_flags |= TTS_FLAG_EMPTY;
	slot->tts_nvalid = 0;
	return false;
}

/* Return the row that the slot's arrays have.  Returns false if it is not in order. */
static pg_attribute_always_inline bool
return_row(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	if (unlikely(!is_in_order(sort, forward, slot)))
	{
		report_wrong_order(sort);
		return no_row(slot);
	}
	sort->returned = true;
	sort->progress->rows_returned = sort->position;
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
	return true;
}

/* gpusort_sort_next() of rows that are not in a span. */
static pg_noinline bool
next_elsewhere(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	int64		before = sort->position;

	/* Usually a virtual slot has nothing to free. */
	if (unlikely(TTS_SHOULDFREE(slot)))
		ExecClearTuple(slot);
	if (unlikely(!move_cursor(sort, forward)))
		return no_row(slot);
	if (forward && sort->position > sort->no_span && find_span(sort))
		read_span(sort, slot);
	else if (unlikely(!get_row(sort, sort->position - 1, slot)))
	{
		/* Undo the move: this row is asked for again. */
		sort->position = before;
		gpusort_sort_enter(sort, GS_SORT_LOST);
		gpusort_sort_check_restart(sort);
		return no_row(slot);
	}
	return return_row(sort, forward, slot);
}

bool
gpusort_sort_next(GsSort *sort, bool forward,
				  TupleTableSlot *slot)
{
	if (!forward || sort->span.nrows == 0 || unlikely(TTS_SHOULDFREE(slot)))
		return next_elsewhere(sort, forward, slot);
	sort->position++;
	read_span(sort, slot);
	return return_row(sort, true, slot);
}

void
gpusort_sort_skip(GsSort *sort, uint32 n)
{
	leave_span(sort);
	sort->position += n;
	sort->no_span = sort->position + FEW_ROWS;
	sort->returned = true;
	sort->progress->rows_returned = sort->position;
}

/* Move the cursor elsewhere, after the row at a position, counted from 1. */
static void
set_position(GsSort *sort, int64 position)
{
	leave_span(sort);
	sort->position = position;
	gpusort_checked_rows_forget(&sort->checked);
}

void
gpusort_sort_go_to(GsSort *sort, int64 position)
{
	if (sort->location == GS_ROWS_SHARED)
		gpusort_ranges_jump(sort->ranges, position);
	set_position(sort, position);
	sort->returned = true;
}

int64
gpusort_sort_count(const GsSort *sort)
{
	return sort->nrows;
}

bool
gpusort_sort_is_cut(const GsSort *sort)
{
	return sort->ndropped > 0;
}

bool
gpusort_sort_is_lost(const GsSort *sort)
{
	return sort->state == GS_SORT_LOST;
}

bool
gpusort_sort_can_rewind(const GsSort *sort)
{
	return sort->spec->random_access || sort->location == GS_ROWS_ON_GPU ||
		gpusort_sort_is_lasting(sort);
}

void
gpusort_sort_mark(GsSort *sort)
{
	if (sort->marked != NULL)
		sort->marked->adding = false;
	sort->mark = sort->position;
}

/* Rows on a GPU will be read again from the mark on, which may be far away. */
static void
restore_gpu_rows(GsSort *sort)
{
	if (gpusort_gpu_rows_is_near(&sort->gpu, sort->position))
		return;
	if (sort->marked == NULL)
		sort->marked = marked_rows_create(sort);
	marked_rows_restore(sort->marked, sort->position);
}

void
gpusort_sort_restore(GsSort *sort)
{
	set_position(sort, sort->mark);
	if (sort->location == GS_ROWS_ON_GPU)
		restore_gpu_rows(sort);
}

void
gpusort_sort_rescan(GsSort *sort)
{
	set_position(sort, 0);
	sort->mark = 0;
}

/* ----------------------------------------------------------------
 *		the first rows of each partition only, for a window that wants no more
 *
 * A window with row_number() <= 3 drops all further rows of a partition.  Where rows can be read in
 * any order, as in memory, the end of the partition is searched for, so that most of these rows are
 * not read at all.  If partitions turn out to be so short that hardly any row is skipped, the
 * window gets all rows: comparing their keys would take longer.
 * ----------------------------------------------------------------
 */

/* Each time this many rows have been returned, go on only if a third of all rows were skipped. */
#define ROWS_PER_DECISION	1024

struct GsPartitionRows
{
	GsGroupKeys *partition;		/* of the row that was returned last */
	TupleTableSlot *slot;		/* for a row that is looked at */
	int64		returned;		/* rows of the partition; 0 before the first */
	int64		nreturned;		/* rows since the last decision */
	int64		nskipped;
	bool		given_up;		/* are all rows returned? */
};

static GsPartitionRows *
create_partition_rows(GsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	GsPartitionRows *rows = palloc0(sizeof(GsPartitionRows));

	rows->partition = gpusort_group_keys_create(sort->spec, sort->spec->partition_keys);
	rows->slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
	return rows;
}

static bool
is_in_partition(GsPartitionRows *rows, TupleTableSlot *slot)
{
	return gpusort_group_keys_match(rows->partition, slot->tts_values, slot->tts_isnull);
}

/* Returns how many rows after the cursor can be read in any order, without moving it. */
static int64
rows_at_hand(const GsSort *sort)
{
	int64		end = sort->nrows;

	if (sort->location == GS_ROWS_SHARED)
		end = sort->ranges->start + sort->ranges->rows.nrows;
	else if (sort->location == GS_ROWS_ON_GPU && sort->gpu.ties == NULL)
		end = Min(end, gpusort_gpu_session_chunk_end(sort->gpu.session) - sort->gpu_offset);
	else if (sort->location != GS_ROWS_IN_MEMORY)
		return 0;
	return Max(end - sort->position, 0);
}

/* Is row n after the cursor, from 0, in the partition? */
static bool
look_at(GsSort *sort, int64 n)
{
	GsPartitionRows *rows = sort->partition_rows;

	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_ROW);
	return get_row(sort, sort->position + n, rows->slot) && is_in_partition(rows, rows->slot);
}

/*
 * Move the cursor to the end of the partition, as far as rows are at hand.  Many partitions end
 * soon, so look one row ahead, then two more, four, and so on.
 */
static void
skip_rows(GsSort *sort)
{
	int64		end = rows_at_hand(sort);
	int64		low = 0;		/* rows that are known to be in the partition */

	for (int64 step = 1; low < end; step *= 2)
	{
		int64		last = Min(low + step, end) - 1;

		if (!look_at(sort, last))
		{
			end = last;
			break;
		}
		low = last + 1;
	}
	while (low < end)
	{
		int64		middle = low + (end - low) / 2;

		if (look_at(sort, middle))
			low = middle + 1;
		else
			end = middle;
	}
	gpusort_sort_skip(sort, (uint32) low);
	sort->partition_rows->nskipped += low;
}

/* A row is returned: decide whether to go on, if enough have been. */
static inline void
count_row(GsPartitionRows *rows)
{
	if (++rows->nreturned < ROWS_PER_DECISION)
		return;
	rows->given_up = rows->nskipped < rows->nreturned / 2;
	rows->nreturned = rows->nskipped = 0;
}

/* The next row is of another partition. */
static void
begin_partition(GsPartitionRows *rows, TupleTableSlot *slot)
{
	gpusort_group_keys_keep(rows->partition, slot->tts_values, slot->tts_isnull);
	rows->returned = 0;
}

bool
gpusort_sort_next_of_partition(GsSort *sort, TupleTableSlot *slot)
{
	GsPartitionRows *rows = sort->partition_rows;

	if (unlikely(rows == NULL))
		rows = sort->partition_rows = create_partition_rows(sort);
	if (sort->position == 0)
		rows->returned = 0;		/* also when the sort is read again */
	while (!rows->given_up)
	{
		CHECK_FOR_INTERRUPTS();
		if (rows->returned == sort->spec->partition_rows)
			skip_rows(sort);
		if (!gpusort_sort_next(sort, true, slot))
			return false;
		if (rows->returned == 0 || !is_in_partition(rows, slot))
			begin_partition(rows, slot);
		if (rows->returned < sort->spec->partition_rows)
		{
			rows->returned++;
			count_row(rows);
			return true;
		}
		rows->nskipped++;
	}
	return gpusort_sort_next(sort, true, slot);
}
