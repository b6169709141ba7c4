/*-------------------------------------------------------------------------
 *
 * sink_producer.c
 *		Puts a process's rows into the GPU session of a parallel sort.
 *
 * The leader's sort has opened a session.  Each process, also the leader, attaches to it and
 * adds its share of the rows.
 *
 * When the device is full, the leader has the rows that are there written as a run.  Each
 * process sorts the rows that were refused and the rest of its input as it would without a GPU
 * (sink_rows.c), and all of them merge their runs.
 * Nobody may merge while another process could still write a run, so each process enters the
 * merge before its first row, and leaves it after its last one if it has no runs.
 *
 * Any other failure loses the rows, and the GpuSort has the input read again.
 *
 * The sink (sink_node.c) calls this when it is first executed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"

#include "exec/sink_producer.h"
#include "sort/disk/shared_merge.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/shared_sort.h"
#include "work.h"

/* Returns the merge of the runs of all processes, if they may merge; or NULL. */
static GsSharedMerge *
find_merge(const GsSinkRows *rows)
{
	if (rows->shared->shared_sort == NULL)
		return NULL;
	return gpusort_shared_merge_find(gpusort_shared_sort_extra(rows->shared->shared_sort));
}

/*
 * Before the first row, if there can be runs: have the other processes wait for ours.
 * Returns false if all rows have been added.
 */
static bool
expect_overflow(GsSinkRows *rows)
{
	GsSharedMerge *merge;

	if (!rows->shared->may_overflow)
		return true;
	if (!IsParallelWorker())
		return gpusort_sort_attach(rows->sort);
	merge = find_merge(rows);
	return merge == NULL || gpusort_shared_merge_enter(merge);
}

/*
 * After the last row: there are no runs of this process.  'failure' says why rows are missing,
 * or is GS_FALLBACK_NONE.
 */
static void
end_without_overflow(GsSinkRows *rows, GsFallback failure)
{
	bool		lost = failure != GS_FALLBACK_NONE;
	GsSharedMerge *merge;

	if (lost)
		pg_atomic_write_u32(&rows->shared->failure, failure);
	if (!rows->shared->may_overflow)
		return;
	if (!IsParallelWorker())
	{
		if (lost)
			gpusort_sort_fail(rows->sort, failure);
		else
			gpusort_sort_leave(rows->sort);
		return;
	}
	merge = find_merge(rows);
	if (merge != NULL)
		gpusort_shared_merge_leave(merge, lost);
}

/*
 * Add this process's share of the rows to the GPU session.  Returns false after a failure, or if
 * it is full.  Then rows->refused is the row that could not be added, if any.
 */
static bool
add_rows(GsSinkRows *rows, GsGpuSession *session)
{
	TupleTableSlot *slot;

	while ((slot = gpusort_sink_rows_read(rows)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (!gpusort_gpu_session_put(session, slot->tts_values, slot->tts_isnull))
		{
			rows->refused = slot;
			return false;
		}
		rows->nrows++;
	}
	return gpusort_gpu_session_flush_shared(session);
}

/*
 * Returns the next row after an overflow of the GPU session: first the rows that it has not
 * taken, most of which have been counted, then those that have not been read.
 */
static TupleTableSlot *
next_left_row(GsSinkRows *rows)
{
	TupleTableSlot *slot = rows->refused;

	if (slot != NULL)
	{
		rows->refused = NULL;
		rows->nrows++;
		return slot;
	}
	if (rows->full != NULL)
	{
		slot = ExecClearTuple(rows->left);
		if (gpusort_gpu_session_take_left(rows->full, slot->tts_values, slot->tts_isnull))
			return ExecStoreVirtualTuple(slot);
		if (!gpusort_gpu_session_is_full(rows->full))
			rows->failure = gpusort_gpu_session_failure(rows->full);
		rows->full = NULL;
	}
	return gpusort_sink_rows_next(rows);
}

/* The GPU has no room for more rows: sort the others. */
static void
overflow(GsSinkRows *rows, GsGpuSession *session, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);

	rows->full = session;
	rows->left = MakeSingleTupleTableSlot(rows->spec.tupdesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
	if (IsParallelWorker())
		gpusort_sink_rows_sort(rows, context, next_left_row);
	else if (gpusort_sort_overflow(rows->sort))
		gpusort_sink_rows_fill_sort(rows, next_left_row);
	else
		gpusort_sink_rows_give_up(rows, rows->sort);
	ExecDropSingleTupleTableSlot(rows->left);
	rows->full = NULL;
}

/* Put the rows into the GPU session, and those for which there is no room into runs. */
static void
fill_gpu_session(GsSinkRows *rows, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsSinkReport report = {.sorted = false};
	GsGpuSession *session;
	bool		added;

	rows->spec.key_plan = gpusort_sink_rows_key_plan(rows, GPUSORT_GPU_STRING_WORDS);
	session = gpusort_gpu_session_attach(&rows->spec, rows->shared->handle);
	MemoryContextSwitchTo(caller);
	added = add_rows(rows, session);
	if (rows->shared->may_overflow && gpusort_gpu_session_is_full(session))
	{
		overflow(rows, session, context);
		return;
	}
	end_without_overflow(rows, added ? GS_FALLBACK_NONE :
						 gpusort_gpu_session_failure(session));
	if (IsParallelWorker())
		gpusort_sink_rows_publish(rows, &report);
}

void
gpusort_sink_producer_put(GsSinkRows *rows, MemoryContext context)
{
	if (expect_overflow(rows))
		fill_gpu_session(rows, context);
}
