/*-------------------------------------------------------------------------
 *
 * plan_children.h
 *		The children of a plan node, of whatever type it is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_CHILDREN_H
#define GPUSORT_PLAN_CHILDREN_H

#include "nodes/plannodes.h"

/* Called with the place of a child, which it may put another plan into. */
typedef void (*GsChildVisitor) (Plan **child, void *context);

/*
 * Visit each child of a node.  Plans of subplans and CTEs are not children:
 * see PlannedStmt.subplans.
 */
extern void gpusort_plan_children_visit(Plan *plan, GsChildVisitor visit,
										void *context);

/* Visit each plan of a list that is not NULL. */
extern void gpusort_plan_children_visit_list(List *plans,
											 GsChildVisitor visit,
											 void *context);

#endif							/* GPUSORT_PLAN_CHILDREN_H */
