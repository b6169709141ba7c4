/*-------------------------------------------------------------------------
 *
 * sink_rows.c
 *		Reads a process's share of the rows below a Gather, and puts them into a sort.
 *
 * Without a GPU, the leader adds its rows to the sort of the GpuSort above, which will return all
 * rows.  A worker has a sort of its own.  That takes part in sorting the rows of all processes
 * together in memory that they share, or writes them as runs, and ends.
 *
 * With a GPU, the leader's sort has opened a session.  Each process, also the leader, attaches to
 * it and adds its share of the rows.  When the device is full, the leader has the rows that are
 * there written as a run.  Each process sorts the rows that were refused and the rest of its input
 * as it would without a GPU, and all of them merge their runs.  Nobody may merge while another
 * process could still write a run, so each is attached to the team from its first row on; a worker
 * leaves it after its last one if it has no runs.  Any other failure loses the rows, and the
 * GpuSort has the input read again.
 *
 * The sink (sink_node.c) calls this when it is first executed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"

#include "exec/sink_rows.h"
#include "key/key_plan.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort.h"
#include "sort/team.h"
#include "work.h"

/* Returns the next of the rows that go to a sort, or NULL. */
typedef TupleTableSlot *(*GsNextRow) (GsSinkRows *rows);

/* Have any process's rows been lost, so that all of the input must be read again? */
static GsFallback
find_failure(const GsSinkRows *rows)
{
	return rows->failure != GS_FALLBACK_NONE ? rows->failure :
		(GsFallback) pg_atomic_read_u32(&rows->shared->failure);
}

static inline bool
has_failed(const GsSinkRows *rows)
{
	return find_failure(rows) != GS_FALLBACK_NONE;
}

/*
 * Rows of this process's sort are lost, or those of another one: publish that, and leave what
 * the processes do together, so that nobody waits for this one.
 */
static void
give_up(GsSinkRows *rows, GsSort *sort)
{
	GsFallback	failure = find_failure(rows);

	if (failure == GS_FALLBACK_NONE)
		failure = gpusort_sort_loss(sort);
	pg_atomic_write_u32(&rows->shared->failure, failure);
	rows->ahead = false;
	gpusort_sort_fail(sort, failure);
}

/* Returns the next row of this process's share, or NULL. */
static TupleTableSlot *
read_row(GsSinkRows *rows)
{
	TupleTableSlot *slot = NULL;

	if (!rows->input_ended)
		slot = gpusort_row_source_next(rows->source);
	rows->input_ended = TupIsNull(slot);
	return rows->input_ended ? NULL : slot;
}

/* GsNextRow.  Counts the row, and also returns NULL once any process has lost rows. */
static TupleTableSlot *
next_row(GsSinkRows *rows)
{
	TupleTableSlot *slot = NULL;

	/* If rows are lost, no more are wanted. */
	if (likely(!has_failed(rows)))
		slot = read_row(rows);
	if (slot != NULL)
		rows->nrows++;
	return slot;
}

/* Make a key plan that encodes strings in that number of words. */
static const GsKeyPlan *
plan_keys(const GsSinkRows *rows, int string_words)
{
	return gpusort_sort_plan_leader_keys(&rows->spec, string_words);
}

/* Add the rows that next() returns to a sort.  Returns false if rows of any process are lost. */
static bool
add_to_sort(GsSinkRows *rows, GsSort *sort, GsNextRow next)
{
	TupleTableSlot *slot;

	while ((slot = next(rows)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(sort, slot))
			return false;
	}
	return !has_failed(rows);
}

/* In the leader: put the rows that next() returns into its own sort, and sort them there. */
static void
fill_sort(GsSinkRows *rows, GsNextRow next)
{
	if (!add_to_sort(rows, rows->sort, next) ||
		!gpusort_sort_end_adding(rows->sort, &rows->ahead))
		give_up(rows, rows->sort);
}

/* In a worker: report to the leader. */
static void
publish(GsSinkRows *rows, GsSinkReport *report)
{
	report->nrows = rows->nrows;
	gpusort_worker_reports_publish(rows->reports, report);
}

/* In a worker that finds that all rows have been added by others. */
static void
publish_late(GsSinkRows *rows)
{
	GsSinkReport report = {.sorted = false};

	publish(rows, &report);
}

/*
 * In a worker: sort the rows that next() returns together with the other processes, or else
 * alone, and write them as a run.
 */
