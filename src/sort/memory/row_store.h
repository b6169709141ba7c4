/*-------------------------------------------------------------------------
 *
 * row_store.h
 *		Stores the rows of a memory sort, to be read by row number.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_STORE_H
#define GPUSORT_ROW_STORE_H

#include "access/attnum.h"

#include "sort/base/budget.h"
#include "sort/base/sort_spec.h"

typedef struct GsRowStore GsRowStore;

/*
 * Create an empty store in the current memory context, for the rows of a sort, in
 * chunks of 2^chunk_shift rows.  It is freed with the memory context.
 */
extern GsRowStore *gpusort_row_store_create(GsBudget *budget,
											const GsSortSpec *spec,
											unsigned chunk_shift);

/*
 * Returns the memory per row in bytes: without the values of variable length if rows
 * are packed, and estimated if they are whole tuples.
 */
extern Size gpusort_row_store_width(const GsSortSpec *spec);

/*
 * Append a row.  Rows are numbered from 0.  Returns false and appends nothing if
 * the budget is used up or the system has no memory left (budget->out_of_memory).
 */
extern bool gpusort_row_store_put(GsRowStore *store, const Datum *values,
								  const bool *isnull);

/*
 * Read a row.  Values that are passed by reference point into the store.
 */
extern void gpusort_row_store_get(const GsRowStore *store, uint32 row,
								  Datum *values, bool *isnull);

/*
 * Read only n columns of a row: values[i] is set to column attnos[i].
 */
extern void gpusort_row_store_get_columns(const GsRowStore *store, uint32 row,
										  const AttrNumber *attnos, int n,
										  Datum *values, bool *isnull);

/*
 * The dense form of a row (see dense_row.h): returns its size, and writes that many
 * bytes.
 */
extern Size gpusort_row_store_dense_size(const GsRowStore *store, uint32 row);
extern void gpusort_row_store_make_dense(const GsRowStore *store, uint32 row,
										 char *dense, Size bytes);

/*
 * Prefetch a row.  Rows in sorted order are at random addresses, so the caller
 * prefetches rows that it will soon read: first the slot, and later, when the slot
 * is in the cache, the row if that is not in its slot.
 */
extern void gpusort_row_store_prefetch(const GsRowStore *store, uint32 row);
extern void gpusort_row_store_prefetch_elsewhere(const GsRowStore *store,
												 uint32 row);

/* Free a chunk whose rows are no longer needed. */
extern void gpusort_row_store_free_chunk(GsRowStore *store, uint32 chunk);

#endif							/* GPUSORT_ROW_STORE_H */
