/*-------------------------------------------------------------------------
 *
 * row_store.h
 *		Keeps the rows of a sort, packed, to be read back by number.
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
 * Make an empty store in the current memory context, which is also what frees
 * it, for the rows of a sort in chunks of 2^chunk_shift rows.
 */
extern GsRowStore *gpusort_row_store_create(GsBudget *budget,
											const GsSortSpec *spec,
											unsigned chunk_shift);

/* Bytes per row, without the contents of columns of variable length. */
extern Size gpusort_row_store_width(const GsSortSpec *spec);

/*
 * Append a row; rows are numbered from 0.  Returns false, and appends nothing,
 * if the budget is used up or malloc() fails (budget->out_of_memory).
 */
extern bool gpusort_row_store_put(GsRowStore *store, const Datum *values,
								  const bool *isnull);

/*
 * Read a row.  What is passed by reference points into the store.
 */
extern void gpusort_row_store_get(const GsRowStore *store, uint32 row,
								  Datum *values, bool *isnull);

/*
 * Read n columns of a row alone: values[i] is that of column attnos[i], from 1.
 */
extern void gpusort_row_store_get_columns(const GsRowStore *store, uint32 row,
										  const AttrNumber *attnos, int n,
										  Datum *values, bool *isnull);

/*
 * A row in the form that stands alone (see row_format.h): how long it is, and
 * writing it to a place of so many bytes.
 */
extern Size gpusort_row_store_packed_size(const GsRowStore *store, uint32 row);
extern void gpusort_row_store_pack(const GsRowStore *store, uint32 row,
								   char *packed, Size bytes);

/*
 * Reading rows in sorted order is reading memory at random, so rows to come
 * are fetched ahead: their slots first, and then those rows that turn out not
 * to be in their slots.
 */
extern void gpusort_row_store_prefetch(const GsRowStore *store, uint32 row);
extern void gpusort_row_store_prefetch_elsewhere(const GsRowStore *store,
												 uint32 row);

/* Free one chunk that is not needed any more. */
extern void gpusort_row_store_free_chunk(GsRowStore *store, uint32 chunk);

#endif							/* GPUSORT_ROW_STORE_H */
