/*-------------------------------------------------------------------------
 *
 * agg_sort.c
 *		Sorts the rows of an aggregate by radix, if they do not come in order, and skips
 *		duplicates of an aggregate with DISTINCT.
 *
 * An Agg sorts the rows of an aggregate with DISTINCT or ORDER BY by itself if
 * they do not come in its order, and ordered-set aggregates do so in their functions.
 * This is always the case with grouping sets, each of which would need an order of its own,
 * and for aggregates of one query that want different orders.
 *
 * Here the Agg is told that the aggregate has no order, and the aggregate's functions are
 * wrapped.  The wrapper of the transition function keeps the rows of the group, which are
 * the transition state as far as the Agg knows.  The wrapper of the final function sorts
 * them, passes them to the original transition function one by one, as the Agg would, and
 * calls the original final function.  Ordered-set aggregates sort in functions of their own
 * (percentiles.c).
 *
 * Each grouping set has a transition state of its own.  The Agg selects the memory context
 * of a set before it calls a function, so the functions find the right one.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_aggregate.h"
#include "executor/execExpr.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"

#include "agg_context.h"
#include "exec/presorted_agg.h"
#include "work.h"

/* ----------------------------------------------------------------
 *		DISTINCT
 *
 * Rows with equal arguments are neighbours when they are sorted, so the arguments are compared
 * with those of the row before.
 * ----------------------------------------------------------------
 */

/* An argument that DISTINCT compares. */
typedef struct GsDistinctKey
{
	int			argument;		/* its index in the arguments of the function */
	int16		typlen;
	bool		typbyval;
	Oid			collation;
	FmgrInfo	equal;
	NullableDatum last;			/* of the last row, if there is one */
} GsDistinctKey;

typedef struct GsDistinctRows
{
	FmgrInfo	transition;		/* the aggregate's own function */
	bool		has_last;
	int			nkeys;
	GsDistinctKey keys[FLEXIBLE_ARRAY_MEMBER];
} GsDistinctRows;

/* At the end of a group. */
static void
forget_last_row(Datum state)
{
	((GsDistinctRows *) DatumGetPointer(state))->has_last = false;
}

static bool
equals_last(GsDistinctKey *key, const NullableDatum *argument)
{
	if (argument->isnull || key->last.isnull)
		return argument->isnull && key->last.isnull;
	return DatumGetBool(FunctionCall2Coll(&key->equal, key->collation,
										  key->last.value, argument->value));
}

static bool
is_duplicate(GsDistinctRows *state, FunctionCallInfo fcinfo)
{
	if (!state->has_last)
		return false;
	for (int k = 0; k < state->nkeys; k++)
	{
		GsDistinctKey *key = &state->keys[k];

		if (!equals_last(key, &fcinfo->args[key->argument]))
			return false;
	}
	return true;
}

static void
remember_row(GsDistinctRows *state, FunctionCallInfo fcinfo)
{
	MemoryContext caller = MemoryContextSwitchTo(gpusort_agg_context(fcinfo));

	if (!state->has_last)
		AggRegisterCallback(fcinfo, forget_last_row, PointerGetDatum(state));
	for (int k = 0; k < state->nkeys; k++)
	{
		GsDistinctKey *key = &state->keys[k];
		const NullableDatum *argument = &fcinfo->args[key->argument];

		if (state->has_last && !key->typbyval && !key->last.isnull)
			pfree(DatumGetPointer(key->last.value));
		key->last.isnull = argument->isnull;
		if (!argument->isnull)
			key->last.value = datumCopy(argument->value, key->typbyval,
										key->typlen);
	}
	state->has_last = true;
	MemoryContextSwitchTo(caller);
}

/*
 * Does a row differ from the row before within the group?  'fcinfo' is the call of the
 * transition function for it.
 */
static bool
is_new_row(GsDistinctRows *state, FunctionCallInfo fcinfo)
{
	if (is_duplicate(state, fcinfo))
		return false;
	remember_row(state, fcinfo);
	return true;
}

