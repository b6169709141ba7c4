/*-------------------------------------------------------------------------
 *
 * gpusort_node.c
 *		The GpuSort executor node.
 *
 * Like a Sort, the node reads all of its input when the first row is
 * requested, and is then a cursor over the sorted rows.  It returns rows in a
 * virtual slot, whose columns point into the memory of the sort, or as whole
 * tuples in a slot for minimal tuples.
 *
 * Nothing is allocated before the first row is requested, because
 * EvalPlanQual() and plans with branches that are never executed initialize
 * many nodes that stay idle.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "settings.h"
#include "sort/base/sort_stats.h"
#include "sort/gpu/gpu_session.h"
#include "work.h"

static ExecutorFinish_hook_type prev_ExecutorFinish_hook = NULL;

static TupleTableSlot *gpusort_node_exec(PlanState *state);

static const CustomExecMethods exec_methods;

Node *
gpusort_node_create_state(CustomScan *plan)
{
	return gpusort_make_node_state(sizeof(GsNodeState), &exec_methods);
}

static GsWorkerReports *
shared_reports(GsNodeShared *shared)
{
	return (GsWorkerReports *) ((char *) shared + MAXALIGN(sizeof(GsNodeShared)));
}

/*
 * Only parallel-aware nodes get shared memory.  This node is not
 * parallel-aware, and EXPLAIN must not call it so: each worker sorts its own
 * input.  So while a parallel plan is executed, the state points to a copy of
 * the plan node that has the flag set.
 *
 * The original plan node is restored when the execution is over.  Shutdown of
 * the node would be too early: a Limit shuts its input down once it has its
 * rows, and may be rescanned.
 */
static void
ask_for_shared_memory(GsNodeState *node)
{
	PlanState  *state = &node->css.ss.ps;
	CustomScan *copy = makeNode(CustomScan);

	memcpy(copy, state->plan, sizeof(CustomScan));
	copy->scan.plan.parallel_aware = true;
	node->own_plan = state->plan;
	state->plan = (Plan *) copy;
}

static void
gpusort_node_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsNodeState *node = (GsNodeState *) css;
	CustomScan *plan = castNode(CustomScan, css->ss.ps.plan);
	GsSortTraits traits = gpusort_private_traits(plan);
	PlanState  *sorted;			/* has the rows that go to the sort */

	/* As for a Sort, the input is read once and forward. */
	node->spec.random_access = (eflags & (EXEC_FLAG_REWIND |
										  EXEC_FLAG_BACKWARD |
										  EXEC_FLAG_MARK)) != 0;
	eflags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);

	node->spec.keys = gpusort_private_keys(plan);
	node->sink = gpusort_sink_find(outerPlanState(css));
	sorted = outerPlanState(node->sink != NULL ? (PlanState *) node->sink : &css->ss.ps);
	node->source = gpusort_row_source_create_for_node(css, sorted, &node->spec);
	node->spec.plan_node = plan->scan.plan.plan_node_id;
	node->spec.expected_rows = plan->scan.plan.plan_rows;
	node->spec.expected_width = plan->scan.plan.plan_width;
	node->spec.expected_ties = traits.ties;
	node->spec.repeatable = traits.repeatable;
	node->spec.partition_keys = traits.partition_keys;
	node->spec.partition_rows = traits.partition_rows;
	node->divided = traits.divided;
	node->paired = traits.paired;
	css->ss.ps.ExecProcNode = gpusort_node_exec;

	if (node->divided > 0)
		return;
	if (IsParallelWorker() ||
		(estate->es_plannedstmt->parallelModeNeeded &&
		 (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0))
		ask_for_shared_memory(node);
}

/* Returns the state as a GsNodeState, or NULL if it is another node. */
static GsNodeState *
as_gpusort(PlanState *state)
{
	if (!IsA(state, CustomScanState) ||
		((CustomScanState *) state)->methods != &exec_methods)
		return NULL;
	return (GsNodeState *) state;
}

