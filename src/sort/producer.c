/*-------------------------------------------------------------------------
 *
 * producer.c
 *		Adds the rows of one of several processes to a sort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"

#include "key/key_plan.h"
#include "sort/producer.h"
#include "sort/sort_private.h"
#include "sort/team.h"
#include "work.h"

/* Returns the next of the rows that go to a sort, or NULL. */
typedef TupleTableSlot *(*GsNextRow) (GsProducer *producer);

/* ----------------------------------------------------------------
 *		the leader opens its sort
 * ----------------------------------------------------------------
 */

/*
 * Get the handle of the GPU session, so that other processes can add rows of the
 * input to it.  Returns false if there is none, or if the input cannot be read again.
 */
static bool
get_gpu_handle(GsSort *sort, GsClientHandle *handle)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->location != GS_ROWS_ON_GPU)
		return false;

	/* The plan was made for the CPU, and a GPU has become available since. */
	if (gpusort_key_plan_string_words(spec->key_plan) !=
		GPUSORT_GPU_STRING_WORDS)
		return false;

	/*
	 * A row that is too long for a chunk has the input read again once others
	 * have put rows into the session, unless all processes read it.
	 */
	if (!spec->repeatable && spec->group_keys == 0)
		return false;
	sort->fed_by_others = true;
	*handle = gpusort_gpu_session_handle(sort->gpu.session);
	return true;
}

bool
gpusort_parallel_sort_open(GsParallelSort *parallel, GsSort *sort, bool may_overflow,
						   int64 bound)
{
	memset(parallel, 0, sizeof(*parallel));
	pg_atomic_init_u32(&parallel->failure, GS_FALLBACK_NONE);
	parallel->bound = bound;
	parallel->group_keys = sort->spec->group_keys;
	parallel->gpu = get_gpu_handle(sort, &parallel->handle);
	if (parallel->gpu ? may_overflow && gpusort_sort_allow_overflow(sort) :
		gpusort_sort_open(sort))
		parallel->team = sort->participant->team;
	return parallel->gpu || parallel->team != NULL;
}

GsFallback
gpusort_parallel_sort_failure(const GsParallelSort *parallel)
{
	return (GsFallback) pg_atomic_read_u32((pg_atomic_uint32 *) &parallel->failure);
}

/* ----------------------------------------------------------------
 *		rows without a GPU
 * ----------------------------------------------------------------
 */

/* Have any process's rows been lost, so that all of the input must be read again? */
static GsFallback
find_failure(const GsProducer *producer)
{
	return producer->failure != GS_FALLBACK_NONE ? producer->failure :
		gpusort_parallel_sort_failure(producer->parallel);
}

static inline bool
has_failed(const GsProducer *producer)
{
	return find_failure(producer) != GS_FALLBACK_NONE;
}

/*
 * Rows of this process's sort are lost, or those of another one: publish that, and leave what
 * the processes do together, so that nobody waits for this one.
 */
static void
give_up(GsProducer *producer, GsSort *sort)
{
	GsFallback	failure = find_failure(producer);

	if (failure == GS_FALLBACK_NONE)
		failure = gpusort_sort_loss(sort);
	if (failure != GS_FALLBACK_NONE)
		pg_atomic_write_u32(&producer->parallel->failure, failure);
	producer->ahead = false;
	gpusort_sort_fail(sort, failure);
}

/* Returns the next row of this process's share, or NULL. */
static TupleTableSlot *
read_row(GsProducer *producer)
{
	TupleTableSlot *slot = NULL;

	if (!producer->input_ended)
		slot = producer->next(producer->arg);
	producer->input_ended = TupIsNull(slot);
	return producer->input_ended ? NULL : slot;
}

/* GsNextRow.  Counts the row, and also returns NULL once any process has lost rows. */
static TupleTableSlot *
next_row(GsProducer *producer)
{
	TupleTableSlot *slot = NULL;

	/* If rows are lost, no more are wanted. */
	if (likely(!has_failed(producer)))
		slot = read_row(producer);
	if (slot != NULL)
		producer->nrows++;
	return slot;
}

/* Add the rows that next() returns to a sort.  Returns false if rows of any process are lost. */
static bool
add_to_sort(GsProducer *producer, GsSort *sort, GsNextRow next)
{
	TupleTableSlot *slot;

	while ((slot = next(producer)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(sort, slot))
			return false;
	}
	return !has_failed(producer);
}

/*
 * Attach to the sort that this process adds to.  Returns false if it can leave, since all rows have
 * been added.  If each process returns rows, it remains, but adds none.
 */
static bool
attach(GsProducer *producer, GsSort *sort)
{
	if (gpusort_sort_attach(sort))
		return true;
	producer->input_ended = true;
	return producer->spec.group_keys > 0;
}

