/*-------------------------------------------------------------------------
 *
 * stock_sort.h
 *		Sorts rows with PostgreSQL's tuplesort, if an encoding of their keys is distrusted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STOCK_SORT_H
#define GPUSORT_STOCK_SORT_H

#include "nodes/execnodes.h"

#include "sort/base/sort_spec.h"
#include "sort/sort.h"

typedef struct GsStockSort GsStockSort;

/*
 * Execute the input, whose rows are of type 'tupdesc', and sort it in the order of 'keys', of
 * which an encoding is distrusted (see distrust.h), but was not when the query was planned.
 * The sort is then a cursor before the first row.  The input is read in the current memory
 * context, and the rows are in one below it.
 */
extern GsStockSort *gpusort_stock_sort(const GsSortSpec *spec, const GsSortKeys *keys,
									   TupleDesc tupdesc, PlanState *input);

/*
 * Move to the next or previous row and store it in 'slot', a virtual slot of the
 * rows' type.  Values passed by reference are valid until the next call.  If there is
 * no such row, the slot is cleared.  Moving backward, rescanning, and marking a
 * position, requires spec->random_access.
 */
extern void gpusort_stock_sort_next(GsStockSort *sort, bool forward,
									TupleTableSlot *slot);
extern void gpusort_stock_sort_rescan(GsStockSort *sort);
extern void gpusort_stock_sort_mark(GsStockSort *sort);
extern void gpusort_stock_sort_restore(GsStockSort *sort);

extern void gpusort_stock_sort_report(GsStockSort *sort,
									  GsSortReport *report);

extern void gpusort_stock_sort_end(GsStockSort *sort);

#endif							/* GPUSORT_STOCK_SORT_H */