/* The wrapper of the transition function, if rows come in order. */
static Datum
transition_if_distinct(PG_FUNCTION_ARGS)
{
	FmgrInfo   *own = fcinfo->flinfo;
	GsDistinctRows *state = own->fn_extra;
	Datum		result;

	if (!is_new_row(state, fcinfo))
	{
		fcinfo->isnull = fcinfo->args[0].isnull;
		return fcinfo->args[0].value;
	}
	fcinfo->flinfo = &state->transition;
	result = FunctionCallInvoke(fcinfo);
	fcinfo->flinfo = own;
	return result;
}

static void
init_key(GsDistinctKey *key, const SortGroupClause *clause,
		 AggStatePerTrans pertrans)
{
	const TargetEntry *entry =
		get_sortgroupclause_tle((SortGroupClause *) clause,
								pertrans->aggref->args);
	Oid			type = exprType((Node *) entry->expr);

	key->argument = entry->resno;
	get_typlenbyval(type, &key->typlen, &key->typbyval);
	key->collation = list_length(pertrans->aggref->aggdistinct) == 1 ?
		pertrans->aggCollation : exprCollation((Node *) entry->expr);
	fmgr_info(get_opcode(clause->eqop), &key->equal);
}

static GsDistinctRows *
create_distinct(AggStatePerTrans pertrans)
{
	const List *clauses = pertrans->aggref->aggdistinct;
	GsDistinctRows *state =
		palloc0(offsetof(GsDistinctRows, keys) +
				list_length(clauses) * sizeof(GsDistinctKey));
	ListCell   *lc;

	foreach(lc, clauses)
		init_key(&state->keys[state->nkeys++], lfirst_node(SortGroupClause, lc),
				 pertrans);
	return state;
}

void
gpusort_agg_skip_duplicates(AggStatePerTrans pertrans)
{
	GsDistinctRows *state = create_distinct(pertrans);

	state->transition = pertrans->transfn;
	pertrans->transfn.fn_addr = transition_if_distinct;
	pertrans->transfn.fn_extra = state;
}

/* ----------------------------------------------------------------
 *		rows of a group
 * ----------------------------------------------------------------
 */

typedef struct GsAggSort
{
	AggState   *agg;
	int			transno;
	AggStatePerTransData original;	/* its functions expect rows in order */
	bool		skips_nulls;	/* rows with NULL arguments are not wanted */
	int			nargs;			/* of the transition function */
	int			ncolumns;		/* of a row: these, and what ORDER BY needs */
	GsAggRowOrder *order;
	GsDistinctRows *distinct;	/* or NULL */
	FunctionCallInfo call;		/* of the transition function */
	NullableDatum *row;			/* for a sorted row */
} GsAggSort;

/* An aggregate that has this transition state. */
typedef struct GsAggFinal
{
	GsAggSort  *sort;
	bool		has_function;	/* has it a final function? */
	FmgrInfo	original;		/* if so */
} GsAggFinal;

/* The transition state of a group. */
typedef struct GsAggGroup
{
	GsAggRows  *rows;			/* NULL when the group has ended */
	NullableDatum value;		/* then: the original transition state */
	bool		no_value;		/* before the first row: is there none? */
} GsAggGroup;

static GsAggGroup *
begin_group(FunctionCallInfo fcinfo, GsAggSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(gpusort_agg_context(fcinfo));
	GsAggGroup *group = palloc0(sizeof(GsAggGroup));
	const		AggStatePerTransData *original = &sort->original;

	group->rows = gpusort_agg_rows_begin(fcinfo, sort->order);
	group->no_value = original->initValueIsNull;
	group->value.isnull = original->initValueIsNull;
	group->value.value = original->initValueIsNull ? original->initValue :
		datumCopy(original->initValue, original->transtypeByVal,
				  original->transtypeLen);
	MemoryContextSwitchTo(caller);
	return group;
}

static bool
has_null(const NullableDatum *row, int count)
{
	for (int c = 0; c < count; c++)
		if (row[c].isnull)
			return true;
	return false;
}

