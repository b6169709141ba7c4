/*-------------------------------------------------------------------------
 *
 * gpusort_node.c
 *		The GpuSort executor node.
 *
 * Like a Sort, the node reads all of its input when the first row is asked
 * for, and then is a cursor over the sorted rows.  Rows leave it in a virtual
 * slot, whose columns point into the session.
 *
 * Nothing is allocated before the first row is asked for: EvalPlanQual() and
 * plans with branches that are never run start many nodes that stay idle.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "port/atomics.h"
#include "utils/memutils.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_node.h"
#include "exec/gpusort_plan.h"
#include "exec/page_scan.h"
#include "settings.h"
#include "sort/gpu_session.h"

static void gpusort_node_begin(CustomScanState *css, EState *estate,
							   int eflags);
static TupleTableSlot *gpusort_node_exec(CustomScanState *css);
static void gpusort_node_end(CustomScanState *css);
static void gpusort_node_rescan(CustomScanState *css);
static void gpusort_node_mark(CustomScanState *css);
static void gpusort_node_restore(CustomScanState *css);
static Size gpusort_node_estimate_dsm(CustomScanState *css,
									  ParallelContext *pcxt);
static void gpusort_node_init_dsm(CustomScanState *css, ParallelContext *pcxt,
								  void *coordinate);
static void gpusort_node_reinit_dsm(CustomScanState *css,
									ParallelContext *pcxt, void *coordinate);
static void gpusort_node_init_worker(CustomScanState *css, shm_toc *toc,
									 void *coordinate);
static void gpusort_node_shutdown(CustomScanState *css);

static const CustomExecMethods exec_methods = {
	.CustomName = "GpuSort",
	.BeginCustomScan = gpusort_node_begin,
	.ExecCustomScan = gpusort_node_exec,
	.EndCustomScan = gpusort_node_end,
	.ReScanCustomScan = gpusort_node_rescan,
	.MarkPosCustomScan = gpusort_node_mark,
	.RestrPosCustomScan = gpusort_node_restore,
	.EstimateDSMCustomScan = gpusort_node_estimate_dsm,
	.InitializeDSMCustomScan = gpusort_node_init_dsm,
	.ReInitializeDSMCustomScan = gpusort_node_reinit_dsm,
	.InitializeWorkerCustomScan = gpusort_node_init_worker,
	.ShutdownCustomScan = gpusort_node_shutdown,
	.ExplainCustomScan = gpusort_explain_node,
};

Node *
gpusort_node_create_state(CustomScan *plan)
{
	GsNodeState *node = palloc0(sizeof(GsNodeState));

	NodeSetTag(node, T_CustomScanState);
	node->css.methods = &exec_methods;
	return (Node *) node;
}

/* ExecProcNode of the node: without the detour over ExecCustomScan(). */
static TupleTableSlot *
exec_proc_node(PlanState *state)
{
	return gpusort_node_exec((CustomScanState *) state);
}

/*
 * Shared memory for the reports of workers is given to parallel-aware nodes
 * alone.  This one is not, and EXPLAIN must not call it so; it does not share
 * its work, each worker sorts what it is given.  So while EXPLAIN ANALYZE runs
 * a parallel plan, the state points to a copy of the plan node that has the
 * flag, and gets the plan node back when the execution is over.
 */
static void
ask_for_worker_reports(GsNodeState *node)
{
	PlanState  *state = &node->css.ss.ps;
	CustomScan *copy = makeNode(CustomScan);

	memcpy(copy, state->plan, sizeof(CustomScan));
	copy->scan.plan.parallel_aware = true;
	node->plan_for_explain = state->plan;
	state->plan = (Plan *) copy;
}

/* GsInput.next: the next row of an input that has to be executed. */
static TupleTableSlot *
execute_input(void *arg)
{
	GsNodeState *node = arg;

	return ExecProcNode(outerPlanState(node));
}

/* GsInput.next: the next row of an input that is scanned page by page. */
static TupleTableSlot *
scan_input(void *arg)
{
	GsNodeState *node = arg;

	return gpusort_page_scan_next(node->page_scan);
}

/* GsInput.rewind: the input is to be read again, from the start. */
static void
rewind_input(void *arg)
{
	GsNodeState *node = arg;

	if (node->sink != NULL)
		gpusort_sink_close(node->sink);
	ExecReScan(outerPlanState(node));
	if (node->page_scan != NULL)
		gpusort_page_scan_rewind(node->page_scan);
}

