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
 * Add the keys of one column of a row.  A key may occur more than once; words need not be
 * set.  Rows come in the order of their heap blocks.  Returns how many of the keys, the first
 * ones, were added before memory was used up: then write all keys as a run, call reset(), and
 * add the others.
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

/* Sort the keys.  None can be added before reset(). */
extern void gpusort_gin_keys_sort(GsGinKeys *keys);

/*
 * Get the next key in the order of the index, and its TIDs in 'streams', which belong to the
 * collection.  Keys that are equal but have other bytes are one key: the one added first.
 * Returns the number of streams, or 0 at the end.  All of it is valid until the next call.
 */
extern uint32 gpusort_gin_keys_next(GsGinKeys *keys, GsGinKey *key, GsTidStream ***streams);

/* Forget all keys, but keep the memory. */
extern void gpusort_gin_keys_reset(GsGinKeys *keys);

#endif							/* GPUSORT_GIN_KEYS_H */
