/*-------------------------------------------------------------------------
 *
 * gpu_rows.c
 *		The rows of a sort that are on a GPU: a session, and the order of its ties.
 *
 * A device knows nothing about comparators.  It tells which rows are ties, whose order its keys
 * leave open: see device_key.c.  Rows with equal keys are in the order of arrival.  This file puts
 * ties into order as rows are read.  A row that has no ties is returned as it is.  When one has,
 * the ties of its chunk from there on, a batch, are copied to a sort of their own on the host,
 * which can use further words of the keys, and temporary files.  Tied rows have the same order
 * there as their positions here, so the next one of them is the next one there.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_rows.h"
#include "work.h"

struct GsGpuTies
{
	const GsSortSpec *spec;
	GsGpuSession *gpu;
	MemoryContext context;
	Datum	   *values;			/* of a row that is copied */
	bool	   *isnull;

	/*
	 * The batch: the groups of ties at positions start to end - 1.  There may
	 * be rows without ties between them.  Initially it is empty.
	 */
	int64		start;
	int64		end;
	bool		single;			/* is it one group? */
	MemoryContext batch_context;	/* NULL if there is none */
	GsSortSpec	batch_spec;
	GsCpuSort	batch;			/* of its rows with ties */

	/* The row that is expected to be read next. */
	int64		next;
	int64		number;			/* of it in the batch, if it has ties */
	bool		tied;			/* is it a tie of the row before? */
};

/*
 * Create a reader in the current memory context.  Its batch must be closed before that context
 * is deleted, except after an error.
 */
static GsGpuTies *
create_ties(const GsSortSpec *spec, GsGpuSession *gpu)
{
	GsGpuTies  *ties = palloc0(sizeof(GsGpuTies));

	ties->spec = spec;
	ties->gpu = gpu;
	ties->context = CurrentMemoryContext;
	ties->values = palloc0(spec->tupdesc->natts * sizeof(Datum));
	ties->isnull = palloc0(spec->tupdesc->natts * sizeof(bool));
	return ties;
}

/* ----------------------------------------------------------------
 *		batches
 * ----------------------------------------------------------------
 */

/* 'chunk_end' is the position after the chunk in which it begins. */
static void
begin_batch(GsGpuTies *ties, int64 chunk_end)
{
	GsSortSpec *spec = &ties->batch_spec;
	MemoryContext caller;

	*spec = *ties->spec;
	spec->bound = 0;
	spec->team = NULL;
	spec->group_keys = 0;
	spec->expected_rows = chunk_end - ties->start;
	spec->memory = gpusort_sort_spec_memory(spec) - gpusort_sort_spec_marked_memory(spec);
	ties->batch_context = AllocSetContextCreate(ties->context, "pg_gpusort ties",
												ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(ties->batch_context);
	gpusort_cpu_sort_init(&ties->batch, spec, ties->batch_context);
	gpusort_cpu_sort_begin_rows(&ties->batch, NULL);
	MemoryContextSwitchTo(caller);
}

static void
close_batch(GsGpuTies *ties)
{
	if (ties->batch_context != NULL)
	{
		gpusort_cpu_sort_end(&ties->batch);
		MemoryContextDelete(ties->batch_context);
	}
	ties->batch_context = NULL;
	ties->start = ties->end = 0;
}

/* Copy the row that was read. */
static void
put_row(GsGpuTies *ties)
{
	GsCpuSort  *batch = &ties->batch;

	if (gpusort_cpu_sort_put(batch, ties->values, ties->isnull))
		return;
	if (batch->file == NULL)
		gpusort_cpu_sort_overflow(batch, gpusort_memory_sort_refusal(batch->rows));
	gpusort_cpu_sort_add(batch, ties->values, ties->isnull);
}

/* Copy the rows of the group that begins at ties->end.  Returns false if the rows are lost. */
static bool
put_group(GsGpuTies *ties)
{
	int			tie;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_gpu_session_get(ties->gpu, ties->end, ties->values, ties->isnull))
			return false;
		gpusort_tuple_row_get_keys(ties->spec, ties->values, ties->isnull);
		put_row(ties);
		tie = gpusort_gpu_session_is_tie(ties->gpu, ties->end++);
	} while (tie > 0);
	return tie == 0;
}

/* May the batch take more groups?  It leaves memory for one that is as large as the others. */
static bool
has_room(const GsGpuTies *ties)
{
	return ties->batch.file == NULL &&
		gpusort_memory_sort_bytes(ties->batch.rows) < ties->batch_spec.memory / 2;
}

/*
 * Does a group begin at a position, or after it, and end in the chunk that is being read?  Sets
 * *start to where it begins.
 */
