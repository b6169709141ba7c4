/*-------------------------------------------------------------------------
 *
 * stock_ties.h
 *		Exchanges ties of an input, for pg_gpusort.debug_stock_ties.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STOCK_TIES_H
#define GPUSORT_STOCK_TIES_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

typedef struct GsStockTies GsStockTies;

/* Returns the next row, in the form that a sort keeps; or NULL or an empty slot. */
typedef TupleTableSlot *(*GsRowReader) (void *arg);

/*
 * Prepare to exchange ties of the rows that 'read' returns, in the current memory context.
 * 'spec' must stay valid.  The rows are read when the first one is requested, and spec->bound
 * must be set by then.
 */
extern GsStockTies *gpusort_stock_ties_create(const GsSortSpec *spec, GsRowReader read,
											  void *arg);

/*
 * Returns the next row, or NULL after the last one.  A stable sort of these rows is in the
 * order of a stock sort of those that were read.  The row is valid until the next call.
 */
extern TupleTableSlot *gpusort_stock_ties_next(GsStockTies *ties);

/* Free the rows.  If more are requested, they are read again. */
extern void gpusort_stock_ties_reset(GsStockTies *ties);

#endif							/* GPUSORT_STOCK_TIES_H */
