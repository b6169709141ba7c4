/*-------------------------------------------------------------------------
 *
 * plan_columns.c
 *		Finds the columns of tables that the columns of a finished plan are.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "parser/parsetree.h"

#include "plan/finished_plans.h"

/*
 * How many nodes down a column is followed to its table.  In a plan of a hundred windows, each
 * above its sort, all sorts would follow their keys down to the scan.
 */
#define MOST_NODES			16

/* Returns the column that an entry of a target list is, or NULL if it is an expression. */
static const Var *
var_of(const List *tlist, AttrNumber attno)
{
	const Expr *expr;

	if (attno <= 0 || attno > list_length(tlist))
		return NULL;
	expr = list_nth_node(TargetEntry, tlist, attno - 1)->expr;
	if (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Var) ? (const Var *) expr : NULL;
}

const Plan *
gpusort_plan_below_subquery(const Plan *plan)
{
	return IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : NULL;
}

/* Returns the one of some plans that has most rows. */
static const Plan *
largest_of(const List *plans)
{
	const Plan *largest = linitial(plans);
	ListCell   *lc;

	foreach(lc, plans)
		if (((const Plan *) lfirst(lc))->plan_rows > largest->plan_rows)
		largest = lfirst(lc);
	return largest;
}

/* Returns the plan that the columns of a plan's input are of, or NULL. */
static const Plan *
outer_of(const Plan *plan)
{
	if (IsA(plan, Append))
		return largest_of(((const Append *) plan)->appendplans);
	if (IsA(plan, MergeAppend))
		return largest_of(((const MergeAppend *) plan)->mergeplans);
	return outerPlan(plan);
}

GsTableColumn
gpusort_plan_column(const Plan *plan, AttrNumber attno, const PlannedStmt *statement)
{
	GsTableColumn none = {InvalidOid, InvalidAttrNumber};
	const List *tlist = NIL;

	for (int n = 0; n < MOST_NODES && plan != NULL; n++)
	{
		const Var  *var = var_of(tlist != NIL ? tlist : plan->targetlist, attno);
		const RangeTblEntry *table;

		if (var == NULL || var->varattno <= 0)
			return none;
		attno = var->varattno;
		tlist = NIL;
		if (var->varno == OUTER_VAR)
			plan = outer_of(plan);
		else if (var->varno == INNER_VAR)
			plan = innerPlan(plan);
		else if (var->varno == INDEX_VAR && IsA(plan, CustomScan))
			tlist = ((const CustomScan *) plan)->custom_scan_tlist;
		else if (var->varno == INDEX_VAR && IsA(plan, IndexOnlyScan))
			tlist = ((const IndexOnlyScan *) plan)->indextlist;
		else if (gpusort_plan_below_subquery(plan) != NULL)
			plan = gpusort_plan_below_subquery(plan);
		else if (IS_SPECIAL_VARNO(var->varno))
			return none;		/* of a foreign join, for example */
		else
		{
			table = rt_fetch(var->varno, statement->rtable);
			return table->rtekind == RTE_RELATION ?
				(GsTableColumn)
			{
				table->relid, attno
			} : none;
		}
	}
	return none;
}

bool
gpusort_plan_groups_columns(const Plan *plan, const PlannedStmt *statement)
{
	const		Agg *agg = (const Agg *) plan;

	if (!IsA(plan, Agg) || agg->numCols == 0)
		return false;
	for (int i = 0; i < agg->numCols; i++)
		if (!OidIsValid(gpusort_plan_column(outerPlan(plan), agg->grpColIdx[i],
											statement).table))
			return false;
	return true;
}
