/*-------------------------------------------------------------------------
 *
 * agg_order.c
 *		The order in which an aggregate wants its rows, and whether they come in it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "exec/agg_private.h"

const List *
gpusort_agg_order_clauses(const Aggref *aggref)
{
	return aggref->aggdistinct != NIL ? aggref->aggdistinct : aggref->aggorder;
}

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

bool
gpusort_agg_order_is_of(const Aggref *aggref, const GsSortKeys *keys, int ngroups)
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

bool
gpusort_agg_order_is_of_first_key(const Aggref *aggref, const GsSortKeys *keys)
{
	const List *clauses = gpusort_agg_order_clauses(aggref);

	/* A constant would be in any order. */
	return list_length(clauses) == 1 &&
		!IsA(get_sortgroupclause_expr(linitial(clauses), aggref->args), Const) &&
		gpusort_agg_order_is_of(aggref, keys, 0);
}

void
gpusort_agg_order_drop(AggStatePerTrans pertrans)
{
	Aggref	   *aggref = makeNode(Aggref);

	*aggref = *pertrans->aggref;
	aggref->args = list_truncate(list_copy(aggref->args),
								 pertrans->numTransInputs);
	aggref->aggorder = NIL;
	aggref->aggdistinct = NIL;
	pertrans->aggref = aggref;
	pertrans->numInputs = pertrans->numTransInputs;
	pertrans->numSortCols = 0;
	pertrans->numDistinctCols = 0;
}
