/*-------------------------------------------------------------------------
 *
 * hypothetical_sets.c
 *		Hypothetical-set aggregates that count rows instead of sorting them.
 *
 * rank(), dense_rank(), percent_rank() and cume_dist() say where a row, given by their
 * direct arguments, would be among the rows of a group.  PostgreSQL sorts all of them
 * together.  To compare each row with that one is enough, in any order of the rows.
 * Only dense_rank() needs them in order, so that equal rows are next to each other.
 *
 * The direct arguments have to be known before the rows come, so they must not contain
 * columns of the group.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_aggregate.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "agg_context.h"
#include "exec/hypothetical_sets.h"

/* A column by which the rows are ordered. */
typedef struct GsSetKey
{
	int			argument;		/* of the transition function */
	SortSupportData comparison;
	int16		typlen;
	bool		typbyval;
} GsSetKey;

/* What is the same for all groups. */
typedef struct GsHypotheticalSet
{
	AggState   *agg;
	List	   *direct_arguments;	/* ExprStates */
	bool		distinct;		/* count different rows only? */
	int			nkeys;
	GsSetKey	keys[FLEXIBLE_ARRAY_MEMBER];
} GsHypotheticalSet;

/* The transition state of a group. */
typedef struct GsRowCounts
{
	int64		nrows;
	int64		nbefore;		/* those before the hypothetical row */
	int64		nequal;			/* those equal to it */
	bool		has_last;
	NullableDatum *last;		/* the last row before it, for dense_rank() */
	NullableDatum hypothetical[FLEXIBLE_ARRAY_MEMBER];
} GsRowCounts;

static NullableDatum
copy_value(const GsSetKey *key, NullableDatum value)
{
	if (!value.isnull)
		value.value = datumCopy(value.value, key->typbyval, key->typlen);
	return value;
}

/* Evaluate the direct arguments, of which those by which rows are ordered are kept. */
static void
make_hypothetical_row(const GsHypotheticalSet *set, GsRowCounts *counts,
					  MemoryContext group)
{
	MemoryContext caller = CurrentMemoryContext;

	for (int k = 0; k < set->nkeys; k++)
	{
		const GsSetKey *key = &set->keys[k];
		NullableDatum value;

		value.value = ExecEvalExpr((ExprState *) list_nth(set->direct_arguments,
														  key->argument - 1),
								   set->agg->ss.ps.ps_ExprContext, &value.isnull);
		MemoryContextSwitchTo(group);
		counts->hypothetical[k] = copy_value(key, value);
		MemoryContextSwitchTo(caller);
	}
}

static GsRowCounts *
begin_counting(FunctionCallInfo fcinfo, const GsHypotheticalSet *set)
{
	MemoryContext group = gpusort_agg_context(fcinfo);
	Size		size = set->nkeys * sizeof(NullableDatum);
	GsRowCounts *counts =
		MemoryContextAllocZero(group, offsetof(GsRowCounts, hypothetical) + size);

	counts->last = MemoryContextAllocZero(group, size);
	make_hypothetical_row(set, counts, group);
	return counts;
}

/* Compare the row that has come with another one. */
static int
compare_row(const GsHypotheticalSet *set, FunctionCallInfo fcinfo,
			const NullableDatum *other)
{
	for (int k = 0; k < set->nkeys; k++)
	{
		const GsSetKey *key = &set->keys[k];
		const NullableDatum *value = &fcinfo->args[key->argument];
		int			order =
			ApplySortComparator(value->value, value->isnull, other[k].value,
								other[k].isnull, (SortSupport) &key->comparison);

		if (order != 0)
			return order;
	}
	return 0;
}

/* Is the row equal to the last one before the hypothetical row? */
static bool
equals_last(const GsHypotheticalSet *set, FunctionCallInfo fcinfo,
			const GsRowCounts *counts)
{
	return counts->has_last && compare_row(set, fcinfo, counts->last) == 0;
}

static void
remember_last(const GsHypotheticalSet *set, FunctionCallInfo fcinfo,
			  GsRowCounts *counts)
{
	MemoryContext caller = MemoryContextSwitchTo(gpusort_agg_context(fcinfo));

	for (int k = 0; k < set->nkeys; k++)
	{
		const GsSetKey *key = &set->keys[k];

		if (counts->has_last && !key->typbyval && !counts->last[k].isnull)
			pfree(DatumGetPointer(counts->last[k].value));
		counts->last[k] = copy_value(key, fcinfo->args[key->argument]);
	}
	counts->has_last = true;
	MemoryContextSwitchTo(caller);
}

static void
count_row(const GsHypotheticalSet *set, FunctionCallInfo fcinfo,
		  GsRowCounts *counts)
{
	int			order = compare_row(set, fcinfo, counts->hypothetical);

	counts->nrows++;
	if (order == 0)
		counts->nequal++;
	if (order >= 0 || (set->distinct && equals_last(set, fcinfo, counts)))
		return;
	counts->nbefore++;
	if (set->distinct)
		remember_last(set, fcinfo, counts);
}