void
gpusort_node_set_limit(PlanState *state, LimitState *limit)
{
	GsNodeState *node = as_gpusort(state);

	if (node != NULL)
		node->limit = limit;
}

bool
gpusort_node_keys(PlanState *state, GsSortKeys *keys)
{
	GsNodeState *node = as_gpusort(state);

	if (node != NULL)
		*keys = gpusort_private_keys(castNode(CustomScan, state->plan));
	return node != NULL;
}

/* Returns the inner input of a node below the Material that a Merge Join may have. */
static PlanState *
below_material(PlanState *state)
{
	return IsA(state, MaterialState) ? outerPlanState(state) : state;
}

void
gpusort_node_connect_pair(PlanState *state)
{
	GsNodeState *pair[2];

	/* A Merge Join may have such inputs. */
	if (outerPlanState(state) == NULL || innerPlanState(state) == NULL)
		return;
	pair[0] = as_gpusort(outerPlanState(state));
	pair[1] = as_gpusort(below_material(innerPlanState(state)));
	if (pair[0] == NULL || pair[1] == NULL || !pair[0]->paired || !pair[1]->paired)
		return;
	for (int i = 0; i < 2; i++)
	{
		pair[i]->above = state;
		memcpy(pair[i]->pair, pair, sizeof(pair));
	}
}

bool
gpusort_node_withhold(PlanState *state, GsWanted wanted)
{
	GsNodeState *node = as_gpusort(state);

	if (node == NULL || node->divided > 0)
		return false;
	node->wanted = wanted;
	return true;
}

const GsKeyCounts *
gpusort_node_counts(const PlanState *state)
{
	return &((const GsNodeState *) state)->counts;
}

GsSort *
gpusort_node_withheld_sort(const PlanState *state)
{
	const GsNodeState *node = as_gpusort(unconstify(PlanState *, state));

	return node != NULL && node->withheld ? node->sort : NULL;
}

bool
gpusort_node_leaders_bound(PlanState *state, int64 *bound)
{
	GsNodeState *node = as_gpusort(state);

	if (node == NULL || node->shared == NULL || node->limit != NULL)
		return false;
	*bound = node->shared->bound;
	return true;
}

/*
 * Restore the original plan nodes, since the execution is over and EXPLAIN may
 * follow.  A planstate_tree_walker callback.
 */
static bool
give_plan_back(PlanState *state, void *context)
{
	GsNodeState *node = as_gpusort(state);

	if (node != NULL && node->own_plan != NULL)
	{
		state->plan = node->own_plan;
		node->own_plan = NULL;
	}
	return planstate_tree_walker(state, give_plan_back, context);
}

static void
finish_execution(QueryDesc *query)
{
	if (prev_ExecutorFinish_hook)
		prev_ExecutorFinish_hook(query);
	else
		standard_ExecutorFinish(query);
	if (query->plannedstmt->parallelModeNeeded)
		(void) give_plan_back(query->planstate, NULL);
}

void
gpusort_node_init(void)
{
	prev_ExecutorFinish_hook = ExecutorFinish_hook;
	ExecutorFinish_hook = finish_execution;
}

/*
 * Returns how many rows a Limit needs of its input, or -1 for all of them.
 * The Limit must have started to read or rescan its input.
 */
static int64
rows_of_limit(const LimitState *limit)
{
	if (limit->noCount || limit->limitOption == LIMIT_OPTION_WITH_TIES ||
		limit->count > PG_INT64_MAX - limit->offset)
		return -1;
	return limit->count + limit->offset;
}

/* Returns the number of rows that are currently wanted, or -1 for all. */
static int64
wanted_rows(const GsNodeState *node)
{
	if (node->limit != NULL)
		return rows_of_limit(node->limit);
	if (IsParallelWorker() && node->shared != NULL)
		return node->shared->bound;
	return -1;
}

/*
 * The input has been sorted.  Save the report, and publish it if this is a
 * worker.
 */