/* Begin the sort of this worker.  Returns NULL if all rows have been added without it. */
static GsSort *
begin_worker(GsProducer *producer, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsSortSpec *spec = palloc(sizeof(GsSortSpec));
	GsSort	   *sort;

	*spec = producer->spec;
	spec->team = producer->parallel->team;
	spec->process = ParallelWorkerNumber + 1;
	spec->attached = producer->parallel->gpu;
	spec->key_plan = gpusort_sort_plan_leader_keys(&producer->spec,
												   gpusort_team_string_words(spec->team));
	spec->nested = true;
	sort = gpusort_sort_begin(spec);
	MemoryContextSwitchTo(caller);
	if (attach(producer, sort))
		return sort;
	gpusort_sort_end(sort);
	return NULL;
}

/* In the leader: sort the rows that have been 'added', unless others are missing. */
static void
end_leader(GsProducer *producer, bool added)
{
	if (!added || !gpusort_sort_end_adding(producer->sort, &producer->ahead))
		give_up(producer, producer->sort);
}

/* The same in a worker.  They are sorted together with those of the other processes. */
static void
end_worker(GsProducer *producer, GsSort *sort, bool added)
{
	GsProducerReport *report = &producer->report;

	if (added && gpusort_sort_finish(sort))
	{
		if (producer->spec.group_keys > 0)
			(void) gpusort_first_keys_count(sort, &report->counts);
		gpusort_sort_report(sort, &report->sort);
		report->sorted = true;
	}
	else
		give_up(producer, sort);
	gpusort_sort_end(sort);
}

/* In the leader: put the rows that next() returns into its own sort, and sort them there. */
static void
fill_sort(GsProducer *producer, GsNextRow next)
{
	end_leader(producer, add_to_sort(producer, producer->sort, next));
}

/* In a worker: sort the rows that next() returns together with the other processes. */
static void
sort_rows(GsProducer *producer, MemoryContext context, GsNextRow next)
{
	GsSort	   *sort = begin_worker(producer, context);

	if (sort != NULL)
		end_worker(producer, sort, add_to_sort(producer, sort, next));
}

/* In a worker: sort all rows of its share; in the leader: add them to its sort. */
static void
put_without_gpu(GsProducer *producer, MemoryContext context)
{
	if (IsParallelWorker())
		sort_rows(producer, context, next_row);
	else if (attach(producer, producer->sort))
		fill_sort(producer, next_row);
}

/* ----------------------------------------------------------------
 *		a GPU session
 * ----------------------------------------------------------------
 */

/*
 * Before the first row: have the other processes wait for runs of this one.  Returns false if all
 * rows have been added.
 */
static bool
expect_overflow(GsProducer *producer)
{
	GsTeam	   *team = producer->parallel->team;

	if (team == NULL)
		return true;
	return IsParallelWorker() ? gpusort_team_attach(team) : gpusort_sort_attach(producer->sort);
}

/*
 * After the last row, in a worker: it has no runs.  'failure' says why rows are missing, or is
 * GS_FALLBACK_NONE.
 */
static void
leave_without_runs(GsProducer *producer, GsFallback failure)
{
	GsTeam	   *team = producer->parallel->team;

	if (failure != GS_FALLBACK_NONE)
		pg_atomic_write_u32(&producer->parallel->failure, failure);
	if (team != NULL && failure != GS_FALLBACK_NONE)
		gpusort_team_fail(team);
	else if (team != NULL)
		gpusort_team_leave(team);
}

/*
 * The same in the leader.  It waits for the others if these may have runs; otherwise the caller
 * does, before it finishes the sort.
 */
static void
end_without_runs(GsProducer *producer, GsFallback failure)
{
	producer->failure = failure;
	if (failure != GS_FALLBACK_NONE ||
		(producer->parallel->team != NULL &&
		 !gpusort_sort_end_adding(producer->sort, &producer->ahead)))
		give_up(producer, producer->sort);
}

/*
 * Add this process's share of the rows to the GPU session.  Returns false after a failure, or if
 * it is full.  Then producer->refused is the row that could not be added, if any.
 */
