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
 * return no rows.  When the Gather has ended, the rows have gone to one of
 * these instead:
 *
 * - If there is a GPU session, each process has put its rows into that
 *   session.  When the GPU has no room for more, the leader has written the rows
 *   that are there as a run, and each process has sorted the rows that
 *   follow as below.
 * - If not, all processes have sorted their rows together, in memory that they
 *   share, if the rows fit there.
 * - Otherwise each worker has sorted its rows in a sort of its own, and has
 *   written them as one run to a file that the leader will read.  The leader,
 *   if it participates, has put its rows into the GpuSort's sort, where they
 *   stay in memory.
 *
 * If none of these is possible, or if a GPU session is lost, the sink returns its input to
 * the Gather.
 *
 * The GpuSort says which of these it is to be, before it executes the Gather.  This file tells
 * the workers.  Then it is executed once in each process, and has the rows of that process put
 * there (sink_rows.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/extensible.h"
#include "optimizer/optimizer.h"
#include "port/atomics.h"
#include "utils/memutils.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_private.h"
#include "exec/row_source.h"
#include "exec/sink_node.h"
#include "exec/sink_rows.h"
#include "sort/base/sort_stats.h"
#include "work.h"

struct GsSinkState
{
	CustomScanState css;		/* must be first */
	GsSinkRows	rows;			/* of this process */
	GsSinkShared local;			/* the leader's settings */
	GsWorkerReports *kept_reports;	/* the leader's copy, or NULL */
};

static void gpusort_sink_begin(CustomScanState *css, EState *estate,
							   int eflags);
static TupleTableSlot *gpusort_sink_exec(CustomScanState *css);
static void gpusort_sink_end(CustomScanState *css);
static void gpusort_sink_rescan(CustomScanState *css);
static Size gpusort_sink_estimate_dsm(CustomScanState *css,
									  ParallelContext *pcxt);
static void gpusort_sink_init_dsm(CustomScanState *css, ParallelContext *pcxt,
								  void *coordinate);
static void gpusort_sink_reinit_dsm(CustomScanState *css,
									ParallelContext *pcxt, void *coordinate);
static void gpusort_sink_init_worker(CustomScanState *css, shm_toc *toc,
									 void *coordinate);
static void gpusort_sink_shutdown(CustomScanState *css);
static void gpusort_sink_explain(CustomScanState *css, List *ancestors,
								 struct ExplainState *es);

static const CustomExecMethods sink_methods = {
	.CustomName = "GpuSortSink",
	.BeginCustomScan = gpusort_sink_begin,
	.ExecCustomScan = gpusort_sink_exec,
	.EndCustomScan = gpusort_sink_end,
	.ReScanCustomScan = gpusort_sink_rescan,
	.EstimateDSMCustomScan = gpusort_sink_estimate_dsm,
	.InitializeDSMCustomScan = gpusort_sink_init_dsm,
	.ReInitializeDSMCustomScan = gpusort_sink_reinit_dsm,
	.InitializeWorkerCustomScan = gpusort_sink_init_worker,
	.ShutdownCustomScan = gpusort_sink_shutdown,
	.ExplainCustomScan = gpusort_sink_explain,
};

Node *
gpusort_sink_create_state(CustomScan *plan)
{
	GsSinkState *sink = palloc0(sizeof(GsSinkState));

	NodeSetTag(sink, T_CustomScanState);
	sink->css.methods = &sink_methods;
	pg_atomic_init_u32(&sink->local.failure, GS_FALLBACK_NONE);
	sink->rows.shared = &sink->local;
	return (Node *) sink;
}

/* ----------------------------------------------------------------
 *		functions for the GpuSort above
 * ----------------------------------------------------------------
 */

GsSinkState *
gpusort_sink_find(PlanState *input)
{
	PlanState  *child;

	if (!IsA(input, GatherState))
		return NULL;
	child = outerPlanState(input);
	if (child == NULL || !IsA(child, CustomScanState) ||
		((CustomScanState *) child)->methods != &sink_methods)
		return NULL;
	return (GsSinkState *) child;
}

PlanState *
gpusort_sink_input(GsSinkState *sink)
{
	return outerPlanState(sink);
}

bool
gpusort_sink_keeps_order(const PlanState *gather)
{
	int			num_workers = castNode(Gather, gather->plan)->num_workers;

	/* The leader participates nevertheless if there are no workers. */
	return Min(num_workers, max_parallel_workers) <= 1 &&
		!parallel_leader_participation;
}

/*
 * Copy the leader's settings to the shared state.  This is done when the
 * settings change, for workers that are not launched again, and whenever
 * shared memory is initialized, for those that are.
 */
static void
tell_workers(const GsSinkState *sink, GsSinkShared *shared)
{
	shared->mode = sink->local.mode;
	shared->handle = sink->local.handle;
	shared->may_overflow = sink->local.may_overflow;
	shared->team = sink->local.team;
	shared->runs = sink->local.runs;
	shared->bound = sink->local.bound;
	shared->whole_tuples = sink->local.whole_tuples;
	pg_atomic_write_u32(&shared->failure, GS_FALLBACK_NONE);
}

void
gpusort_sink_open_gpu(GsSinkState *sink, bool whole_tuples, GsSort *sort,
					  GsClientHandle handle, const GsRunSetHandle *runs,
					  int64 bound)
{
	sink->rows.nrows = 0;
	sink->rows.sort = sort;
	sink->rows.ahead = false;
	sink->local.may_overflow = runs != NULL;
	if (runs != NULL)
	{
		sink->local.team = gpusort_sort_team(sort);
		sink->local.runs = *runs;
	}
	sink->local.bound = bound;
	sink->local.mode = GS_SINK_GPU;
	sink->local.whole_tuples = whole_tuples;
	sink->local.handle = handle;
	tell_workers(sink, sink->rows.shared);
}

void
gpusort_sink_open_cpu(GsSinkState *sink, bool whole_tuples, GsSort *sort,
					  GsRunSetHandle runs, int64 bound)
{
	sink->rows.nrows = 0;
	sink->rows.sort = sort;
	sink->rows.ahead = false;
	sink->local.mode = GS_SINK_CPU;
	sink->local.team = gpusort_sort_team(sort);
	sink->local.whole_tuples = whole_tuples;
	sink->local.runs = runs;
	sink->local.bound = bound;
	tell_workers(sink, sink->rows.shared);
}

void
gpusort_sink_forget_sort(GsSinkState *sink)
{
	sink->rows.sort = NULL;
}

void
gpusort_sink_close(GsSinkState *sink)
{
	sink->rows.ahead = false;
	sink->local.mode = GS_SINK_CLOSED;
	tell_workers(sink, sink->rows.shared);
}

GsFallback
gpusort_sink_failure(const GsSinkState *sink)
{
	return (GsFallback) pg_atomic_read_u32(&sink->rows.shared->failure);
}

bool
gpusort_sink_is_open(const GsSinkState *sink)
{
	return sink->local.mode != GS_SINK_CLOSED;
}

bool
gpusort_sink_is_ahead(const GsSinkState *sink)
{
	return sink->rows.ahead;
}

const GsSharedRun *
gpusort_sink_run(const GsSinkState *sink, int number)
{
	int			found = 0;

	/* Without shared memory there have been no workers. */
	if ((sink->local.mode != GS_SINK_CPU && sink->local.mode != GS_SINK_GPU) ||
		sink->rows.shared == &sink->local)
		return NULL;
	for (int n = 0; n < gpusort_worker_reports_count(sink->rows.reports); n++)
	{
		const GsSinkReport *report = gpusort_worker_reports_get(sink->rows.reports, n);

		if (report != NULL && report->sorted && found++ == number)
			return &report->run;
	}
	return NULL;
}

/* ----------------------------------------------------------------
 *		execution
 * ----------------------------------------------------------------
 */

static TupleTableSlot *
exec_proc_node(PlanState *state)
{
	return gpusort_sink_exec((CustomScanState *) state);
}

static void
gpusort_sink_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsSinkState *sink = (GsSinkState *) css;
	CustomScan *plan = castNode(CustomScan, css->ss.ps.plan);

	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);
	sink->rows.spec.keys = gpusort_private_keys(plan);
	sink->rows.spec.plan_node = plan->scan.plan.plan_node_id;
	sink->rows.spec.expected_rows = plan->scan.plan.plan_rows;
	sink->rows.spec.expected_width = plan->scan.plan.plan_width;
	css->ss.ps.ExecProcNode = exec_proc_node;
}