static void
publish_report(GsNodeState *node)
{
	GsProducerReport report = {0};

	gpusort_sort_report(node->sort, &node->report);
	node->has_report = true;
	report.sort = node->report;
	if (IsParallelWorker() && node->shared != NULL)
		gpusort_worker_reports_publish(shared_reports(node->shared), &report);
}

/*
 * Returns how many processes can put rows into the sort, or 0 if there is no sink.  Workers trust
 * encodings, so they encode no rows of a sort whose encoding is distrusted.
 */
static int
count_processes(const GsNodeState *node)
{
	return node->sink == NULL || gpusort_key_plan_is_distrusted(node->spec.key_plan) ? 0 :
		gpusort_sink_processes(node->sink);
}

/* If there is a sink below, tell it where to put the rows. */
static void
open_sink(GsNodeState *node)
{
	if (node->sink == NULL)
		return;

	/* A stock order of ties needs all rows in a single process. */
	if (node->spec.processes == 0 || gpusort_debug_stock_ties ||
		!gpusort_sink_open(node->sink, node->spec.tuple_attno > 0, node->sort))
		gpusort_sink_close(node->sink);
}

/* Add the rows of the input to the sort. */
static void
add_rows(GsNodeState *node)
{
	GsReason	failure;

	if (node->sink == NULL || !gpusort_sink_is_open(node->sink))
	{
		gpusort_row_source_add_rows(node->source, node->sort);
		return;
	}
	failure = gpusort_sink_add_rows(node->sink);
	if (failure != GS_REASON_NONE)
		gpusort_sort_fail(node->sort, failure);
}

/* Rows are lost: prepare to read the input again from its start. */
static void
begin_again(GsNodeState *node)
{
	/* First, because workers may wait until we read what they merge. */
	gpusort_sort_stop(node->sort);
	if (node->sink != NULL)
		gpusort_sink_close(node->sink);
	gpusort_row_source_rewind(node->source);
	gpusort_sort_restart(node->sort);
}

/* Read the input and sort it, again if its rows are lost. */
static void
sort_rows(GsNodeState *node)
{
	MemoryContext caller = MemoryContextSwitchTo(node->css.ss.ps.state->es_query_cxt);

	do
	{
		if (gpusort_sort_is_lost(node->sort))
			begin_again(node);
		add_rows(node);
	} while (!gpusort_sort_finish(node->sort));
	MemoryContextSwitchTo(caller);
}

/* Is the node divided, and not executed without shared memory by one process? */
static bool
is_divided(const GsNodeState *node)
{
	return node->divided > 0 && node->shared != NULL;
}

/*
 * The inner sort of a pair is about to be read before the node above does so.  If it has to be
 * rescanned, do that now.
 */
static void
rescan_inner(GsNodeState *node)
{
	PlanState  *inner = innerPlanState(node->above);

	if (inner->chgParam != NULL)
		ExecReScan(inner);
	inner = below_material(inner);
	if (inner->chgParam != NULL)
		ExecReScan(inner);
}

/*
 * Sort together with the other processes that execute the node.  The outer sort of a pair, which
 * the node above executes first, sorts the inputs of both.
 */
static void
sort_divided(GsNodeState *node)
{
	GsNodeState *const *nodes = node->paired ? node->pair : &node;
	int			n = node->paired ? 2 : 1;

	if (node->paired)
	{
		if (node != node->pair[0])
			elog(ERROR, "the inner sort of a pair is executed first");
		rescan_inner(node);
	}
	gpusort_divided_sort(nodes, n);
	for (int i = 0; i < n; i++)
	{
		nodes[i]->bound = -1;
		nodes[i]->sorted = true;
		if (nodes[i]->sort == NULL)
			continue;
		publish_report(nodes[i]);
		gpusort_requirement_check(&nodes[i]->report);
	}
}

