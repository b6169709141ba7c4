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

bool
gpusort_parallel_sort_open(GsParallelSort *parallel, GsSort *sort)
{
	memset(parallel, 0, sizeof(*parallel));
	parallel->bound = sort->spec->bound;
	parallel->group_keys = sort->spec->group_keys;
	parallel->repeatable = sort->spec->repeatable;
	parallel->gpu = gpusort_sort_is_on_gpu(sort);
	if (!gpusort_sort_open(sort))
		return false;
	parallel->team = sort->participant->team;
	if (parallel->gpu)
		parallel->handle = gpusort_gpu_session_handle(sort->gpu.session);
	return true;
}

void
gpusort_parallel_sort_join(const GsParallelSort *parallel, GsSortSpec *spec)
{
	spec->team = parallel->team;
	spec->process = ParallelWorkerNumber + 1;
	spec->session = parallel->gpu ? &parallel->handle : NULL;
	spec->repeatable = parallel->repeatable;
	spec->bound = parallel->bound;
	spec->group_keys = parallel->group_keys;
	gpusort_sort_plan_leader_keys(spec, gpusort_team_string_words(parallel->team));
}

GsReason
gpusort_parallel_sort_failure(const GsParallelSort *parallel)
{
	return parallel->team != NULL ? gpusort_team_failure(parallel->team) : GS_REASON_NONE;
}

/* Have any process's rows been lost, so that all of the input must be read again? */
static inline bool
has_failed(const GsProducer *producer)
{
	return gpusort_parallel_sort_failure(producer->parallel) != GS_REASON_NONE;
}

/*
 * Rows of this process's sort are lost, or those of another one: leave what the processes do
 * together, so that nobody waits for this one.
 */
static void
give_up(GsProducer *producer, GsSort *sort)
{
	GsReason	failure = gpusort_parallel_sort_failure(producer->parallel);

	if (failure == GS_REASON_NONE)
		failure = gpusort_sort_loss(sort);
	producer->streaming = false;
	gpusort_sort_fail(sort, failure);
}

/* Returns the next row of this process's share, or NULL, also once any process has lost rows. */
static TupleTableSlot *
next_row(GsProducer *producer)
{
	TupleTableSlot *slot;

	/* If rows are lost, no more are wanted. */
	if (producer->input_ended || unlikely(has_failed(producer)))
		return NULL;
	slot = producer->next(producer->arg);
	return TupIsNull(slot) ? NULL : slot;
}

/* Add the rows of this process to a sort.  Returns false if rows of any process are lost. */
static bool
add_rows(GsProducer *producer, GsSort *sort)
{
	TupleTableSlot *slot;

	while ((slot = next_row(producer)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		producer->report.nrows++;
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
	return producer->parallel->group_keys > 0;
}

/* Begin the sort of this worker.  Returns NULL if all rows have been added without it. */
static GsSort *
begin_worker(GsProducer *producer, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsSortSpec *spec = palloc(sizeof(GsSortSpec));
	GsSort	   *sort;

	*spec = producer->spec;
	gpusort_parallel_sort_join(producer->parallel, spec);
	spec->nested = true;
	sort = gpusort_sort_begin(spec);
	MemoryContextSwitchTo(caller);
	if (attach(producer, sort))
	{
		producer->sort = sort;
		return sort;
	}
	gpusort_sort_end(sort);
	return NULL;
}

/* In the leader: sort the rows that have been 'added', unless others are missing. */
static void
end_leader(GsProducer *producer, bool added)
{
	if (!added || !gpusort_sort_end_adding(producer->sort))
		give_up(producer, producer->sort);
	else
		producer->streaming = producer->sort->location == GS_ROWS_SHARED;
}

/* The same in a worker.  They are sorted together with those of the other processes. */
static void
end_worker(GsProducer *producer, GsSort *sort, bool added)
{
	GsProducerReport *report = &producer->report;

	if (added && gpusort_sort_finish(sort))
	{
		if (producer->parallel->group_keys > 0)
			(void) gpusort_first_keys_count(sort, &report->counts);
		gpusort_sort_report(sort, &report->sort);
		report->sorted = !gpusort_sort_is_on_gpu(sort);
	}
	else
		give_up(producer, sort);
	gpusort_sort_end(sort);
	producer->sort = NULL;
}

/* Begin without rows. */
static void
reset(GsProducer *producer)
{
	producer->streaming = false;
	memset(&producer->report, 0, sizeof(producer->report));
	producer->input_ended = false;
}

/* Begin the sort of a worker, or attach to the leader's.  Returns NULL as begin_worker() does. */
static GsSort *
begin(GsProducer *producer, MemoryContext context)
{
	if (IsParallelWorker())
		return begin_worker(producer, context);
	return attach(producer, producer->sort) ? producer->sort : NULL;
}

void
gpusort_producer_run(GsProducer *producer, MemoryContext context)
{
	GsSort	   *sort;
	bool		added;

	reset(producer);
	sort = begin(producer, context);
	if (sort != NULL)
	{
		added = add_rows(producer, sort);
		if (IsParallelWorker())
			end_worker(producer, sort, added);
		else
			end_leader(producer, added);
	}
}

void
gpusort_producer_attend(GsProducer *producer)
{
	reset(producer);
	if (gpusort_sort_attach(producer->sort))
		gpusort_participant_await_others(producer->sort->participant);
	end_leader(producer, true);
}
