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
 * transition function is built anew.  DISTINCT is left to agg_sort.c.
 *
 * Percentiles and the mode sort in their own functions, in all versions.  These
 * functions are replaced with those of percentiles.c.  Hypothetical-set aggregates
 * stay stock.
 *
 * An Agg without GROUP BY over a GpuSort may only want to know how many different keys there are,
 * or which keys are at some positions:
 *
 *		SELECT count(*), count(DISTINCT x) FROM ...
 *		SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM ...
 *
 * Then the GpuSort returns a single row, and the aggregates ask it instead.  Keys are counted in
 * all processes that sort, each of which has whole groups of equal ones.
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
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "exec/presorted_agg.h"
#include "loading.h"
#include "settings.h"

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

/* ----------------------------------------------------------------
 *		the order in which an aggregate wants its rows
 * ----------------------------------------------------------------
 */

/* Is sort key k the column of an argument, in the order of 'clause'? */
static bool
sorts_by(const GsSortKeys *keys, int k, AttrNumber attno,
		 const SortGroupClause *clause, Oid collation)
{
	return k < keys->nkeys && keys->attnos[k] == attno &&
		keys->operators[k] == clause->sortop &&
		keys->collations[k] == collation &&
		keys->nulls_first[k] == clause->nulls_first;
}

/* Is one of the first k sort keys this column, in that order? */
static bool
has_sorted_by(const GsSortKeys *keys, int k, AttrNumber attno,
			  const SortGroupClause *clause, Oid collation)
{
	while (--k >= 0)
		if (sorts_by(keys, k, attno, clause, collation))
			return true;
	return false;
}

/*
 * Do rows that are sorted by 'keys' come in the order of an aggregate, within groups?  The first
 * 'ngroups' keys are those of the groups.  A constant has no part in the order, nor has a column
 * that the rows are sorted by already.
 */
static bool
comes_in_order(const Aggref *aggref, const GsSortKeys *keys, int ngroups)
{
	int			k = ngroups;
	ListCell   *lc;

	foreach(lc, gpusort_agg_order_clauses(aggref))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		TargetEntry *entry = get_sortgroupclause_tle(clause, aggref->args);
		const Expr *expr = entry->expr;
		const Var  *var;
		Oid			collation = exprCollation((Node *) expr);

		if (IsA(expr, Const))
			continue;
		while (IsA(expr, RelabelType))
			expr = ((const RelabelType *) expr)->arg;
		var = (const Var *) expr;
		if (!IsA(var, Var) || var->varno != OUTER_VAR)
			return false;
		if (has_sorted_by(keys, k, var->varattno, clause, collation))
			continue;
		if (!sorts_by(keys, k, var->varattno, clause, collation))
			return false;
		k++;
	}
	return true;
}

/* Does an aggregate of all rows sort by the first of these keys, and by nothing else? */
static bool
sorts_by_first_key(const Aggref *aggref, const GsSortKeys *keys)
{
	const List *clauses = gpusort_agg_order_clauses(aggref);

	/* A constant would be in any order. */
	return list_length(clauses) == 1 &&
		!IsA(get_sortgroupclause_expr(linitial(clauses), aggref->args), Const) &&
		comes_in_order(aggref, keys, 0);
}

/* ----------------------------------------------------------------
 *		aggregates that ask the sort below
 * ----------------------------------------------------------------
 */

/* The transition function of count(*), which is called once. */
static Datum
count_rows(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(gpusort_node_counts(fcinfo->flinfo->fn_extra)->rows);
}

/* That of count(DISTINCT x). */
static Datum
count_groups(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(gpusort_node_counts(fcinfo->flinfo->fn_extra)->groups);
}

/* That of mode(), whose state are the counts. */
static Datum
take_counts(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(gpusort_node_counts(fcinfo->flinfo->fn_extra));
}