/* Begin a sort.  If first keys are to be counted, each process counts those of some ranges. */
static void
begin_sort(GsNodeState *node)
{
	GsSortSpec *spec = &node->spec;

	spec->group_keys = node->wanted == GS_WANTS_COUNTS && spec->processes > 1 ? 1 : 0;
	node->sort = gpusort_sort_begin(spec);
	open_sink(node);
	if (spec->group_keys == 0 || gpusort_sink_is_open(node->sink))
		return;

	/* The sink stays closed, so the leader does. */
	gpusort_sort_end(node->sort);
	spec->group_keys = 0;
	node->sort = gpusort_sort_begin(spec);
}

/* Count the first keys of the rows of all processes. */
static void
count_keys(GsNodeState *node)
{
	while (memset(&node->counts, 0, sizeof(node->counts)),
		   !gpusort_first_keys_count(node->sort, &node->counts))
		sort_rows(node);
	if (node->sink == NULL || !gpusort_sink_is_open(node->sink))
		return;
	gpusort_sink_await(node->sink);
	gpusort_sink_add_counts(node->sink, node->sort, &node->counts);
}

/* The rows are sorted: withhold them if that is wanted. */
static void
withhold_rows(GsNodeState *node)
{
	if (node->wanted == GS_WANTS_COUNTS)
		count_keys(node);
	node->withheld = node->wanted == GS_WANTS_COUNTS ||
		(node->wanted == GS_WANTS_KEYS && gpusort_sort_can_rewind(node->sort));
	node->answered = false;

	/* Only few rows will be read, so others need not sort ranges. */
	if (node->withheld)
		gpusort_sort_stop(node->sort);
}

/* Sort the input below this node alone. */
static void
sort_alone(GsNodeState *node)
{
	GsSortSpec *spec = &node->spec;

	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);
	node->bound = wanted_rows(node);
	spec->processes = count_processes(node);
	spec->by_pages = gpusort_row_source_prepare(node->source);
	spec->bound = Max(node->bound, 0);
	begin_sort(node);
	sort_rows(node);
	withhold_rows(node);
	publish_report(node);
	gpusort_requirement_check(&node->report);
}

static pg_noinline void
sort_input(GsNodeState *node)
{
	EState	   *estate = node->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	/* The input is always read forward. */
	estate->es_direction = ForwardScanDirection;
	if (is_divided(node))
		sort_divided(node);
	else
		sort_alone(node);
	estate->es_direction = direction;
	node->sorted = true;
	node->plain = node->sort != NULL && !node->withheld &&
		gpusort_row_source_is_plain(node->source);
	MemoryContextSwitchTo(caller);
}

/* The sort has returned no row: there is none, or it is lost. */
static pg_noinline TupleTableSlot *
no_next_row(GsNodeState *node, bool forward, TupleTableSlot *slot)
{
	EState	   *estate = node->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;

	if (gpusort_sort_is_lost(node->sort))
	{
		/* The input is always read forward. */
		estate->es_direction = ForwardScanDirection;
		sort_rows(node);
		estate->es_direction = direction;
		return gpusort_row_source_return(node->source, node->sort, forward, slot);
	}
	if (node->sink != NULL)
	{
		/* They may still sort rows beyond the bound. */
		gpusort_sort_stop(node->sort);
		gpusort_sink_await(node->sink);
	}
	return slot;
}

/* Returns one row that stands for all rows, if there are any. */
static pg_noinline TupleTableSlot *
withheld_row(GsNodeState *node)
{
	TupleTableSlot *slot = ExecClearTuple(node->css.ss.ss_ScanTupleSlot);
	int64		nrows = node->wanted == GS_WANTS_COUNTS ? node->counts.rows :
		gpusort_sort_count(node->sort);

	if (node->answered || nrows == 0)
		return slot;
	node->answered = true;
	return ExecStoreAllNullTuple(slot);
}

