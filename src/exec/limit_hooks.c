/*-------------------------------------------------------------------------
 *
 * limit_hooks.c
 *		Tells the GpuSorts of a plan of the Limits that bound them.
 *
 * A Limit passes its bound down only to nodes that PostgreSQL knows.  So when the
 * execution starts, the states below each Limit are searched for GpuSorts in the
 * way that the bound would take, and each is told of its Limit, which it asks
 * when it is about to read its input (see limit_bound.c).
 *
 * Only nodes that ExecutorStart() begins are told of a Limit, which is not
 * those of EvalPlanQual(), whose inputs have a row or two.
 *
 * Parallel workers get the bound from the leader's node.  PostgreSQL tells them
 * of a bound as well, but when a Gather is rescanned that is still the one of its
 * first scan (see ExecParallelReinitialize()).  A worker would return too few
 * rows for a LIMIT that has grown, and ask a sort for more rows than it keeps for
 * one that has shrunk.  So workers whose plan has a GpuSort are corrected.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "exec/gpusort_node.h"
#include "exec/limit_bound.h"
#include "exec/limit_hooks.h"

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;
static ExecutorRun_hook_type prev_ExecutorRun_hook = NULL;

/*
 * A walker of states: tell the GpuSorts below of the Limit that bounds them.
 * Subplans are among the children of the nodes that use them.
 */
static bool
connect_below(PlanState *state, void *context)
{
	LimitState *limit = context;

	if (limit != NULL &&
		list_member_ptr(state->state->es_subplanstates, state))
		limit = NULL;
	if (IsA(state, LimitState))
		limit = (LimitState *) state;
	else
	{
		gpusort_node_set_limit(state, limit);
		if (!gpusort_limit_bound_passes(state->plan))
			limit = NULL;
	}
	return planstate_tree_walker(state, connect_below, limit);
}

static void
start_and_connect(QueryDesc *query, int eflags)
{
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	(void) connect_below(query->planstate, NULL);
}

/*
 * A walker of states in a parallel worker: find the bound that the leader has for
 * a GpuSort, and therefore for all nodes between it and the Gather.
 */
static bool
find_leaders_bound(PlanState *state, void *bound)
{
	if (list_member_ptr(state->state->es_subplanstates, state))
		return false;
	if (gpusort_node_leaders_bound(state, (int64 *) bound))
		return true;
	return gpusort_limit_bound_passes(state->plan) &&
		planstate_tree_walker(state, find_leaders_bound, bound);
}

/* See the file header.  A 'count' of 0 means all rows. */
static void
run_with_leaders_bound(GPUSORT_EXECUTOR_RUN_ARGS)
{
	int64		bound;

	if (IsParallelWorker() && find_leaders_bound(query->planstate, &bound))
	{
		ExecSetTupleBound(bound, query->planstate);
		count = Max(bound, 0);
	}
	if (prev_ExecutorRun_hook)
		prev_ExecutorRun_hook(GPUSORT_EXECUTOR_RUN_PASS(count));
	else
		standard_ExecutorRun(GPUSORT_EXECUTOR_RUN_PASS(count));
}

void
gpusort_limit_hooks_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = start_and_connect;
	prev_ExecutorRun_hook = ExecutorRun_hook;
	ExecutorRun_hook = run_with_leaders_bound;
}