/* Its final function. */
static Datum
mode_of_counts(PG_FUNCTION_ARGS)
{
	const GsKeyCounts *counts = PG_ARGISNULL(0) ? NULL :
		(const GsKeyCounts *) PG_GETARG_POINTER(0);

	if (counts == NULL || counts->most == 0)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(counts->mode);
}

/*
 * Are all aggregates with a transition state the mode?  If its values are passed by reference, the
 * processes have no place for them.
 */
static bool
is_mode(const AggState *state, int transno)
{
	const		AggStatePerTransData *pertrans = &state->pertrans[transno];
	const TargetEntry *value;

	if (pertrans->transfn_oid != F_ORDERED_SET_TRANSITION)
		return false;
	value = linitial_node(TargetEntry, pertrans->aggref->args);
	if (!get_typbyval(exprType((Node *) value->expr)))
		return false;
	for (int a = 0; a < state->numaggs; a++)
		if (state->peragg[a].transno == transno && state->peragg[a].finalfn_oid != F_MODE_FINAL)
			return false;
	return true;
}

/* Does an aggregate count from 0 on?  One that a user has created can begin elsewhere. */
static bool
counts_from_zero(const AggStatePerTransData * pertrans)
{
	return !pertrans->initValueIsNull && DatumGetInt64(pertrans->initValue) == 0;
}

/* Returns the function that counts what an aggregate wants to know, or NULL. */
static PGFunction
counter_of(const AggState *state, int transno)
{
	const		AggStatePerTransData *pertrans = &state->pertrans[transno];

	if (pertrans->transfn_oid == F_INT8INC)
		return count_rows;
	if (pertrans->transfn_oid == F_INT8INC_ANY && pertrans->aggref->aggdistinct != NIL)
		return counts_from_zero(pertrans) ? count_groups : NULL;
	return is_mode(state, transno) ? take_counts : NULL;
}

/* Does a transition only need what the sort withholds for 'wanted'? */
static bool
is_answered(const AggState *state, int transno, const GsSortKeys *keys, GsWanted wanted)
{
	const		AggStatePerTransData *pertrans = &state->pertrans[transno];
	const Aggref *aggref = pertrans->aggref;

	if (aggref->aggfilter != NULL)
		return false;
	if (wanted == GS_WANTS_COUNTS && pertrans->transfn_oid == F_INT8INC)
		return counts_from_zero(pertrans);
	return (wanted == GS_WANTS_KEYS ? gpusort_percentiles_support(state, transno, false) :
			counter_of(state, transno) != NULL) &&
		sorts_by_first_key(aggref, keys);
}

/*
 * Returns what all aggregates of an Agg want of the sort below it, whose keys these are.  That is
 * rows if not all want the same, or if all they want is count(*).
 */
static GsWanted
find_wanted(const AggState *state, const GsSortKeys *keys)
{
	GsWanted	wanted = gpusort_percentiles_support(state, 0, false) ?
		GS_WANTS_KEYS : GS_WANTS_COUNTS;
	bool		first_key = false;

	for (int transno = 0; transno < state->numtrans; transno++)
	{
		if (!is_answered(state, transno, keys, wanted))
			return GS_WANTS_ROWS;
		first_key |= state->pertrans[transno].numTransInputs > 0;
	}
	return first_key ? wanted : GS_WANTS_ROWS;
}

/* Replace the transition function of a count or the mode. */
static void
connect_counter(AggState *state, int transno, PlanState *sort)
{
	AggStatePerTrans pertrans = &state->pertrans[transno];

	for (int a = 0; a < state->numaggs; a++)
		if (state->peragg[a].transno == transno && is_mode(state, transno))
			state->peragg[a].finalfn.fn_addr = mode_of_counts;
	pertrans->transfn.fn_addr = counter_of(state, transno);
	pertrans->transfn.fn_extra = sort;
	pertrans->transfn.fn_strict = false;	/* the row has NULLs */
	gpusort_agg_leave_out_order(pertrans, pertrans->numTransInputs);
}