/* Return a row before the input is sorted, or one that is not that of the sort as it is. */
static TupleTableSlot *
exec_otherwise(GsNodeState *node, bool forward)
{
	TupleTableSlot *slot = node->css.ss.ss_ScanTupleSlot;

	if (unlikely(!node->sorted))
		sort_input(node);
	if (unlikely(node->sort == NULL))
		return ExecClearTuple(slot);
	if (unlikely(node->withheld))
		return withheld_row(node);
	slot = gpusort_row_source_return(node->source, node->sort, forward, slot);
	return likely(!TupIsNull(slot)) ? slot : no_next_row(node, forward, slot);
}

/* ExecProcNode of the node, without the detour through ExecCustomScan(). */
static TupleTableSlot *
gpusort_node_exec(PlanState *state)
{
	GsNodeState *node = (GsNodeState *) state;
	TupleTableSlot *slot = node->css.ss.ss_ScanTupleSlot;
	bool		forward = ScanDirectionIsForward(state->state->es_direction);

	CHECK_FOR_INTERRUPTS();

	if (unlikely(!node->plain))
		return exec_otherwise(node, forward);
	if (likely(gpusort_sort_next(node->sort, forward, slot)))
		return slot;
	return no_next_row(node, forward, slot);
}

static void
end_sort(GsNodeState *node)
{
	/* The slot's columns point into the memory of the sort. */
	ExecClearTuple(node->css.ss.ss_ScanTupleSlot);
	if (node->sink != NULL)
		gpusort_sink_forget_sort(node->sink);
	if (node->sort != NULL)
		gpusort_sort_end(node->sort);
	node->sort = NULL;
	node->sorted = false;
	node->withheld = false;
	node->plain = false;
}

static void
gpusort_node_end(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	/* Other processes may still be sorting, so end them first. */
	if (node->sort != NULL && !IsParallelWorker())
		gpusort_sort_stop(node->sort);
	ExecEndNode(outerPlanState(css));

	/* The Gather above will end those, so their memory ends with the query. */
	if (node->divided > 0 && node->sort != NULL && !IsParallelWorker())
	{
		ExecClearTuple(css->ss.ss_ScanTupleSlot);
		gpusort_sort_end_reading(node->sort);
	}
	else
		end_sort(node);
}

/* Can the sorted rows be returned again, starting with the first one? */
static bool
can_rewind(const GsNodeState *node)
{
	int64		wanted = wanted_rows(node);
	bool		enough = wanted >= 0 && wanted <= node->bound;

	return gpusort_sort_can_rewind(node->sort) &&
		(enough || !(gpusort_sort_is_cut(node->sort) || gpusort_row_source_is_cut(node->source)));
}

static void
gpusort_node_rescan(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;
	PlanState  *input = outerPlanState(css);

	/*
	 * The input has not been read yet.  If it has to be rescanned, that
	 * happens when it is first read.
	 */
	if (node->sort == NULL)
		return;

	/*
	 * The Gather has ended the workers.  If the leader has begun another sort
	 * already, that remains.
	 */
	if (node->divided > 0)
	{
		if (node->sorted)
			end_sort(node);
		if (input->chgParam == NULL)
			ExecReScan(input);
		return;
	}

	node->answered = false;
	if (input->chgParam == NULL && node->wanted == GS_WANTS_COUNTS)
		return;
	if (input->chgParam == NULL && can_rewind(node))
	{
		ExecClearTuple(css->ss.ss_ScanTupleSlot);
		gpusort_sort_rescan(node->sort);
		return;
	}

	/* End other processes that still sort, before the memory that they use. */
	gpusort_sort_stop(node->sort);

	/* With changed parameters, ExecProcNode() does this otherwise. */
	if (node->sink != NULL || input->chgParam == NULL)
		ExecReScan(input);
	end_sort(node);
}

static void
gpusort_node_mark(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	if (node->sort != NULL)
		gpusort_sort_mark(node->sort);
}

static void
gpusort_node_restore(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	if (node->sort != NULL)
		gpusort_sort_restore(node->sort);
}

/* ----------------------------------------------------------------
 *		parallel workers
 *
 * A node and its copies in workers share the leader's bound, which is
 * followed by the workers' reports.
 * ----------------------------------------------------------------
 */