static bool
find_group(const GsGpuTies *ties, int64 position, int64 chunk_end, int64 *start)
{
	while (position < chunk_end && gpusort_gpu_session_is_tie(ties->gpu, position) == 0)
		position++;
	*start = position;
	while (position < chunk_end && gpusort_gpu_session_is_tie(ties->gpu, position) > 0)
		position++;
	return position < chunk_end;
}

/*
 * Copy the group that begins at ties->start, and those that follow it in its chunk.  Returns false
 * if the rows are lost.
 */
static bool
fill_batch(GsGpuTies *ties, int64 chunk_end)
{
	int64		start = ties->start;
	int			ngroups = 0;

	do
	{
		ties->end = start;
		if (!put_group(ties))
			return false;
		ngroups++;
	} while (ties->end < chunk_end && has_room(ties) &&
			 find_group(ties, ties->end, chunk_end, &start));
	ties->single = ngroups == 1;
	return true;
}

/* Open the batch whose first group begins at a position.  Returns false if the rows are lost. */
static bool
open_batch(GsGpuTies *ties, int64 start)
{
	int64		chunk_end = gpusort_gpu_session_enter(ties->gpu, start);
	MemoryContext caller;
	bool		filled;

	close_batch(ties);
	if (chunk_end < 0)
		return false;
	ties->start = start;
	begin_batch(ties, chunk_end);
	caller = MemoryContextSwitchTo(ties->batch_context);
	filled = fill_batch(ties, chunk_end);
	if (filled)
	{
		gpusort_cpu_sort_sort(&ties->batch);
		gpusort_cpu_sort_perform(&ties->batch);
	}
	MemoryContextSwitchTo(caller);
	if (!filled)
		close_batch(ties);
	return filled;
}

/* ----------------------------------------------------------------
 *		rows in sequence, and elsewhere
 * ----------------------------------------------------------------
 */

/*
 * Sets *start to where the group of a position begins, which is the position itself if it is no tie
 * of the row before.  Returns false if the rows are lost.
 */
static bool
find_start(const GsGpuTies *ties, int64 position, int64 *start)
{
	int			tie = 1;

	*start = position;
	while (*start > 0 && tie > 0)
	{
		CHECK_FOR_INTERRUPTS();
		tie = gpusort_gpu_session_is_tie(ties->gpu, *start - 1);
		if (tie > 0)
			--* start;
	}
	return tie >= 0;
}

/*
 * Does the next row, which is in the batch, have a tie after it?  Returns 1 or 0, or -1 if the rows
 * are lost.
 */
static int
next_is_tie(const GsGpuTies *ties)
{
	/* The chunks of a long group are not read again to find that out. */
	if (ties->single)
		return ties->next + 1 < ties->end;
	return gpusort_gpu_session_is_tie(ties->gpu, ties->next);
}

/* Go on to a position in the batch.  Returns false if the rows are lost. */
static bool
advance(GsGpuTies *ties, int64 position)
{
	while (ties->next < position)
	{
		int			tie = next_is_tie(ties);

		if (tie < 0)
			return false;
		ties->number += tie > 0 || ties->tied;
		ties->tied = tie > 0;
		ties->next++;
	}
	return true;
}

/* Expect the first row of the batch next. */
static void
rewind_batch(GsGpuTies *ties)
{
	ties->next = ties->start;
	ties->number = 0;
	ties->tied = false;
}

/* Can the rows of the batch be read from before ties->next on? */
static bool
can_rewind(const GsGpuTies *ties)
{
	return ties->batch.file == NULL || ties->spec->random_access;
}

/* Have the row at a position be the next one.  Returns false if the rows are lost. */
static bool
move_to(GsGpuTies *ties, int64 position)
{
	bool		forward = position > ties->next && ties->next >= ties->start;
	int64		start;

	if (position < ties->start || position >= ties->end || !(forward || can_rewind(ties)))
	{
		if (!find_start(ties, position, &start))
			return false;
		close_batch(ties);
		ties->tied = false;
		ties->next = position;
		if (start == position)
			return true;
		if (!open_batch(ties, start))
			return false;
		forward = false;
	}
	if (!forward)
		rewind_batch(ties);
	return advance(ties, position);
}

/* Read the next row, which has ties.  Returns false if the rows are lost. */
static bool
get_tied(GsGpuTies *ties, Datum *values, bool *isnull)
{
	int64		number;

	if (ties->next >= ties->end)
	{
		if (!open_batch(ties, ties->next))
			return false;
		rewind_batch(ties);
	}
	number = ties->number;
	if (!advance(ties, ties->next + 1))
		return false;
	gpusort_cpu_sort_get(&ties->batch, number, values, isnull);
	return true;
}

bool
gpusort_gpu_ties_get(GsGpuTies *ties, int64 position, Datum *values,
					 bool *isnull)
{
	if (unlikely(position != ties->next) && !move_to(ties, position))
		return false;
	if (likely(!ties->tied))
	{
		int			read = gpusort_gpu_session_get_untied(ties->gpu, position, values, isnull);

		ties->next += read > 0;
		if (read != 0)
			return read > 0;
	}
	return get_tied(ties, values, isnull);
}