/* GsInput.failure: did the sinks below add all rows? */
static GsFallback
input_failure(void *arg)
{
	GsNodeState *node = arg;

	return node->sink != NULL ? gpusort_sink_failure(node->sink) :
		GS_FALLBACK_NONE;
}

static void
gpusort_node_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsNodeState *node = (GsNodeState *) css;
	CustomScan *plan = castNode(CustomScan, css->ss.ps.plan);

	/* As for a Sort: its own input is read once, forward. */
	node->spec.random_access = (eflags & (EXEC_FLAG_REWIND |
										  EXEC_FLAG_BACKWARD |
										  EXEC_FLAG_MARK)) != 0;
	eflags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);

	node->spec.tupdesc = css->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	node->spec.keys = gpusort_plan_keys(plan);
	node->spec.expected_rows = plan->scan.plan.plan_rows;
	node->spec.expected_width = plan->scan.plan.plan_width;
	node->spec.input.rewind = rewind_input;
	node->spec.input.failure = input_failure;
	node->spec.input.arg = node;
	node->spec.input.repeat = gpusort_plan_input_repeat(plan);
	css->ss.ps.ExecProcNode = exec_proc_node;

	if (estate->es_instrument != 0 &&
		(IsParallelWorker() || estate->es_plannedstmt->parallelModeNeeded))
		ask_for_worker_reports(node);
}

/* With pg_gpusort.debug_require, the session must be of the wanted kind. */
static void
check_requirement(const GsSessionReport *report)
{
	GsFallback	reason = report->fallback;

	if (reason == GS_FALLBACK_NONE)
		reason = report->gpu_reason;
	if (gpusort_debug_require == GS_REQUIRE_OFF ||
		gpusort_debug_require == GS_REQUIRE_NODE ||
		(gpusort_debug_require == GS_REQUIRE_CPU &&
		 report->kind == GS_SESSION_CPU) ||
		(gpusort_debug_require == GS_REQUIRE_GPU &&
		 report->kind == GS_SESSION_GPU))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a sort was not held by a session of the required kind"),
			 errdetail("Reason: %s.", gpusort_fallback_text(reason)),
			 errhint("This is an error because pg_gpusort.debug_require is set.")));
}

static void
publish_report(GsNodeState *node)
{
	gpusort_session_report(node->session, &node->report);
	node->has_report = true;
	if (IsParallelWorker() && node->shared_reports != NULL)
	{
		Assert(ParallelWorkerNumber < node->shared_reports->nworkers);
		node->shared_reports->workers[ParallelWorkerNumber].report = node->report;
		pg_write_barrier();		/* whoever sees 'filled' sees the report */
		node->shared_reports->workers[ParallelWorkerNumber].filled = true;
	}
}

/*
 * Before the input is read, the first time or again: see how.  A page scan does
 * not go through ExecProcNode(), which rescans a node whose parameters changed.
 */
static void
prepare_input(GsNodeState *node)
{
	PlanState  *input = outerPlanState(node);

	if (node->page_scan == NULL)
		node->page_scan = gpusort_page_scan_create(input);
	else
	{
		if (input->chgParam != NULL)
			ExecReScan(input);
		gpusort_page_scan_rewind(node->page_scan);
	}
	node->spec.input.next = node->page_scan != NULL ? scan_input :
		execute_input;
}

/* Let the sink below, if there is one, put the rows where they are to go. */
static void
open_sink(GsNodeState *node)
{
	GsClientHandle handle;

	node->sink = gpusort_sink_find(outerPlanState(node));
	if (node->sink == NULL)
		return;
	if (gpusort_session_gpu_handle(node->session, &handle))
		gpusort_sink_open(node->sink, handle);
	else
		gpusort_sink_close(node->sink);
}

/* For a GPU, if one is to be tried, or else for the CPU. */
static GsKeyPlan *
make_key_plan(const GsSessionSpec *spec)
{
	bool		gpu = gpusort_gpu_session_check(spec->expected_rows,
												spec->input.repeat) ==
		GS_FALLBACK_NONE;
	GsFallback	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(&spec->keys,
											   gpu ? GPUSORT_GPU_STRING_WORDS : 1,
											   &reason);

	if (plan == NULL)
		elog(ERROR, "sort keys of a GpuSort node cannot be encoded");
	return plan;
}

