/*-------------------------------------------------------------------------
 *
 * plan_column.h
 *		Finds the column of a table that a column of a finished plan is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_COLUMN_H
#define GPUSORT_PLAN_COLUMN_H

#include "nodes/plannodes.h"

#include "key/key_statistics.h"

/*
 * Returns the column of a table that column 'attno' of a plan's rows is.  The table is InvalidOid
 * if it is an expression, or if rows come from several tables.
 */
extern GsTableColumn gpusort_plan_column(const Plan *plan, AttrNumber attno,
										 const PlannedStmt *statement);

#endif							/* GPUSORT_PLAN_COLUMN_H */
