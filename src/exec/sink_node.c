/*-------------------------------------------------------------------------
 *
 * sink_node.c
 *		The GpuSortSink executor node: each process puts its rows into a sort.
 *
 * In a parallel plan, the sink is below the Gather that feeds a GpuSort:
 *
 *		GpuSort -> Gather -> GpuSortSink -> partial plan
 *
 * Sending a row through a Gather costs more than sorting it.  So the sinks
 * return no rows.  Each process adds its rows to the GpuSort's sort instead, as
 * producer.h describes.  If that cannot be, or if a GPU session is lost, the sink returns
 * its input to the Gather.
 *
 * The GpuSort says which of these it is to be, before it starts the workers.  This file tells
 * them.  Then it is executed once in each process, and has the rows of that process added.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/execParallel.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/extensible.h"
#include "optimizer/optimizer.h"
#include "port/atomics.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_private.h"
#include "exec/row_source.h"
#include "exec/sink_node.h"
#include "exec/worker_reports.h"
#include "sort/base/sort_stats.h"
#include "sort/producer.h"
#include "work.h"

/*
 * Stored in the query's dynamic shared memory, or in the leader's sink.  Only the leader changes
 * it.
 */
typedef struct GsSinkShared
{
	bool		open;			/* put rows into a sort, or return them? */
	bool		whole_tuples;	/* how the sort keeps rows */
	GsParallelSort parallel;	/* where they go */
} GsSinkShared;

struct GsSinkState
{
	CustomScanState css;		/* must be first */
	GsProducer	producer;		/* of the rows of this process */
	GatherState *gather;		/* above, in the leader */
	GsRowSource *source;		/* NULL before the first row is requested */
	GsSinkShared local;			/* the leader's settings */
	GsSinkShared *shared;		/* those in force: in shared memory if there
								 * are workers, else the leader's */
	GsWorkerReports *reports;	/* of workers, in shared memory */
	GsWorkerReports *kept_reports;	/* the leader's copy, or NULL */
};

static const CustomExecMethods sink_methods;

Node *
gpusort_sink_create_state(CustomScan *plan)
{
	GsSinkState *sink = (GsSinkState *) gpusort_make_node_state(sizeof(GsSinkState), &sink_methods);

	sink->shared = &sink->local;
	return (Node *) sink;
}

/* ----------------------------------------------------------------
 *		executing the Gather
 *
 * When the last of its queues ends, a Gather that is executed waits for the ends of its
 * workers.  So it cannot return while workers still sort, although the leader could read the
 * first rows.  start_gather() does what ExecGather() does at its first call, but does not
 * read the queues, which remain empty.  All else, from rescan to EXPLAIN, goes by the state that it
 * sets, and is the Gather's own.
 * ----------------------------------------------------------------
 */

static void
launch_workers(GatherState *gather)
{
	EState	   *estate = gather->ps.state;
	Gather	   *plan = castNode(Gather, gather->ps.plan);

	if (gather->pei == NULL)
		gather->pei = ExecInitParallelPlan(outerPlanState(gather), estate, plan->initParam,
										   plan->num_workers, gather->tuples_needed);
	else
		ExecParallelReinitialize(outerPlanState(gather), gather->pei, plan->initParam);
	LaunchParallelWorkers(gather->pei->pcxt);
	gather->nworkers_launched = gather->pei->pcxt->nworkers_launched;
	GPUSORT_COUNT_WORKERS(estate, gather->pei->pcxt);
}

/* Execute the input in this process, with what it shares with workers. */
static void
execute_input(GatherState *gather)
{
	EState	   *estate = gather->ps.state;
	TupleTableSlot *slot;

	estate->es_query_dsa = gather->pei != NULL ? gather->pei->area : NULL;
	slot = ExecProcNode(outerPlanState(gather));
	estate->es_query_dsa = NULL;
	if (!TupIsNull(slot))
		elog(ERROR, "the input of a Gather has returned a row, but should return none");
}

/*
 * Start the workers of the Gather, and execute the sink in this process as well, if that takes
 * part.  Returns when this process is done, while workers may go on.  Returns false if it takes no
 * part.  Then all workers have started.
 */
static bool
start_gather(GatherState *gather)
{
	PlanState  *state = &gather->ps;
	Gather	   *plan = castNode(Gather, state->plan);
	bool		takes_part;

	if (state->chgParam != NULL)
		ExecReScan(state);
	if (state->instrument != NULL)
		InstrStartNode(state->instrument);
	gather->nworkers_launched = 0;	/* those of an earlier scan have ended */
	if (plan->num_workers > 0 && state->state->es_use_parallel_mode)
		launch_workers(gather);
	gather->initialized = true;
	takes_part = gather->nworkers_launched == 0 || parallel_leader_participation;
	if (takes_part)
		execute_input(gather);
	else
		WaitForParallelWorkersToAttach(gather->pei->pcxt);
	if (state->instrument != NULL)
		InstrStopNode(state->instrument, 0);
	return takes_part;
}

