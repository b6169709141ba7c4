/*-------------------------------------------------------------------------
 *
 * finished_plans.h
 *		Visits finished plans, and tells what is below and above the sorts in them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FINISHED_PLANS_H
#define GPUSORT_FINISHED_PLANS_H

#include "nodes/plannodes.h"

#include "key/key_statistics.h"

/* ---- Visiting plans, and whether they can be read a second time: input_repeat.c ---- */

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

/* ---- The columns of tables that their columns are: plan_columns.c ---- */

/* Returns the plan below a subquery scan, or NULL. */
extern const Plan *gpusort_plan_below_subquery(const Plan *plan);

/*
 * Returns the column of a table that column 'attno' of a plan's rows is.  The table is InvalidOid
 * if it is an expression, or too many nodes are between.  Of an Append, it is that of the input
 * with most rows.
 */
extern GsTableColumn gpusort_plan_column(const Plan *plan, AttrNumber attno,
										 const PlannedStmt *statement);

/*
 * Does a plan group rows by columns of tables?  How many groups there are is then known from
 * statistics.
 */
extern bool gpusort_plan_groups_columns(const Plan *plan, const PlannedStmt *statement);

/* ---- How many rows of each partition a window wants: window_rows.c ---- */

/*
 * Returns how many of the first rows of each partition the window of a finished plan wants, whose
 * input is sorted by these keys; or 0 if it may want all.
 */
extern int	gpusort_window_rows_wanted(const WindowAgg *window, const GsSortKeys *keys);

#endif							/* GPUSORT_FINISHED_PLANS_H */
