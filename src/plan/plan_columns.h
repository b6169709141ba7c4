/*-------------------------------------------------------------------------
 *
 * plan_columns.h
 *		Finds the columns of tables that the columns of a finished plan are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_COLUMNS_H
#define GPUSORT_PLAN_COLUMNS_H

#include "nodes/plannodes.h"

#include "key/key_statistics.h"

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

#endif							/* GPUSORT_PLAN_COLUMNS_H */
