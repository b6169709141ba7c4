/*-------------------------------------------------------------------------
 *
 * limit_bound.c
 *		How many of a sort's rows a Limit above it wants.
 *
 * The executor passes the bound of a Limit down through certain nodes to the
 * Sorts below (see ExecSetTupleBound()), but not to custom nodes.  Before the
 * execution the search of the plan follows the same way with the constants of
 * LIMIT and OFFSET.  What is no constant is known when the Limit reads its
 * first row, and may be another number each time that it is rescanned.  So each
 * GpuSort is told of its Limit when the execution starts, and asks it when it
 * is about to read its input.
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

/*
 * The part of its rows up to which a heap keeps ahead of sorting everything,
 * for which fresh memory may have to be found: a session's first sort of 5 M
 * rows breaks even at 1 %, or at 2 % if they are wide, later ones long before.
 */
#define BOUND_PART_OF_ROWS	0.02

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;
static ExecutorRun_hook_type prev_ExecutorRun_hook = NULL;

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
		const		Const *part = (const Const *) parts[i];

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

int64
gpusort_limit_bound_now(const LimitState *limit)
{
	if (limit->noCount || limit->limitOption == LIMIT_OPTION_WITH_TIES ||
		limit->count > PG_INT64_MAX - limit->offset)
		return -1;
	return limit->count + limit->offset;
}

bool
gpusort_limit_bound_is_small(double bound, double rows)
{
	return bound >= 0 && bound < rows * BOUND_PART_OF_ROWS;
}

void
gpusort_limit_bound_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = start_and_connect;
	prev_ExecutorRun_hook = ExecutorRun_hook;
	ExecutorRun_hook = run_with_leaders_bound;
}