/* Wait for the workers, if there are any.  Their shared memory remains. */
static void
await_gather(GatherState *gather)
{
	if (gather->pei == NULL)
		return;
	if (gather->ps.instrument != NULL)
		InstrStartNode(gather->ps.instrument);
	ExecParallelFinish(gather->pei);
	if (gather->ps.instrument != NULL)
		InstrStopNode(gather->ps.instrument, 0);
}

/* ----------------------------------------------------------------
 *		functions for the GpuSort above
 * ----------------------------------------------------------------
 */

GsSinkState *
gpusort_sink_find(PlanState *input)
{
	GsSinkState *sink;

	if (!IsA(input, GatherState))
		return NULL;
	sink = (GsSinkState *) outerPlanState(input);
	if (sink == NULL || !IsA(sink, CustomScanState) || sink->css.methods != &sink_methods)
		return NULL;
	sink->gather = (GatherState *) input;
	return sink;
}

int
gpusort_sink_processes(const GsSinkState *sink)
{
	return castNode(Gather, sink->gather->ps.plan)->num_workers + 1;
}

/*
 * Copy the leader's settings to the shared state.  This is done when the
 * settings change, for workers that are not launched again, and whenever
 * shared memory is initialized, for those that are.
 */
static void
tell_workers(GsSinkState *sink)
{
	if (sink->shared != &sink->local)
		*sink->shared = sink->local;
}

bool
gpusort_sink_open(GsSinkState *sink, bool whole_tuples, GsSort *sort)
{
	GsSinkShared *local = &sink->local;

	if (!gpusort_parallel_sort_open(&local->parallel, sort))
		return false;
	local->open = true;
	local->whole_tuples = whole_tuples;
	sink->producer.sort = sort;
	sink->producer.report.nrows = 0;
	sink->producer.streaming = false;
	tell_workers(sink);
	return true;
}

void
gpusort_sink_forget_sort(GsSinkState *sink)
{
	sink->producer.sort = NULL;
}

void
gpusort_sink_close(GsSinkState *sink)
{
	sink->producer.streaming = false;
	sink->local.open = false;
	tell_workers(sink);
}

GsReason
gpusort_sink_add_rows(GsSinkState *sink)
{
	if (!start_gather(sink->gather))
	{
		sink->producer.parallel = &sink->shared->parallel;
		gpusort_producer_attend(&sink->producer);
	}
	if (!sink->producer.streaming)
		await_gather(sink->gather);
	return gpusort_parallel_sort_failure(&sink->shared->parallel);
}

void
gpusort_sink_await(const GsSinkState *sink)
{
	if (sink->local.open)
		await_gather(sink->gather);
}

void
gpusort_sink_add_counts(const GsSinkState *sink, const GsSort *sort, GsKeyCounts *counts)
{
	const GsWorkerReports *reports = sink->reports;

	if (sink->shared == &sink->local)
		return;
	for (int n = 0; n < reports->nworkers; n++)
	{
		const GsProducerReport *report = gpusort_worker_reports_get(reports, n);

		if (report != NULL)
			gpusort_first_keys_add(sort, counts, &report->counts);
	}
}

bool
gpusort_sink_is_open(const GsSinkState *sink)
{
	return sink->local.open;
}

/* ----------------------------------------------------------------
 *		execution
 * ----------------------------------------------------------------
 */

static void
gpusort_sink_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsSinkState *sink = (GsSinkState *) css;
	CustomScan *plan = castNode(CustomScan, css->ss.ps.plan);

	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);
	sink->producer.spec.keys = gpusort_private_keys(plan);
	sink->producer.spec.plan_node = plan->scan.plan.plan_node_id;
	sink->producer.spec.expected_rows = plan->scan.plan.plan_rows;
	sink->producer.spec.expected_width = plan->scan.plan.plan_width;
	css->ss.ps.resultopsfixed = false;	/* a closed sink returns slots of its
										 * input */
}

/* ----------------------------------------------------------------
 *		where rows go
 * ----------------------------------------------------------------
 */

/* GsProducerNext */
static TupleTableSlot *
next_row(void *arg)
{
	GsSinkState *sink = arg;

	return gpusort_row_source_next(sink->source);
}

