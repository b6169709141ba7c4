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
	parallel->gpu = sort->location == GS_ROWS_ON_GPU;
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
	gpusort_sort_plan_leader_keys(spec);
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
give_up(GsProducer *producer)
{
	GsReason	failure = gpusort_parallel_sort_failure(producer->parallel);

	if (failure == GS_REASON_NONE)
		failure = gpusort_sort_loss(producer->sort);
	producer->streaming = false;
	gpusort_sort_fail(producer->sort, failure);
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

/* Add the rows of this process to its sort.  Returns false if rows of any process are lost. */
static bool
add_rows(GsProducer *producer)
{
	TupleTableSlot *slot;

	while ((slot = next_row(producer)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		producer->report.nrows++;
		if (!gpusort_sort_add(producer->sort, slot))
			return false;
	}
	return !has_failed(producer);
}

/*
 * Attach to what the processes do together.  Returns false if this one can leave, since all rows
 * have been added.  If each process returns rows, it remains, but adds none.
 */
static bool
attach(GsProducer *producer)
{
	if (gpusort_sort_attach(producer->sort))
		return true;
	producer->input_ended = true;
	return producer->parallel->group_keys > 0;
}

/* Begin the sort of this worker. */
static void
begin_worker(GsProducer *producer, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsSortSpec *spec = palloc(sizeof(GsSortSpec));

	*spec = producer->spec;
	gpusort_parallel_sort_join(producer->parallel, spec);
	spec->nested = true;
	producer->sort = gpusort_sort_begin(spec);
	MemoryContextSwitchTo(caller);
}

/* In the leader: sort the rows that have been 'added', unless others are missing. */
static void
sort_in_leader(GsProducer *producer, bool added)
{
	if (!added || !gpusort_sort_end_adding(producer->sort))
		give_up(producer);
	else
		producer->streaming = producer->sort->location == GS_ROWS_SHARED;
}

/* The same in a worker.  They are sorted together with those of the other processes. */
static void
sort_in_worker(GsProducer *producer, bool added)
{
	GsProducerReport *report = &producer->report;
	GsSort	   *sort = producer->sort;

	if (!added || !gpusort_sort_finish(sort))
	{
		give_up(producer);
		return;
	}
	if (producer->parallel->group_keys > 0)
		(void) gpusort_first_keys_count(sort, &report->counts);
	gpusort_sort_report(sort, &report->sort);
	report->sorted = sort->location != GS_ROWS_ON_GPU;
}

/* Begin without rows. */
static void
reset(GsProducer *producer)
{
	producer->streaming = false;
	memset(&producer->report, 0, sizeof(producer->report));
	producer->input_ended = false;
}

void
gpusort_producer_run(GsProducer *producer)
{
	MemoryContext context;

	reset(producer);
	if (!IsParallelWorker())
	{
		if (attach(producer))
			sort_in_leader(producer, add_rows(producer));
		return;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort rows of a worker",
									ALLOCSET_DEFAULT_SIZES);
	begin_worker(producer, context);
	if (attach(producer))
		sort_in_worker(producer, add_rows(producer));
	gpusort_sort_end(producer->sort);
	producer->sort = NULL;
	MemoryContextDelete(context);
}

void
gpusort_producer_attend(GsProducer *producer)
{
	reset(producer);
	if (gpusort_sort_attach(producer->sort))
		gpusort_participant_await_others(producer->sort->participant);
	sort_in_leader(producer, true);
}
