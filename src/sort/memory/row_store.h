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

/* Are two rows whole tuples that are the same, bit for bit? */
extern bool gpusort_row_store_are_same_tuples(const GsRowStore *store, uint32 a, uint32 b);

/*
 * Prefetch rows that will be read soon after that of entries[0], of which 'left' follow:
 * a slot, and half way before it is read, its row if that is not in the slot.  Rows in
 * sorted order are at random addresses.
 */
extern void gpusort_row_store_fetch_ahead(const GsRowStore *store,
										  const uint64 *entries, int64 left);

/*
 * The rows of one process, for others that have the same memory.
 */
typedef struct GsSharedRows
{
	struct GsRowChunk *chunks;
	uint32		nchunks;
	bool		has_nulls;
} GsSharedRows;

extern GsSharedRows gpusort_row_store_share(const GsRowStore *store);

/*
 * Create a store of the rows of 'n' processes, which can only be read.  Their numbers are
 * those of gpusort_key_sort_create_view().
 */
extern GsRowStore *gpusort_row_store_create_view(const GsSharedRows *rows, int n,
												 const GsSortSpec *spec,
												 unsigned chunk_shift);

/*
 * Give the rows of a view other numbers: row i is the one whose number was numbers[i].
 */
extern void gpusort_row_store_set_numbers(GsRowStore *store,
										  const uint32 *numbers);

/* Returns the format of the rows. */
extern const struct GsRowFormat *gpusort_row_store_format(const GsRowStore *store);

/*
 * Returns where a stored row is, and sets *bitmap to its NULL bitmap or to NULL, and unless 'bytes'
 * is NULL, *bytes to its length.
 */
extern char *gpusort_row_store_find(const GsRowStore *store, uint32 row,
									const uint8 **bitmap, Size *bytes);

/* Free a chunk whose rows are no longer needed. */
extern void gpusort_row_store_free_chunk(GsRowStore *store, uint32 chunk);

#endif							/* GPUSORT_ROW_STORE_H */
