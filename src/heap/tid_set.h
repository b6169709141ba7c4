/*-------------------------------------------------------------------------
 *
 * tid_set.h
 *		A set of TIDs of a heap, with a bit for each possible one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TID_SET_H
#define GPUSORT_TID_SET_H

#include "access/htup_details.h"
#include "storage/block.h"
#include "storage/itemptr.h"

/* Bits of a page: that of an offset is offset - 1. */
#define GPUSORT_TID_SET_WORDS	((MaxHeapTuplesPerPage + 63) / 64)

typedef struct GsTidSet GsTidSet;

/* Returns the most bytes that a set for so many blocks takes. */
extern uint64 gpusort_tid_set_size(BlockNumber nblocks);

/* Create an empty set for the first 'nblocks' blocks, in the current memory context. */
extern GsTidSet *gpusort_tid_set_create(BlockNumber nblocks);

/*
 * Add a TID.  One that no tuple of these blocks can have is ignored.  May allocate in the
 * set's memory context.
 */
extern void gpusort_tid_set_add(GsTidSet *set, const ItemPointerData *tid);

/* Returns the number of blocks that the set is for. */
extern BlockNumber gpusort_tid_set_blocks(const GsTidSet *set);

/* Returns the bits of a block, which must be one of these. */
extern const uint64 *gpusort_tid_set_page(const GsTidSet *set, BlockNumber block);

/* Is an offset in the bits of a block? */
static inline bool
gpusort_tid_set_has(const uint64 *page, OffsetNumber offset)
{
	unsigned	bit = offset - 1;

	return (page[bit / 64] >> (bit % 64) & 1) != 0;
}

#endif							/* GPUSORT_TID_SET_H */