/* ----------------------------------------------------------------
 *		where rows go
 * ----------------------------------------------------------------
 */

/* As the GpuSort does it, to whose sort the rows go. */
static GsRowSource *
create_source(GsSinkState *sink)
{
	PlanState  *input = outerPlanState(sink);
	TupleDesc	tupdesc = sink->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bool		whole_tuples = sink->rows.shared->whole_tuples;
	const GsNarrowRows *narrow = NULL;

	if (!whole_tuples)
		narrow = gpusort_narrow_rows_create(input->plan, tupdesc,
											&sink->rows.spec.keys);
	if (narrow != NULL)
		return gpusort_row_source_create_narrow(input, narrow, &sink->rows.spec);
	return gpusort_row_source_create(input, tupdesc, whole_tuples, &sink->rows.spec);
}

/* Read this process's share of the rows, and put them where they belong. */
static void
take_rows(GsSinkState *sink)
{
	bool		gpu = sink->rows.shared->mode == GS_SINK_GPU;
	MemoryContext query = sink->css.ss.ps.state->es_query_cxt;
	MemoryContext caller = MemoryContextSwitchTo(query);
	MemoryContext context = AllocSetContextCreate(query, "pg_gpusort sink",
												  ALLOCSET_SMALL_SIZES);
	GsSortCounts page_scan = {.page_scans = 1};

	sink->rows.input_ended = false;
	sink->rows.failure = GS_FALLBACK_NONE;
	sink->rows.refused = NULL;
	sink->rows.spec.bound = sink->rows.shared->bound;
	if (sink->rows.source == NULL)
		sink->rows.source = create_source(sink);
	if (gpusort_row_source_prepare(sink->rows.source))
		gpusort_stats_count_sort(gpu ? GS_KIND_GPU : GS_KIND_CPU,
								 &page_scan);
	gpusort_sink_rows_put(&sink->rows, context);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Returns the next row of the input, in this node's own slot. */
static TupleTableSlot *
forward_row(GsSinkState *sink)
{
	TupleTableSlot *slot = sink->css.ss.ss_ScanTupleSlot;
	TupleTableSlot *row = ExecProcNode(outerPlanState(sink));
	int			natts = slot->tts_tupleDescriptor->natts;

	ExecClearTuple(slot);
	if (TupIsNull(row))
		return slot;
	slot_getallattrs(row);
	memcpy(slot->tts_values, row->tts_values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, row->tts_isnull, natts * sizeof(bool));
	return ExecStoreVirtualTuple(slot);
}

static TupleTableSlot *
gpusort_sink_exec(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	CHECK_FOR_INTERRUPTS();
	if (sink->rows.shared->mode == GS_SINK_CLOSED)
		return forward_row(sink);
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

	sink->rows.ahead = false;
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

/* ----------------------------------------------------------------
 *		parallel execution
 * ----------------------------------------------------------------
 */

/* The workers' reports follow the shared state. */
static GsWorkerReports *
shared_reports(void *coordinate)
{
	return (GsWorkerReports *) ((char *) coordinate +
								MAXALIGN(sizeof(GsSinkShared)));
}

static Size
gpusort_sink_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return add_size(MAXALIGN(sizeof(GsSinkShared)),
					gpusort_worker_reports_size(pcxt->nworkers,
												sizeof(GsSinkReport)));
}

static void
gpusort_sink_init_dsm(CustomScanState *css, ParallelContext *pcxt,
					  void *coordinate)
{
	GsSinkState *sink = (GsSinkState *) css;

	sink->rows.shared = coordinate;
	sink->rows.reports = shared_reports(coordinate);
	pg_atomic_init_u32(&sink->rows.shared->failure, GS_FALLBACK_NONE);
	gpusort_worker_reports_init(sink->rows.reports, pcxt->nworkers,
								sizeof(GsSinkReport));
	tell_workers(sink, sink->rows.shared);
}

static void
gpusort_sink_reinit_dsm(CustomScanState *css, ParallelContext *pcxt,
						void *coordinate)
{
	gpusort_worker_reports_init(shared_reports(coordinate), pcxt->nworkers,
								sizeof(GsSinkReport));
	tell_workers((GsSinkState *) css, coordinate);
}

static void
gpusort_sink_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	GsSinkState *sink = (GsSinkState *) css;

	sink->rows.shared = coordinate;
	sink->rows.reports = shared_reports(coordinate);
}

