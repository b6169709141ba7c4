/*-------------------------------------------------------------------------
 *
 * row_order.h
 *		Determines whether the rows of a sort come in the order that is wanted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_ORDER_H
#define GPUSORT_ROW_ORDER_H

#include "nodes/plannodes.h"

typedef enum GsRowOrder
{
	GS_ROWS_UNORDERED,			/* or it is not known */
	GS_ROWS_IN_ORDER,
	GS_ROWS_REVERSED
} GsRowOrder;

/*
 * Returns the order in which the input of a Sort returns its rows, in relation
 * to the order that the Sort makes.  Reads the system catalogs.
 */
extern GsRowOrder gpusort_row_order(const Sort *sort,
									const PlannedStmt *statement);

#endif							/* GPUSORT_ROW_ORDER_H */
