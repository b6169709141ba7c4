/*-------------------------------------------------------------------------
 *
 * distinct_rows.c
 *		DISTINCT in an aggregate whose rows come in order.
 *
 * Rows with equal arguments are neighbours then.  So the arguments are compared
 * with those of the row before.  Either the caller does that for each row, or the
 * aggregate's transition function is wrapped in one that does, and passes on only
 * rows that differ.  The executor forgets the arguments of the last row when a
 * group ends, since they are in memory of the group.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "agg_context.h"
#include "exec/agg_private.h"

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

struct GsDistinctRows
{
	FmgrInfo	transition;		/* the aggregate's own function */
	bool		has_last;
	int			nkeys;
	GsDistinctKey keys[FLEXIBLE_ARRAY_MEMBER];
};

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

void
gpusort_distinct_rows_begin(GsDistinctRows *state)
{
	state->has_last = false;
}

bool
gpusort_distinct_rows_is_new(GsDistinctRows *state, FunctionCallInfo fcinfo)
{
	if (is_duplicate(state, fcinfo))
		return false;
	remember_row(state, fcinfo);
	return true;
}

/* The wrapper of the transition function. */
static Datum
transition_if_distinct(PG_FUNCTION_ARGS)
{
	FmgrInfo   *own = fcinfo->flinfo;
	GsDistinctRows *state = own->fn_extra;
	Datum		result;

	if (!gpusort_distinct_rows_is_new(state, fcinfo))
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

GsDistinctRows *
gpusort_distinct_rows_create(AggStatePerTrans pertrans)
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
gpusort_distinct_rows_connect(AggStatePerTrans pertrans)
{
	GsDistinctRows *state = gpusort_distinct_rows_create(pertrans);

	state->transition = pertrans->transfn;
	pertrans->transfn.fn_addr = transition_if_distinct;
	pertrans->transfn.fn_extra = state;
}