/*
 * The Gather will wait for the workers, so end their work.  The shared memory is about to be
 * freed, so copy what is needed later.
 */
static void
gpusort_sink_shutdown(CustomScanState *css)
{
	GsSinkState *sink = (GsSinkState *) css;

	if (sink->rows.sort != NULL)
		gpusort_sort_stop(sink->rows.sort);
	if (IsParallelWorker() || sink->rows.shared == &sink->local)
		return;
	pg_atomic_write_u32(&sink->local.failure, gpusort_sink_failure(sink));
	if (css->ss.ps.instrument != NULL)
		sink->kept_reports =
			gpusort_worker_reports_copy(sink->rows.reports,
										css->ss.ps.state->es_query_cxt);
	sink->rows.shared = &sink->local;
}

/*
 * Returns how many rows all processes have added in the last execution, or -1
 * if the sink has returned them to the Gather.
 */
static int64
added_rows(const GsSinkState *sink)
{
	int64		nrows = sink->rows.nrows;

	if (sink->local.mode != GS_SINK_GPU && sink->local.mode != GS_SINK_CPU)
		return -1;
	for (int n = 0; n < gpusort_worker_reports_count(sink->kept_reports); n++)
	{
		const GsSinkReport *report =
			gpusort_worker_reports_get(sink->kept_reports, n);

		if (report != NULL)
			nrows += report->nrows;
	}
	return nrows;
}

/* Have workers written runs? */
static bool
has_runs(const GsSinkState *sink)
{
	for (int n = 0; n < gpusort_worker_reports_count(sink->kept_reports); n++)
	{
		const GsSinkReport *report =
			gpusort_worker_reports_get(sink->kept_reports, n);

		if (report != NULL && report->sorted)
			return true;
	}
	return false;
}

static void
gpusort_sink_explain(CustomScanState *css, List *ancestors,
					 struct ExplainState *es)
{
	const GsSinkState *sink = (GsSinkState *) css;

	gpusort_explain_sink(added_rows(sink), sink->kept_reports,
						 sink->local.mode == GS_SINK_CPU || has_runs(sink), es);
}