/* Read and sort the whole input. */
static void
sort_input(GsNodeState *node)
{
	EState	   *estate = node->css.ss.ps.state;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	if (node->spec.key_plan == NULL)
		node->spec.key_plan = make_key_plan(&node->spec);
	prepare_input(node);
	node->session = gpusort_session_begin(&node->spec);
	open_sink(node);
	gpusort_session_sort(node->session);

	publish_report(node);
	check_requirement(&node->report);
	MemoryContextSwitchTo(caller);
}

static TupleTableSlot *
gpusort_node_exec(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;
	TupleTableSlot *slot = css->ss.ss_ScanTupleSlot;
	EState	   *estate = css->ss.ps.state;
	ScanDirection direction = estate->es_direction;

	CHECK_FOR_INTERRUPTS();

	/* The input, whenever it is read, is read forward. */
	estate->es_direction = ForwardScanDirection;
	if (node->session == NULL)
		sort_input(node);
	(void) gpusort_session_next(node->session,
								ScanDirectionIsForward(direction), slot);
	estate->es_direction = direction;
	return slot;
}

static void
end_session(GsNodeState *node)
{
	/* The slot's columns point into the session. */
	ExecClearTuple(node->css.ss.ss_ScanTupleSlot);
	if (node->session != NULL)
		gpusort_session_end(node->session);
	node->session = NULL;
}

static void
gpusort_node_end(CustomScanState *css)
{
	end_session((GsNodeState *) css);
	ExecEndNode(outerPlanState(css));
}

static void
gpusort_node_rescan(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;
	PlanState  *input = outerPlanState(css);

	/* Nothing read so far: the input is rescanned before it is, if need be. */
	if (node->session == NULL)
		return;

	if (input->chgParam == NULL && gpusort_session_can_rewind(node->session))
	{
		ExecClearTuple(css->ss.ss_ScanTupleSlot);
		gpusort_session_rescan(node->session);
		return;
	}
	end_session(node);

	/* With changed parameters, ExecProcNode() rescans it by itself. */
	if (input->chgParam == NULL)
		ExecReScan(input);
}

static void
gpusort_node_mark(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	if (node->session != NULL)
		gpusort_session_mark(node->session);
}

static void
gpusort_node_restore(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	if (node->session != NULL)
		gpusort_session_restore(node->session);
}

/* ----------------------------------------------------------------
 *		reports of parallel workers
 * ----------------------------------------------------------------
 */

static Size
reports_size(int nworkers)
{
	return add_size(offsetof(GsWorkerReports, workers),
					mul_size(nworkers,
							 sizeof(((GsWorkerReports *) NULL)->workers[0])));
}

static Size
gpusort_node_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return reports_size(pcxt->nworkers);
}

static void
gpusort_node_init_dsm(CustomScanState *css, ParallelContext *pcxt,
					  void *coordinate)
{
	GsWorkerReports *reports = coordinate;

	memset(reports, 0, reports_size(pcxt->nworkers));
	reports->nworkers = pcxt->nworkers;
	((GsNodeState *) css)->shared_reports = reports;
}

static void
gpusort_node_reinit_dsm(CustomScanState *css, ParallelContext *pcxt,
						void *coordinate)
{
	/* Reports of an earlier scan stay until the next one overwrites them. */
}

static void
gpusort_node_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	((GsNodeState *) css)->shared_reports = coordinate;
}

/*
 * The shared memory is about to go: keep what EXPLAIN will want to know.  The
 * workers have filled in their reports before they returned their first row.
 */
static void
gpusort_node_shutdown(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	if (!IsParallelWorker() && node->shared_reports != NULL)
	{
		Size		size = reports_size(node->shared_reports->nworkers);

		node->worker_reports =
			MemoryContextAlloc(css->ss.ps.state->es_query_cxt, size);
		node->worker_reports->nworkers = node->shared_reports->nworkers;
		for (int n = 0; n < node->shared_reports->nworkers; n++)
		{
			node->worker_reports->workers[n].filled =
				node->shared_reports->workers[n].filled;
			pg_read_barrier();
			node->worker_reports->workers[n].report =
				node->shared_reports->workers[n].report;
		}
		node->shared_reports = NULL;
	}
	if (!IsParallelWorker() && node->plan_for_explain != NULL)
	{
		css->ss.ps.plan = node->plan_for_explain;
		node->plan_for_explain = NULL;
	}
}