/* The transition function. */
static Datum
add_row(PG_FUNCTION_ARGS)
{
	const GsHypotheticalSet *set = fcinfo->flinfo->fn_extra;
	GsRowCounts *counts = PG_ARGISNULL(0) ? begin_counting(fcinfo, set) :
		(GsRowCounts *) PG_GETARG_POINTER(0);

	count_row(set, fcinfo, counts);
	PG_RETURN_POINTER(counts);
}

/* Returns the counts of a group, which are 0 if it has no rows. */
static const GsRowCounts *
counts_of(FunctionCallInfo fcinfo)
{
	static const GsRowCounts none = {.nrows = 0};

	return PG_ARGISNULL(0) ? &none : (GsRowCounts *) PG_GETARG_POINTER(0);
}

/* The final function of rank() and dense_rank(). */
static Datum
rank(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(counts_of(fcinfo)->nbefore + 1);
}

static Datum
percent_rank(PG_FUNCTION_ARGS)
{
	const GsRowCounts *counts = counts_of(fcinfo);

	if (counts->nrows == 0)
		PG_RETURN_FLOAT8(0);
	PG_RETURN_FLOAT8((double) counts->nbefore / (double) counts->nrows);
}

static Datum
cume_dist(PG_FUNCTION_ARGS)
{
	const GsRowCounts *counts = counts_of(fcinfo);

	PG_RETURN_FLOAT8((double) (counts->nbefore + counts->nequal + 1) /
					 (double) (counts->nrows + 1));
}

/* Returns the function that replaces a final function, or NULL. */
static PGFunction
replacement_of(Oid final_oid)
{
	switch (final_oid)
	{
		case F_RANK_FINAL:
		case F_DENSE_RANK_FINAL:
			return rank;
		case F_PERCENT_RANK_FINAL:
			return percent_rank;
		case F_CUME_DIST_FINAL:
			return cume_dist;
		default:
			return NULL;
	}
}

/* Have the direct arguments the same values for all rows? */
static bool
are_constant(const List *arguments)
{
	Node	   *node = (Node *) arguments;

	return !contain_var_clause(node) && !contain_volatile_functions(node) &&
		!contain_subplans(node);
}

bool
gpusort_hypothetical_sets_supports(const Aggref *aggref, Oid transition_oid,
								   Oid final_oid, bool in_order)
{
	return aggref->aggkind == AGGKIND_HYPOTHETICAL &&
		transition_oid == F_ORDERED_SET_TRANSITION_MULTI &&
		replacement_of(final_oid) != NULL &&
		(in_order || final_oid != F_DENSE_RANK_FINAL) &&
		list_length(aggref->aggdirectargs) == list_length(aggref->args) &&
		are_constant(aggref->aggdirectargs);
}

static void
init_key(GsSetKey *key, SortGroupClause *clause, const Aggref *aggref)
{
	const TargetEntry *entry = get_sortgroupclause_tle(clause, aggref->args);

	key->argument = entry->resno;
	get_typlenbyval(exprType((Node *) entry->expr), &key->typlen,
					&key->typbyval);
	key->comparison.ssup_cxt = CurrentMemoryContext;
	key->comparison.ssup_collation = exprCollation((Node *) entry->expr);
	key->comparison.ssup_nulls_first = clause->nulls_first;
	PrepareSortSupportFromOrderingOp(clause->sortop, &key->comparison);
}

static AggStatePerAgg
aggregate_of(const AggState *state, int transno)
{
	for (int a = 0; a < state->numaggs; a++)
		if (state->peragg[a].transno == transno)
			return &state->peragg[a];
	elog(ERROR, "pg_gpusort: a transition state without an aggregate");
	return NULL;
}

void
gpusort_hypothetical_sets_connect(AggState *state, int transno)
{
	AggStatePerTrans pertrans = &state->pertrans[transno];
	AggStatePerAgg peragg = aggregate_of(state, transno);
	const List *clauses = pertrans->aggref->aggorder;
	GsHypotheticalSet *set =
		palloc0(offsetof(GsHypotheticalSet, keys) +
				list_length(clauses) * sizeof(GsSetKey));
	ListCell   *lc;

	set->agg = state;
	set->direct_arguments = peragg->aggdirectargs;
	set->distinct = peragg->finalfn_oid == F_DENSE_RANK_FINAL;
	foreach(lc, clauses)
		init_key(&set->keys[set->nkeys++], lfirst_node(SortGroupClause, lc),
				 pertrans->aggref);
	pertrans->transfn.fn_addr = add_row;
	pertrans->transfn.fn_extra = set;
	peragg->finalfn.fn_addr = replacement_of(peragg->finalfn_oid);
}
