/*-------------------------------------------------------------------------
 *
 * stock_ties.h
 *		Puts ties of an input in stock PostgreSQL's order, for pg_gpusort.debug_stock_ties.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STOCK_TIES_H
#define GPUSORT_STOCK_TIES_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

typedef struct GsStockTies GsStockTies;

/* Returns the next row of the input, or NULL or an empty slot. */
typedef TupleTableSlot *(*GsRowReader) (void *arg);

/*
 * Prepare to return the rows of an input in another order, in the current memory context.  'spec'
 * describes them.  Later only its bound counts, which must be set when the first row is requested.
 */
extern GsStockTies *gpusort_stock_ties_create(const GsSortSpec *spec, GsRowReader read,
											  void *arg);

/*
 * Returns the next row, or NULL after the last one.  A stable sort of these rows is in the order of
 * a stock sort of those that were read.  Beyond a bound, some are left out.  The row is valid until
 * the next call.
 */
extern TupleTableSlot *gpusort_stock_ties_next(GsStockTies *ties);

/* Free the rows.  If more are requested, they are read again. */
extern void gpusort_stock_ties_reset(GsStockTies *ties);

#endif							/* GPUSORT_STOCK_TIES_H */