static void
sort_rows(GsSinkRows *rows, MemoryContext context, GsNextRow next)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsRunTarget target = {
		.set = rows->shared->runs,
		.producer = ParallelWorkerNumber
	};
	GsSortSpec	spec = rows->spec;
	GsSinkReport report = {.sorted = true};
	GsSort	   *sort;

	spec.team = rows->shared->team;
	spec.process = ParallelWorkerNumber + 1;
	spec.attached = rows->shared->mode == GS_SINK_GPU;
	spec.key_plan = plan_keys(rows, spec.team == NULL ? 1 :
							  gpusort_team_string_words(spec.team));
	spec.target = &target;
	spec.nested = true;
	sort = gpusort_sort_begin(&spec);
	MemoryContextSwitchTo(caller);
	if (!gpusort_sort_attach(sort))
		publish_late(rows);
	else if (add_to_sort(rows, sort, next) && gpusort_sort_finish(sort))
	{
		gpusort_sort_report(sort, &report.sort);
		report.run = *gpusort_sort_shared_run(sort);
		publish(rows, &report);
	}
	else
		give_up(rows, sort);
	gpusort_sort_end(sort);
}

/* In a worker: sort all rows of its share; in the leader: add them to its sort. */
static void
put_without_gpu(GsSinkRows *rows, MemoryContext context)
{
	if (IsParallelWorker())
		sort_rows(rows, context, next_row);
	else if (gpusort_sort_attach(rows->sort))
		fill_sort(rows, next_row);
}

/* ----------------------------------------------------------------
 *		a GPU session
 * ----------------------------------------------------------------
 */

/* Returns the team of the processes if they may have runs to merge, or NULL. */
static GsTeam *
find_team(const GsSinkRows *rows)
{
	return rows->shared->may_overflow ? rows->shared->team : NULL;
}

/*
 * Before the first row: have the other processes wait for runs of this one.  Returns false if all
 * rows have been added.
 */
static bool
expect_overflow(GsSinkRows *rows)
{
	GsTeam	   *team = find_team(rows);

	if (team == NULL)
		return true;
	return IsParallelWorker() ? gpusort_team_attach(team) : gpusort_sort_attach(rows->sort);
}

/*
 * After the last row, in a worker: it has no runs.  'failure' says why rows are missing, or is
 * GS_FALLBACK_NONE.
 */
static void
leave_without_runs(GsSinkRows *rows, GsFallback failure)
{
	GsTeam	   *team = find_team(rows);
	GsSinkReport report = {.sorted = false};

	if (failure != GS_FALLBACK_NONE)
		pg_atomic_write_u32(&rows->shared->failure, failure);
	if (team != NULL && failure != GS_FALLBACK_NONE)
		gpusort_team_fail(team);
	else if (team != NULL)
		gpusort_team_leave(team);
	publish(rows, &report);
}

/*
 * The same in the leader.  It waits for the others if these may have runs; otherwise the GpuSort
 * does, before it finishes the sort.
 */
static void
end_without_runs(GsSinkRows *rows, GsFallback failure)
{
	rows->failure = failure;
	if (failure != GS_FALLBACK_NONE ||
		(find_team(rows) != NULL && !gpusort_sort_end_adding(rows->sort, &rows->ahead)))
		give_up(rows, rows->sort);
}

/*
 * Add this process's share of the rows to the GPU session.  Returns false after a failure, or if
 * it is full.  Then rows->refused is the row that could not be added, if any.
 */
static bool
add_to_session(GsSinkRows *rows, GsGpuSession *session)
{
	TupleTableSlot *slot;

	while ((slot = read_row(rows)) != NULL)
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
	return next_row(rows);
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
		sort_rows(rows, context, next_left_row);
	else if (gpusort_sort_overflow(rows->sort))
		fill_sort(rows, next_left_row);
	else
		give_up(rows, rows->sort);
	ExecDropSingleTupleTableSlot(rows->left);
	rows->full = NULL;
}

/* Put the rows into the GPU session, and those for which there is no room into runs. */
static void
fill_gpu_session(GsSinkRows *rows, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsGpuSession *session;
	GsFallback	failure;
	bool		added;

	rows->spec.key_plan = plan_keys(rows, GPUSORT_GPU_STRING_WORDS);
	session = gpusort_gpu_session_attach(&rows->spec, rows->shared->handle);
	MemoryContextSwitchTo(caller);
	added = add_to_session(rows, session);
	if (rows->shared->may_overflow && gpusort_gpu_session_is_full(session))
	{
		overflow(rows, session, context);
		return;
	}
	failure = added ? GS_FALLBACK_NONE : gpusort_gpu_session_failure(session);
	if (IsParallelWorker())
		leave_without_runs(rows, failure);
	else
		end_without_runs(rows, failure);
}

void
gpusort_sink_rows_put(GsSinkRows *rows, MemoryContext context)
{
	if (rows->shared->mode != GS_SINK_GPU)
		put_without_gpu(rows, context);
	else if (expect_overflow(rows))
		fill_gpu_session(rows, context);
	else if (IsParallelWorker())
		publish_late(rows);
}
