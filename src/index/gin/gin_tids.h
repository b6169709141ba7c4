/*-------------------------------------------------------------------------
 *
 * gin_tids.h
 *		TIDs of a key of a GIN index, as numbers.
 *
 * A TID is a number that has the offset number in its lowest bits, and above it the block
 * number.  Of ascending TIDs the differences are stored (varbyte.h).  GIN's posting lists have
 * the same bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_TIDS_H
#define GPUSORT_GIN_TIDS_H

#include "storage/itemptr.h"

#include "core/varbyte.h"

#define GPUSORT_TID_OFFSET_BITS	11
#define GPUSORT_TID_BITS		(32 + GPUSORT_TID_OFFSET_BITS)
#define GPUSORT_TID_MASK		((UINT64CONST(1) << GPUSORT_TID_BITS) - 1)

static inline uint64
gpusort_tid_number(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << GPUSORT_TID_OFFSET_BITS |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static inline void
gpusort_tid_set(ItemPointerData *tid, uint64 number)
{
	ItemPointerSet(tid, (BlockNumber) (number >> GPUSORT_TID_OFFSET_BITS),
				   (OffsetNumber) (number & ((1 << GPUSORT_TID_OFFSET_BITS) - 1)));
}

#endif							/* GPUSORT_GIN_TIDS_H */
