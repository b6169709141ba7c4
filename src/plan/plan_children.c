/*-------------------------------------------------------------------------
 *
 * plan_children.c
 *		Visits the children of a plan node of any type.
 *
 * PostgreSQL has such a walker for trees of plan states, but not for plans.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "plan/plan_children.h"

void
gpusort_plan_children_visit_list(List *plans, GsChildVisitor visit,
								 void *context)
{
	ListCell   *lc;

	/* The planner leaves NULL where it has dropped an unused subplan. */
	foreach(lc, plans)
		if (lfirst(lc) != NULL)
		visit((Plan **) &lfirst(lc), context);
}

void
gpusort_plan_children_visit(Plan *plan, GsChildVisitor visit, void *context)
{
	List	   *others = NIL;

	if (plan->lefttree != NULL)
		visit(&plan->lefttree, context);
	if (plan->righttree != NULL)
		visit(&plan->righttree, context);
	switch (nodeTag(plan))
	{
		case T_SubqueryScan:
			visit(&((SubqueryScan *) plan)->subplan, context);
			break;
		case T_Append:
			others = ((Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			others = ((MergeAppend *) plan)->mergeplans;
			break;
		case T_BitmapAnd:
			others = ((BitmapAnd *) plan)->bitmapplans;
			break;
		case T_BitmapOr:
			others = ((BitmapOr *) plan)->bitmapplans;
			break;
		case T_CustomScan:
			others = ((CustomScan *) plan)->custom_plans;
			break;
		default:
			break;
	}
	gpusort_plan_children_visit_list(others, visit, context);
}
