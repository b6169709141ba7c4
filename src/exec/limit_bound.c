/*-------------------------------------------------------------------------
 *
 * limit_bound.c
 *		Determines how many of a sort's rows a Limit above it wants.
 *
 * The executor passes the bound of a Limit down through certain nodes to the
 * Sorts below (see ExecSetTupleBound()), but not to custom nodes.  At planning
 * time, the search for sorts follows the same path through the plan, with the
 * constants of LIMIT and OFFSET.  Other values are known only when the Limit
 * reads its first row, and may change each time it is rescanned.  So when the
 * execution starts, we search the plan states below each Limit for GpuSorts,
 * along the path that the bound would take, and set the Limit of each.  A GpuSort
 * asks its Limit for the bound when it is about to read its input.
 *
 * Only nodes that ExecutorStart() initializes are told of their Limit.  That
 * excludes those of EvalPlanQual(), whose inputs have only a row or two.
 *
 * Parallel workers get the bound from the leader's node.  PostgreSQL also
 * tells them of a bound, but when a Gather is rescanned, that is still the
 * bound of its first scan (see ExecParallelReinitialize()).  If the LIMIT has
 * grown, a worker would return too few rows; if it has shrunk, a worker would
 * request more rows from a sort than the sort keeps.  So we correct the bound
 * in workers whose plan has a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

#include "exec/gpusort_node.h"
#include "exec/limit_bound.h"
#include "exec/presorted_agg.h"

double
gpusort_limit_bound_estimate(const Node *count, const Node *offset,
							 LimitOption option)
{
	const Node *parts[] = {count, offset};
	double		bound = 0;

	if (count == NULL || option == LIMIT_OPTION_WITH_TIES)
		return GPUSORT_NO_BOUND;
	for (int i = 0; i < lengthof(parts); i++)
	{
		const Const *part = (const Const *) parts[i];

		if (part == NULL)
			continue;
		if (!IsA(part, Const))
			return GPUSORT_UNKNOWN_BOUND;
		if (!part->constisnull)
			bound += (double) DatumGetInt64(part->constvalue);
		else if (i == 0)
			return GPUSORT_NO_BOUND;	/* LIMIT NULL is no limit */
	}
	return bound;
}

bool
gpusort_limit_bound_passes(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_MergeAppend:
		case T_Result:
		case T_Gather:
		case T_GatherMerge:
			return true;
		case T_SubqueryScan:
			return plan->qual == NIL;
		default:
			return false;
	}
}

/* ----------------------------------------------------------------
 *		when the execution starts
 * ----------------------------------------------------------------
 */

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;
static ExecutorRun_hook_type prev_ExecutorRun_hook = NULL;

/*
 * Set the Limit of the GpuSorts in a tree, connect those that are a pair, and replace the sorts of
 * aggregates.  Subplans are among the children of the nodes that use them; a Limit does not bound
 * them.  A planstate_tree_walker callback.
 */
static bool
connect_below(PlanState *state, void *context)
{
	LimitState *limit = context;

	if (limit != NULL &&
		list_member_ptr(state->state->es_subplanstates, state))
		limit = NULL;
	gpusort_node_connect_pair(state);
	gpusort_presorted_agg_replace_sorts(state);
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
 * In a parallel worker, find the leader's bound for a GpuSort, which holds for
 * all nodes between it and the Gather.  A planstate_tree_walker callback.
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

/*
 * Correct the bound of a worker, as the file header explains.  A 'count' of 0
 * means all rows.
 */
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
gpusort_limit_bound_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = start_and_connect;
	prev_ExecutorRun_hook = ExecutorRun_hook;
	ExecutorRun_hook = run_with_leaders_bound;
}