/* The wrapper of the transition function: adds a row. */
static Datum
keep_row(PG_FUNCTION_ARGS)
{
	GsAggSort  *sort = fcinfo->flinfo->fn_extra;
	GsAggGroup *group = PG_ARGISNULL(0) ? begin_group(fcinfo, sort) :
		(GsAggGroup *) PG_GETARG_POINTER(0);

	if (!sort->skips_nulls || !has_null(&fcinfo->args[1], sort->nargs))
		gpusort_agg_rows_add(fcinfo, group->rows);
	PG_RETURN_POINTER(group);
}

/* ----------------------------------------------------------------
 *		end of a group
 * ----------------------------------------------------------------
 */

/* The first row of a strict function without an initial value is the first state. */
static void
begin_with_first_row(GsAggSort *sort, GsAggGroup *group, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);

	group->value.value = datumCopy(sort->call->args[1].value,
								   sort->original.transtypeByVal,
								   sort->original.transtypeLen);
	group->value.isnull = false;
	group->no_value = false;
	MemoryContextSwitchTo(caller);
}

/*
 * Call the original transition function for the row in sort->call.  This is done as the Agg
 * does it.
 */
static void
advance(GsAggSort *sort, GsAggGroup *group, MemoryContext context)
{
	FunctionCallInfo call = sort->call;
	Datum		value;

	if (sort->original.transfn.fn_strict)
	{
		if (group->no_value)
		{
			begin_with_first_row(sort, group, context);
			return;
		}
		if (group->value.isnull)
			return;
	}
	call->args[0] = group->value;
	call->isnull = false;
	value = FunctionCallInvoke(call);
	if (!sort->original.transtypeByVal &&
		DatumGetPointer(value) != DatumGetPointer(group->value.value))
		value = ExecAggCopyTransValue(sort->agg, &sort->original, value,
									  call->isnull, group->value.value,
									  group->value.isnull);
	group->value.value = value;
	group->value.isnull = call->isnull;
}

/* Sort the rows of a group and pass them to the original transition function. */
static void
end_group(FunctionCallInfo fcinfo, GsAggSort *sort, GsAggGroup *group)
{
	MemoryContext context = gpusort_agg_context(fcinfo);
	MemoryContext temporary = sort->agg->tmpcontext->ecxt_per_tuple_memory;
	MemoryContext caller;

	gpusort_agg_rows_sort(group->rows);
	if (sort->distinct != NULL)
		sort->distinct->has_last = false;
	caller = MemoryContextSwitchTo(temporary);
	while (gpusort_agg_rows_next(group->rows, sort->row))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sort->nargs * sizeof(Datum));
		MemoryContextReset(temporary);
		memcpy(&sort->call->args[1], sort->row,
			   sort->nargs * sizeof(NullableDatum));
		if (sort->distinct == NULL ||
			is_new_row(sort->distinct, sort->call))
			advance(sort, group, context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(temporary);
	group->rows = NULL;
}

/* Call the original final function, as the Agg does. */
static Datum
call_final(FunctionCallInfo fcinfo, GsAggFinal *final, const GsAggGroup *group)
{
	FmgrInfo   *own = fcinfo->flinfo;
	Datum		result;

	fcinfo->args[0].value =
		MakeExpandedObjectReadOnly(group->value.value, group->value.isnull,
								   final->sort->original.transtypeLen);
	fcinfo->args[0].isnull = group->value.isnull;
	if (!final->has_function)
	{
		fcinfo->isnull = group->value.isnull;
		return fcinfo->args[0].value;
	}
	if (final->original.fn_strict && has_null(fcinfo->args, fcinfo->nargs))
		PG_RETURN_NULL();
	fcinfo->flinfo = &final->original;
	result = FunctionCallInvoke(fcinfo);
	fcinfo->flinfo = own;
	return result;
}

/* The wrapper of the final function, or in place of a missing one. */
static Datum
return_result(PG_FUNCTION_ARGS)
{
	GsAggFinal *final = fcinfo->flinfo->fn_extra;
	GsAggGroup *group = PG_ARGISNULL(0) ? begin_group(fcinfo, final->sort) :
		(GsAggGroup *) PG_GETARG_POINTER(0);

	if (group->rows != NULL)
		end_group(fcinfo, final->sort, group);
	return call_final(fcinfo, final, group);
}

/* ----------------------------------------------------------------
 *		connecting
 * ----------------------------------------------------------------
 */

