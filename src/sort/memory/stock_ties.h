/*-------------------------------------------------------------------------
 *
 * stock_ties.h
 *		Sorts ties as stock PostgreSQL does, for pg_gpusort.debug_stock_ties.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STOCK_TIES_H
#define GPUSORT_STOCK_TIES_H

#include "key/key_plan.h"
#include "sort/memory/ordering.h"
#include "sort/memory/row_store.h"

/*
 * Sort the rows again as PostgreSQL's in-memory sort does, and rearrange the
 * entries of the ordering, which must be sorted, accordingly.  Raises an error if
 * the sort operators and the encoded keys disagree about the order.
 */
extern void gpusort_stock_ties_apply(GsOrdering *ordering,
									 const GsRowStore *store,
									 TupleDesc rows,
									 const GsSortKeys *keys);

#endif							/* GPUSORT_STOCK_TIES_H */