/* Read this process's share of the rows, and put them where they belong. */
static void
take_rows(GsSinkState *sink)
{
	GsProducer *producer = &sink->producer;
	PlanState  *input = outerPlanState(sink);
	TupleDesc	tupdesc = sink->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	MemoryContext caller = MemoryContextSwitchTo(sink->css.ss.ps.state->es_query_cxt);
	GsSortCounts page_scan = {.page_scans = 1};

	producer->parallel = &sink->shared->parallel;
	producer->next = next_row;
	producer->arg = sink;
	if (sink->source == NULL)	/* it comes to the same form of rows as the
								 * GpuSort */
		sink->source = gpusort_row_source_create(input, input, tupdesc, sink->shared->whole_tuples,
												 &producer->spec);
	if (gpusort_row_source_prepare(sink->source))
		gpusort_stats_count_sort(producer->parallel->gpu ? GS_KIND_GPU : GS_KIND_CPU,
								 &page_scan);
	gpusort_producer_run(producer);
	if (IsParallelWorker())
		gpusort_worker_reports_publish(sink->reports, &producer->report);
	MemoryContextSwitchTo(caller);
}

static TupleTableSlot *
gpusort_sink_exec(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	CHECK_FOR_INTERRUPTS();
	if (!sink->shared->open)
		return ExecProcNode(outerPlanState(css));
	take_rows(sink);
	return ExecClearTuple(css->ss.ss_ScanTupleSlot);
}

static void
gpusort_sink_end(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
}

static void
gpusort_sink_rescan(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	sink->producer.streaming = false;
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* ----------------------------------------------------------------
 *		parallel execution
 * ----------------------------------------------------------------
 */

/* Have the shared state, which the workers' reports follow. */
static void
set_shared(GsSinkState *sink, void *coordinate)
{
	sink->shared = coordinate;
	sink->reports = (GsWorkerReports *) ((char *) coordinate +
										 MAXALIGN(sizeof(GsSinkShared)));
}

static Size
gpusort_sink_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return add_size(MAXALIGN(sizeof(GsSinkShared)),
					gpusort_worker_reports_size(pcxt->nworkers));
}

/* When a scan begins, the first one or another. */
static void
gpusort_sink_init_dsm(CustomScanState *css, ParallelContext *pcxt,
					  void *coordinate)
{
	GsSinkState *sink = (GsSinkState *) css;

	set_shared(sink, coordinate);
	gpusort_worker_reports_init(sink->reports, pcxt->nworkers);
	tell_workers(sink);
}

static void
gpusort_sink_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	set_shared((GsSinkState *) css, coordinate);
}

/*
 * The Gather will wait for the workers, so end their work.  The shared memory is about to be
 * freed, so copy what is needed later.
 */
static void
gpusort_sink_shutdown(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	if (sink->producer.sort != NULL)
		gpusort_sort_stop(sink->producer.sort);
	if (IsParallelWorker() || sink->shared == &sink->local)
		return;
	if (css->ss.ps.instrument != NULL)
	{
		/* The last rows may have been returned while workers still sort. */
		if (sink->local.open && sink->gather->pei != NULL)
			ExecParallelFinish(sink->gather->pei);
		sink->kept_reports =
			gpusort_worker_reports_copy(sink->reports,
										css->ss.ps.state->es_query_cxt);
	}
	sink->shared = &sink->local;
}

/* Returns the sum of the workers' rows, and whether any of them has sorted its rows. */
static GsProducerReport
sum_reports(const GsWorkerReports *reports)
{
	GsProducerReport sum = {0};

	for (int n = 0; reports != NULL && n < reports->nworkers; n++)
	{
		const GsProducerReport *report = gpusort_worker_reports_get(reports, n);

		if (report == NULL)
			continue;
		sum.nrows += report->nrows;
		sum.sorted |= report->sorted;
	}
	return sum;
}

/* Unless the sink has returned its rows, show how many all processes have added. */
static void
gpusort_sink_explain(CustomScanState *css, List *ancestors, struct ExplainState *es)
{
	const GsSinkState *sink = (GsSinkState *) css;
	GsProducerReport workers = sum_reports(sink->kept_reports);

	if (sink->local.open)
		gpusort_explain_sink(sink->producer.report.nrows + workers.nrows, sink->kept_reports,
							 !sink->local.parallel.gpu || workers.sorted, es);
}

static const CustomExecMethods sink_methods = {
	.CustomName = "GpuSortSink",
	.BeginCustomScan = gpusort_sink_begin,
	.ExecCustomScan = gpusort_sink_exec,
	.EndCustomScan = gpusort_sink_end,
	.ReScanCustomScan = gpusort_sink_rescan,
	.EstimateDSMCustomScan = gpusort_sink_estimate_dsm,
	.InitializeDSMCustomScan = gpusort_sink_init_dsm,
	.ReInitializeDSMCustomScan = gpusort_sink_init_dsm,
	.InitializeWorkerCustomScan = gpusort_sink_init_worker,
	.ShutdownCustomScan = gpusort_sink_shutdown,
	.ExplainCustomScan = gpusort_sink_explain,
};
