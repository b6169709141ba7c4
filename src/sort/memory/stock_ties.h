/*-------------------------------------------------------------------------
 *
 * stock_ties.h
 *		pg_gpusort.debug_stock_ties: the order of stock PostgreSQL among ties.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STOCK_TIES_H
#define GPUSORT_STOCK_TIES_H

#include "key/key_plan.h"
#include "sort/memory/ordering.h"
#include "sort/memory/row_store.h"

/*
 * Sort the rows again as PostgreSQL's in-memory sort does, and put the entries
 * of the ordering, which must be sorted, in that order.  Errors out if the
 * operators' order is not the order of the encoded keys.
 */
extern void gpusort_stock_ties_apply(GsOrdering *ordering,
									 const GsRowStore *store,
									 TupleDesc rows,
									 const GsSortKeys *keys);

#endif							/* GPUSORT_STOCK_TIES_H */