/*
 * If the aggregates of an Agg over a GpuSort by 'keys' need no rows of it, have them ask it.
 * Otherwise returns false.
 */
static bool
ask_sort(AggState *state, const GsSortKeys *keys, int nsorts)
{
	PlanState  *sort = outerPlanState(state);
	GsWanted	wanted;

	if (((const Agg *) state->ss.ps.plan)->aggstrategy != AGG_PLAIN)
		return false;
	wanted = find_wanted(state, keys);
	if (wanted == GS_WANTS_ROWS || !gpusort_node_withhold(sort, wanted))
		return false;
	for (int transno = 0; transno < state->numtrans; transno++)
	{
		if (wanted == GS_WANTS_KEYS)
			(void) gpusort_percentiles_connect(state, transno, nsorts, sort);
		else
			connect_counter(state, transno, sort);
	}
	return true;
}

/* ----------------------------------------------------------------
 *		leaving sorts out
 * ----------------------------------------------------------------
 */

/* Get the keys by which the input of an Agg is sorted. */
static bool
keys_of_input(PlanState *input, GsSortKeys *keys)
{
	if (!IsA(input, SortState))
		return gpusort_node_keys(input, keys);
	*keys = gpusort_private_keys_of_sort((const Sort *) input->plan);
	return input->plan->plan_rows >= gpusort_settings_plan_rows();
}

/*
 * Leave out the sort of an aggregate if that is possible.  Returns whether it
 * is.
 */
static bool
leave_out_sort(AggState *state, int transno, const GsSortKeys *keys, int nsorts)
{
	AggStatePerTrans pertrans = &state->pertrans[transno];
	const		Agg *agg = (const Agg *) state->ss.ps.plan;

	if (gpusort_agg_order_clauses(pertrans->aggref) == NIL ||
		!comes_in_order(pertrans->aggref, keys, agg->numCols))
		return false;
	if (pertrans->aggref->aggkind != AGGKIND_NORMAL)
		return gpusort_percentiles_connect(state, transno, nsorts, outerPlanState(state));
	if (!gpusort_presorted_agg_possible(pertrans->aggref, pertrans->transfn_oid, InvalidOid,
										!pertrans->initValueIsNull))
		return false;
	if (pertrans->numDistinctCols > 0)
		gpusort_agg_skip_duplicates(pertrans);
	gpusort_agg_leave_out_order(pertrans, pertrans->numTransInputs);
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

/* Returns how many of the aggregates want their rows in an order. */
static int
count_sorts(const AggState *state)
{
	int			nsorts = 0;

	for (int transno = 0; transno < state->numtrans; transno++)
		if (gpusort_agg_order_clauses(state->pertrans[transno].aggref) != NIL)
			nsorts++;
	return nsorts;
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
	int			nsorts = count_sorts(state);
	GsSortKeys	keys;
	bool		in_order = can_build && agg->groupingSets == NIL &&
		keys_of_input(outerPlanState(state), &keys) &&
		gpusort_private_keys_begin_with(&keys, agg->numCols, agg->grpColIdx,
										agg->grpOperators, agg->grpCollations);

	if (in_order && ask_sort(state, &keys, nsorts))
	{
		build_transitions(state);
		return;
	}
	for (int transno = 0; transno < state->numtrans; transno++)
	{
		if ((in_order && leave_out_sort(state, transno, &keys, nsorts)) ||
			(many_rows && can_build && gpusort_agg_sort_connect(state, transno, nsorts)))
			build = true;
	}
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

void
gpusort_presorted_agg_replace_sorts(PlanState *state)
{
	MemoryContext caller;

	if (!IsA(state, AggState) || !may_sort((AggState *) state) ||
		!gpusort_loading_is_wanted() || !gpusort_enable ||
		(state->state->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	caller = MemoryContextSwitchTo(state->state->es_query_cxt);
	replace_sorts((AggState *) state);
	MemoryContextSwitchTo(caller);
}
