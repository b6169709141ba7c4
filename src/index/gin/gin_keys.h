/*-------------------------------------------------------------------------
 *
 * gin_keys.h
 *		Collects the keys of a GIN index in memory, each with its TIDs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_KEYS_H
#define GPUSORT_GIN_KEYS_H

#include "index/gin/gin_order.h"
#include "index/gin/gin_tids.h"

typedef struct GsGinKeys GsGinKeys;

/*
 * Create an empty collection that uses up to 'limit' bytes, in the current memory context.
 * All of it is freed with that context.
 */
extern GsGinKeys *gpusort_gin_keys_create(GsGinOrder *order, Size limit);

/*
 * Add the keys of one column of a row.  A key may occur more than once.  Rows come in the order
 * of their heap blocks.  Returns how many of the keys, the first ones, were added before memory
 * was used up: then take all rows, and add the others.
 */
extern uint32 gpusort_gin_keys_add(GsGinKeys *keys, const GsGinKey *added, uint32 count,
								   uint64 tid);

/* Has the system had no memory left at any time? */
extern bool gpusort_gin_keys_lacked_memory(const GsGinKeys *keys);

/* The memory that is in use. */
extern Size gpusort_gin_keys_bytes(const GsGinKeys *keys);

extern bool gpusort_gin_keys_is_empty(const GsGinKeys *keys);

/* The number of pairs of key and TID that were added, without repeated ones. */
extern int64 gpusort_gin_keys_entries(const GsGinKeys *keys);

/*
 * Take a row for the sort.  A key has one row, or several if it has many TIDs.  What a row points
 * to is valid until the next call.  Returns false after the last row.  Then the collection is
 * empty, and keys can be added again.
 */
extern bool gpusort_gin_keys_take(GsGinKeys *keys, GsGinRow *row);

#endif							/* GPUSORT_GIN_KEYS_H */