static bool
add_to_session(GsProducer *producer, GsGpuSession *session)
{
	TupleTableSlot *slot;

	while ((slot = read_row(producer)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (!gpusort_gpu_session_put(session, slot->tts_values, slot->tts_isnull))
		{
			producer->refused = slot;
			return false;
		}
		producer->nrows++;
	}
	return gpusort_gpu_session_flush_shared(session);
}

/*
 * Returns the next row after an overflow of the GPU session: first the rows that it has not
 * taken, most of which have been counted, then those that have not been read.
 */
static TupleTableSlot *
next_left_row(GsProducer *producer)
{
	TupleTableSlot *slot = producer->refused;

	if (slot != NULL)
	{
		producer->refused = NULL;
		producer->nrows++;
		return slot;
	}
	if (producer->full != NULL)
	{
		slot = ExecClearTuple(producer->left);
		if (gpusort_gpu_session_take_left(producer->full, slot->tts_values, slot->tts_isnull))
			return ExecStoreVirtualTuple(slot);
		if (!gpusort_gpu_session_is_full(producer->full))
			producer->failure = gpusort_gpu_session_failure(producer->full);
		producer->full = NULL;
	}
	return next_row(producer);
}

/*
 * The GPU session of all processes is full.  Write its rows, but keep the session, since
 * other processes may still have to find that out.  Returns false if the rows are lost.
 */
static bool
drain_session(GsSort *sort)
{
	gpusort_cpu_sort_begin_runs(&sort->cpu, GS_FALLBACK_DEVICE_MEMORY);
	if (!gpusort_gpu_rows_sort(&sort->gpu, sort->spec) ||
		!gpusort_gpu_rows_write(&sort->gpu, &sort->cpu) ||
		!gpusort_gpu_session_release(sort->gpu.session))
		return false;
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

/* In the leader, which finds that its session is full: have its rows in runs. */
static bool
write_session(GsSort *sort)
{
	Assert(sort->location == GS_ROWS_ON_GPU && sort->fed_by_others);
	gpusort_sort_show_phase(sort, GS_PHASE_WRITING_RUN);
	if (sort->participant != NULL)
		gpusort_participant_spill(sort->participant);
	if (!gpusort_sort_lost_unless(sort, drain_session(sort)))
		return false;
	gpusort_sort_show_phase(sort, GS_PHASE_READING);
	return true;
}

/* The GPU has no room for more rows: sort the others. */
static void
overflow(GsProducer *producer, GsGpuSession *session, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);

	producer->full = session;
	producer->left = MakeSingleTupleTableSlot(producer->spec.tupdesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
	if (IsParallelWorker())
		sort_rows(producer, context, next_left_row);
	else if (write_session(producer->sort))
		fill_sort(producer, next_left_row);
	else
		give_up(producer, producer->sort);
	ExecDropSingleTupleTableSlot(producer->left);
	producer->full = NULL;
}

/* Put the rows into the GPU session, and those for which there is no room into runs. */
static void
fill_gpu_session(GsProducer *producer, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsGpuSession *session;
	GsFallback	failure;
	bool		added;

	producer->spec.key_plan = gpusort_sort_plan_leader_keys(&producer->spec,
															GPUSORT_GPU_STRING_WORDS);
	session = gpusort_gpu_session_attach(&producer->spec, producer->parallel->handle);
	MemoryContextSwitchTo(caller);
	added = add_to_session(producer, session);
	if (producer->parallel->team != NULL && gpusort_gpu_session_is_full(session))
	{
		overflow(producer, session, context);
		return;
	}
	failure = added ? GS_FALLBACK_NONE : gpusort_gpu_session_failure(session);
	if (IsParallelWorker())
		leave_without_runs(producer, failure);
	else
		end_without_runs(producer, failure);
}

/* Begin without rows. */
static void
reset(GsProducer *producer)
{
	producer->spec.bound = producer->parallel->bound;
	producer->spec.group_keys = producer->parallel->group_keys;
	producer->ahead = false;
	memset(&producer->report, 0, sizeof(producer->report));
	producer->nrows = 0;
	producer->input_ended = false;
	producer->failure = GS_FALLBACK_NONE;
	producer->refused = NULL;
}

GsSort *
gpusort_producer_begin(GsProducer *producer, MemoryContext context)
{
	Assert(!producer->parallel->gpu);
	reset(producer);
	if (IsParallelWorker())
		return begin_worker(producer, context);
	return gpusort_sort_attach(producer->sort) ? producer->sort : NULL;
}

void
gpusort_producer_end(GsProducer *producer, GsSort *sort)
{
	if (IsParallelWorker())
		end_worker(producer, sort, !has_failed(producer));
	else
		end_leader(producer, !has_failed(producer));
}

void
gpusort_producer_run(GsProducer *producer, MemoryContext context)
{
	reset(producer);
	if (!producer->parallel->gpu)
		put_without_gpu(producer, context);
	else if (expect_overflow(producer))
		fill_gpu_session(producer, context);
	producer->report.nrows = producer->nrows;
}

void
gpusort_producer_attend(GsProducer *producer)
{
	reset(producer);
	if (producer->parallel->team == NULL)
		return;
	if (gpusort_sort_attach(producer->sort))
		gpusort_participant_await_others(producer->sort->participant);
	if (!gpusort_sort_end_adding(producer->sort, &producer->ahead))
		give_up(producer, producer->sort);
}