/* In the leader of a divided sort, when no worker of an earlier scan is left: begin. */
static void
begin_divided(GsNodeState *node, int nworkers)
{
	MemoryContext caller = MemoryContextSwitchTo(node->css.ss.ps.state->es_query_cxt);

	end_sort(node);
	gpusort_divided_begin(node, nworkers);
	MemoryContextSwitchTo(caller);
}

static Size
gpusort_node_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return add_size(MAXALIGN(sizeof(GsNodeShared)),
					gpusort_worker_reports_size(pcxt->nworkers));
}

/*
 * The reports of an earlier scan are kept until the next scan overwrites them.
 */
static void
gpusort_node_reinit_dsm(CustomScanState *css, ParallelContext *pcxt,
						void *coordinate)
{
	GsNodeState *node = (GsNodeState *) css;

	node->shared->bound = wanted_rows(node);
	if (node->divided > 0)
		begin_divided(node, pcxt->nworkers);
}

static void
gpusort_node_init_dsm(CustomScanState *css, ParallelContext *pcxt,
					  void *coordinate)
{
	GsNodeState *node = (GsNodeState *) css;

	node->shared = coordinate;
	gpusort_worker_reports_init(shared_reports(node->shared), pcxt->nworkers);
	gpusort_node_reinit_dsm(css, pcxt, coordinate);
}

static void
gpusort_node_init_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	((GsNodeState *) css)->shared = coordinate;
}

/*
 * The shared memory is about to be freed, so copy what EXPLAIN needs.  Workers
 * have published their reports before they returned their first rows.  In a worker: if the sort is
 * divided, publish once more, with the rows that it has returned.
 */
static void
gpusort_node_shutdown(CustomScanState *css)
{
	GsNodeState *node = (GsNodeState *) css;

	if (IsParallelWorker() && node->divided > 0 && node->sort != NULL)
		publish_report(node);
	if (IsParallelWorker() || node->shared == NULL)
		return;
	if (node->divided > 0 && node->sort != NULL)
		gpusort_sort_stop(node->sort);
	if (css->ss.ps.instrument != NULL)
		node->worker_reports =
			gpusort_worker_reports_copy(shared_reports(node->shared),
										css->ss.ps.state->es_query_cxt);
	node->shared = NULL;
}

static void
gpusort_node_explain(CustomScanState *css, List *ancestors,
					 struct ExplainState *es)
{
	const GsNodeState *node = (GsNodeState *) css;
	const GsNodeState *other = node->pair[node == node->pair[0] ? 1 : 0];
	GsSortReport report = node->report;

	gpusort_explain_keys(castNode(CustomScan, css->ss.ps.plan), ancestors, es);
	if (other != NULL)
		gpusort_explain_pair(castNode(CustomScan, other->css.ss.ps.plan), ancestors, es);
	if (node->has_report)
	{
		/*
		 * Include the time spent on returning rows, if the sort still exists.
		 */
		if (node->sort != NULL)
			gpusort_sort_report(node->sort, &report);
		gpusort_explain_sort(&report, 0, es);
	}
	if (node->worker_reports != NULL)
		gpusort_explain_sort_workers(node->worker_reports, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpuSort",
	.BeginCustomScan = gpusort_node_begin,
	.EndCustomScan = gpusort_node_end,
	.ReScanCustomScan = gpusort_node_rescan,
	.MarkPosCustomScan = gpusort_node_mark,
	.RestrPosCustomScan = gpusort_node_restore,
	.EstimateDSMCustomScan = gpusort_node_estimate_dsm,
	.InitializeDSMCustomScan = gpusort_node_init_dsm,
	.ReInitializeDSMCustomScan = gpusort_node_reinit_dsm,
	.InitializeWorkerCustomScan = gpusort_node_init_worker,
	.ShutdownCustomScan = gpusort_node_shutdown,
	.ExplainCustomScan = gpusort_node_explain,
};
