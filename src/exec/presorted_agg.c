/*-------------------------------------------------------------------------
 *
 * presorted_agg.c
 *		Aggregates that need no sort of their own, because rows come in order.
 *
 * An Agg sorts the arguments of an aggregate with DISTINCT or ORDER BY by
 * itself, once for each group.  If a sort below it has put the rows into the
 * order of the groups and then of the arguments, that is wasted.  PostgreSQL
 * 16 leaves it out.  In 15 we do: when the execution starts, the Agg is told
 * that such an aggregate has no order, and the expression that calls its
 * transition function is built anew.  DISTINCT is left to distinct_rows.c.
 *
 * Percentiles and the mode sort in their own functions, in all versions.  These
 * functions are replaced with those of percentiles.c.  Hypothetical-set aggregates
 * stay stock.
 *
 * If no aggregate needs any rows of a GpuSort, agg_of_sort.c has them ask that instead.
 *
 * The rows of other aggregates, such as those of grouping sets, are sorted by agg_sort.c.
 *
 * That the rows come in order is derived from the plan itself, and not from
 * what the planner has intended, so a Sort that a query asks for will do, too.
 * An Agg that ExecutorStart() does not initialize, as in EvalPlanQual(), sorts
 * again, with the same result.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_aggregate.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "jit/jit.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "exec/agg_private.h"
#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "exec/presorted_agg.h"
#include "loading.h"
#include "settings.h"

static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

/*
 * A strict function whose state begins with the first value is not called for
 * that value, so DISTINCT would not see it.
 */
static bool
calls_for_first_row(const Aggref *aggref, bool strict, bool has_initial)
{
	return aggref->aggdistinct == NIL || !strict || has_initial;
}

bool
gpusort_presorted_agg_possible(const Aggref *aggref, Oid transition_oid,
							   Oid final_oid, bool has_initial)
{
	if (aggref->aggkind != AGGKIND_NORMAL)
		return gpusort_percentiles_supports(aggref, transition_oid, final_oid);
	return !GPUSORT_CORE_PRESORTS_AGGS &&
		(aggref->aggdistinct != NIL || aggref->aggorder != NIL) &&
		calls_for_first_row(aggref, func_strict(transition_oid), has_initial);
}

/* Get the keys by which the input of an Agg is sorted. */
static bool
keys_of_input(PlanState *input, GsSortKeys *keys)
{
	if (!IsA(input, SortState))
		return gpusort_node_keys(input, keys);
	*keys = gpusort_private_keys_of_sort((const Sort *) input->plan);
	return input->plan->plan_rows >= gpusort_settings_plan_rows();
}

/* Are the first sort keys those of the groups, in any order? */
static bool
starts_with_groups(const GsSortKeys *keys, const Agg * agg)
{
	if (keys->nkeys < agg->numCols)
		return false;
	for (int g = 0; g < agg->numCols; g++)
	{
		bool		found = false;

		for (int k = 0; k < agg->numCols; k++)
			found |= keys->attnos[k] == agg->grpColIdx[g] &&
				keys->collations[k] == agg->grpCollations[g];
		if (!found)
			return false;
	}
	return true;
}

/* Does every aggregate that shares a transition state have such functions? */
static bool
all_finals_possible(const AggState *state, int transno)
{
	const AggStatePerTrans pertrans = &state->pertrans[transno];

	for (int a = 0; a < state->numaggs; a++)
	{
		const AggStatePerAgg peragg = &state->peragg[a];

		if (peragg->transno == transno &&
			!gpusort_presorted_agg_possible(peragg->aggref,
											pertrans->transfn_oid,
											peragg->finalfn_oid,
											!pertrans->initValueIsNull))
			return false;
	}
	return true;
}

/*
 * Leave out the sort of an aggregate if that is possible.  Returns whether it
 * is.
 */