/*
 * See gpusort_gpu_session_in_place(): false as well in a group of ties that has not been
 * returned as a whole.
 */
static bool
ties_in_place(const GsGpuTies *ties, int64 position, GsRowsInPlace *rows)
{
	return position == ties->next && !ties->tied &&
		gpusort_gpu_session_in_place(ties->gpu, position, rows);
}

/* See gpusort_gpu_session_is_near(): false as well if ties would be sorted again. */
static bool
ties_are_near(const GsGpuTies *ties, int64 position)
{
	return position >= (can_rewind(ties) ? ties->start : ties->end) &&
		gpusort_gpu_session_is_near(ties->gpu, position);
}

/* ----------------------------------------------------------------
 *		the rows as a whole
 * ----------------------------------------------------------------
 */

bool
gpusort_gpu_rows_begin(GsGpuRows *rows, const GsSortSpec *spec, GsReason *reason)
{
	MemoryContext caller;

	rows->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort rows on a GPU",
										  ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(rows->context);
	rows->session = gpusort_gpu_session_create(spec, reason);
	MemoryContextSwitchTo(caller);
	if (rows->session == NULL)
		gpusort_gpu_rows_end(rows);
	return rows->session != NULL;
}

bool
gpusort_gpu_rows_sort(GsGpuRows *rows, const GsSortSpec *spec, bool sorted)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	bool		kept;

	kept = sorted ? gpusort_gpu_session_join(rows->session) :
		gpusort_gpu_session_sort(rows->session);
	if (kept && gpusort_gpu_session_has_ties(rows->session))
		rows->ties = create_ties(spec, rows->session);
	MemoryContextSwitchTo(caller);
	return kept;
}

void
gpusort_gpu_rows_seek(const GsGpuRows *rows, int64 position)
{
	GsGpuTies  *ties = rows->ties;

	if (ties == NULL)
		return;
	close_batch(ties);
	ties->next = position;
	ties->tied = false;
}

/* Write the rows that the device has refused, in the order of arrival. */
static void
write_rest(const GsGpuRows *rows, GsCpuSort *sort, TupleTableSlot *slot)
{
	while (gpusort_gpu_session_take_rest(rows->session, slot->tts_values, slot->tts_isnull))
		gpusort_cpu_sort_add(sort, slot->tts_values, slot->tts_isnull);
	gpusort_cpu_sort_write_rows(sort);
}

/* Write the rows on the device as the first run.  Returns false if rows are lost. */
static bool
write_run(const GsGpuRows *rows, GsCpuSort *sort, TupleTableSlot *slot)
{
	int64		nrows = gpusort_gpu_session_count(rows->session);

	gpusort_run_file_begin(sort->file, false);
	for (int64 i = 0; i < nrows; i++)
	{
		if (!gpusort_gpu_rows_get(rows, i, slot->tts_values, slot->tts_isnull))
			return false;
		gpusort_run_file_put(sort->file, slot->tts_values, slot->tts_isnull);
	}
	gpusort_cpu_sort_end_run(sort, 0);
	return true;
}

bool
gpusort_gpu_rows_write(const GsGpuRows *rows, GsCpuSort *sort)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	bool		written;

	/*
	 * Refused rows occupy pool chunks that reading needs, so write them
	 * first.
	 */
	write_rest(rows, sort, slot);
	written = write_run(rows, sort, slot);
	ExecDropSingleTupleTableSlot(slot);
	return written;
}

bool
gpusort_gpu_rows_is_near(const GsGpuRows *rows, int64 position)
{
	return rows->ties != NULL ? ties_are_near(rows->ties, position) :
		gpusort_gpu_session_is_near(rows->session, position);
}

bool
gpusort_gpu_rows_in_place(const GsGpuRows *rows, int64 position, GsRowsInPlace *in_place)
{
	return rows->ties != NULL ? ties_in_place(rows->ties, position, in_place) :
		gpusort_gpu_session_in_place(rows->session, position, in_place);
}

void
gpusort_gpu_rows_pass(const GsGpuRows *rows, uint32 n)
{
	/*
	 * They have no ties, so they are not in a batch, even if its groups are
	 * around them.
	 */
	if (rows->ties != NULL)
		rows->ties->next += n;
}

void
gpusort_gpu_rows_close(const GsGpuRows *rows)
{
	if (rows->ties != NULL)
		close_batch(rows->ties);
}

void
gpusort_gpu_rows_end(GsGpuRows *rows)
{
	gpusort_gpu_rows_close(rows);
	if (rows->context != NULL)
		MemoryContextDelete(rows->context);
	memset(rows, 0, sizeof(*rows));
}
