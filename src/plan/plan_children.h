/*-------------------------------------------------------------------------
 *
 * plan_children.h
 *		Visits the children of a plan node of any type.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_CHILDREN_H
#define GPUSORT_PLAN_CHILDREN_H

#include "nodes/plannodes.h"

/*
 * Called with a pointer to the parent's field that holds the child, in which
 * it may store another plan.
 */
typedef void (*GsChildVisitor) (Plan **child, void *context);

/*
 * Visit each child of a node.  The plans of subplans and CTEs are not
 * children; they are in PlannedStmt.subplans.
 */
extern void gpusort_plan_children_visit(Plan *plan, GsChildVisitor visit,
										void *context);

/* Visit each plan of a list, except those that are NULL. */
extern void gpusort_plan_children_visit_list(List *plans,
											 GsChildVisitor visit,
											 void *context);

#endif							/* GPUSORT_PLAN_CHILDREN_H */