static bool
leave_out_sort(AggState *state, int transno, const GsSortKeys *keys)
{
	AggStatePerTrans pertrans = &state->pertrans[transno];
	const		Agg *agg = (const Agg *) state->ss.ps.plan;

	if (gpusort_agg_order_clauses(pertrans->aggref) == NIL ||
		!all_finals_possible(state, transno) ||
		!gpusort_agg_order_is_of(pertrans->aggref, keys, agg->numCols))
		return false;
	if (AGGKIND_IS_ORDERED_SET(pertrans->aggref->aggkind))
		gpusort_percentiles_connect(state, transno, NULL);
	else
	{
		if (pertrans->numDistinctCols > 0)
			gpusort_distinct_rows_connect(pertrans);
		gpusort_agg_order_drop(pertrans);
	}
	return true;
}

/*
 * Build the expressions that call the transition functions, one for each pass over the
 * rows.  Compiled code would call the functions by their names, so they are interpreted.
 */
static void
build_transitions(AggState *state)
{
	EState	   *estate = state->ss.ps.state;
	int			jit_flags = estate->es_jit_flags;

	estate->es_jit_flags = PGJIT_NONE;
	for (int p = 0; p < state->numphases; p++)
	{
		AggStatePerPhase phase = &state->phases[p];

		if (phase->aggnode == NULL)
			continue;
		phase->evaltrans = ExecBuildAggTrans(state, phase, true, false, false);
		phase->evaltrans_cache[0][0] = phase->evaltrans;
	}
	estate->es_jit_flags = jit_flags;
}

/*
 * Sort the rows of aggregates that are left.  'sorts' has those that can be sorted, and
 * NULLs.
 */
static void
connect_sorts(GsAggSort *const *sorts, int count)
{
	int			nsorts = 0;

	for (int i = 0; i < count; i++)
		nsorts += sorts[i] != NULL;
	for (int i = 0; i < count; i++)
		if (sorts[i] != NULL)
			gpusort_agg_sort_connect(sorts[i], nsorts);
}

/*
 * Leave out the sorts of an Agg that are superfluous, and replace the others.  Expressions
 * with subplans cannot be built a second time.
 */
static void
replace_sorts(AggState *state)
{
	const		Agg *agg = (const Agg *) state->ss.ps.plan;
	bool		can_build = state->ss.ps.subPlan == NIL;
	bool		many_rows =
		outerPlanState(state)->plan->plan_rows >= gpusort_settings_plan_rows();
	bool		build = false;
	GsAggSort **sorts = palloc0(state->numtrans * sizeof(GsAggSort *));
	GsSortKeys	keys;
	bool		in_order = can_build && agg->groupingSets == NIL &&
		keys_of_input(outerPlanState(state), &keys) &&
		starts_with_groups(&keys, agg);

	if (in_order && gpusort_agg_of_sort_connect(state, &keys))
	{
		build_transitions(state);
		return;
	}
	for (int transno = 0; transno < state->numtrans; transno++)
	{
		if (in_order && leave_out_sort(state, transno, &keys))
			build = true;
		else if (many_rows && can_build)
		{
			sorts[transno] = gpusort_agg_sort_create(state, transno);
			build |= sorts[transno] != NULL;
		}
	}
	connect_sorts(sorts, state->numtrans);
	if (build)
		build_transitions(state);
}

/* Only aggregates of one stage, in groups that come one after the other, can sort. */
static bool
may_sort(const AggState *state)
{
	const		Agg *agg = (const Agg *) state->ss.ps.plan;

	return state->numtrans > 0 && agg->aggsplit == AGGSPLIT_SIMPLE &&
		(agg->aggstrategy == AGG_PLAIN || agg->aggstrategy == AGG_SORTED);
}

/* A planstate_tree_walker callback. */
static bool
visit(PlanState *state, void *context)
{
	if (IsA(state, AggState) && may_sort((AggState *) state))
	{
		MemoryContext caller =
			MemoryContextSwitchTo(state->state->es_query_cxt);

		replace_sorts((AggState *) state);
		MemoryContextSwitchTo(caller);
	}
	return planstate_tree_walker(state, visit, context);
}

static void
start_with_presorted_aggs(QueryDesc *query, int eflags)
{
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	if (gpusort_loading_is_wanted() && gpusort_enable &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		(void) visit(query->planstate, NULL);
}

void
gpusort_presorted_agg_init(void)
{
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = start_with_presorted_aggs;
}
