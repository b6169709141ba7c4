/*-------------------------------------------------------------------------
 *
 * input_repeat.h
 *		Visits plans, and determines whether the input of a sort can be read a second time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_REPEAT_H
#define GPUSORT_INPUT_REPEAT_H

#include "nodes/plannodes.h"

/* The subplans of a statement, which all of its sorts have in common. */
typedef struct GsSubplans
{
	List	   *plans;			/* PlannedStmt.subplans */
	bool		judged;
	bool		keep_order;		/* if so: do they return the same rows in the
								 * same order each time? */
} GsSubplans;

/*
 * Does a plan that has been read return the same rows again after ExecReScan(), in any
 * order?  The sorts below it must have been judged before, or not be taken over.
 */
extern bool gpusort_input_is_repeatable(const Plan *plan, GsSubplans *subplans);

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

#endif							/* GPUSORT_INPUT_REPEAT_H */