/* Make the call of a transition function that has this many arguments. */
static FunctionCallInfo
make_call(AggState *state, FmgrInfo *function, int nargs, Oid collation)
{
	FunctionCallInfo call = palloc0(SizeForFunctionCallInfo(nargs + 1));

	InitFunctionCallInfoData(*call, function, nargs + 1, collation,
							 (Node *) state, NULL);
	return call;
}

/* Save the original transition function. */
static void
save_transition(GsAggSort *sort)
{
	AggStatePerTrans pertrans = &sort->agg->pertrans[sort->transno];

	if (pertrans->numDistinctCols > 0)
		sort->distinct = create_distinct(pertrans);
	sort->skips_nulls = pertrans->transfn.fn_strict;
	sort->original = *pertrans;
	sort->call = make_call(sort->agg, &sort->original.transfn, sort->nargs,
						   pertrans->aggCollation);
}

void
gpusort_agg_leave_out_order(AggStatePerTrans pertrans, int nargs)
{
	Aggref	   *aggref = makeNode(Aggref);

	*aggref = *pertrans->aggref;
	aggref->args = list_truncate(list_copy(aggref->args), nargs);
	aggref->aggorder = NIL;
	aggref->aggdistinct = NIL;
	pertrans->aggref = aggref;
	pertrans->numInputs = nargs;
	pertrans->numTransInputs = nargs;
	pertrans->numSortCols = 0;
	pertrans->numDistinctCols = 0;
	GPUSORT_AGG_LEAVE_OUT_SORT(pertrans);
}

/* Make the aggregate one without an order, whose state is a pointer to its rows. */
static void
wrap_transition(GsAggSort *sort)
{
	AggStatePerTrans pertrans = &sort->agg->pertrans[sort->transno];

	gpusort_agg_leave_out_order(pertrans, sort->ncolumns);
	pertrans->transfn.fn_addr = keep_row;
	pertrans->transfn.fn_extra = sort;
	pertrans->transfn.fn_strict = false;
	pertrans->initValue = 0;
	pertrans->initValueIsNull = true;
	pertrans->transtypeLen = sizeof(Datum);
	pertrans->transtypeByVal = true;
	pertrans->transfn_fcinfo = make_call(sort->agg, &pertrans->transfn,
										 sort->ncolumns,
										 pertrans->aggCollation);
}

static void
wrap_final(GsAggSort *sort, AggStatePerAgg peragg)
{
	GsAggFinal *final = palloc0(sizeof(GsAggFinal));

	final->sort = sort;
	final->has_function = OidIsValid(peragg->finalfn_oid);
	final->original = peragg->finalfn;
	if (!final->has_function)
	{
		/* The Agg calls a function if there is an OID, whatever it is. */
		peragg->finalfn_oid = sort->original.transfn_oid;
		peragg->finalfn = sort->original.transfn;
	}
	peragg->finalfn.fn_addr = return_result;
	peragg->finalfn.fn_extra = final;
	peragg->finalfn.fn_strict = false;
}

bool
gpusort_agg_sort_connect(AggState *state, int transno, int nsorts)
{
	const AggStatePerTrans pertrans = &state->pertrans[transno];
	GsAggRowOrder *order;
	GsAggSort  *sort;

	if (AGGKIND_IS_ORDERED_SET(pertrans->aggref->aggkind))
		return gpusort_percentiles_connect(state, transno, nsorts, NULL);
	if (!GPUSORT_AGG_SORTS(pertrans))
		return false;
	order = gpusort_agg_row_order_create(state, pertrans->aggref, nsorts, NULL);
	if (order == NULL)
		return false;
	sort = palloc0(sizeof(GsAggSort));
	sort->agg = state;
	sort->transno = transno;
	sort->order = order;
	sort->nargs = pertrans->numTransInputs;
	sort->ncolumns = list_length(pertrans->aggref->args);
	sort->row = palloc0(sort->ncolumns * sizeof(NullableDatum));
	save_transition(sort);
	wrap_transition(sort);
	for (int a = 0; a < state->numaggs; a++)
		if (state->peragg[a].transno == transno)
			wrap_final(sort, &state->peragg[a]);
	return true;
}
