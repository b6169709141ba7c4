/*-------------------------------------------------------------------------
 *
 * gin_tids.h
 *		TIDs of a key of a GIN index: as numbers, in bytes, and in batches.
 *
 * A TID is a number that has the offset number in its lowest bits, and above it the block
 * number.  Of ascending TIDs the differences are stored (varbyte.h).  GIN's posting lists have
 * the same bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_TIDS_H
#define GPUSORT_GIN_TIDS_H

#include "access/htup_details.h"
#include "storage/itemptr.h"

#include "core/varbyte.h"

#define GPUSORT_TID_OFFSET_BITS	11
#define GPUSORT_TID_BITS		(32 + GPUSORT_TID_OFFSET_BITS)
#define GPUSORT_TID_MASK		((UINT64CONST(1) << GPUSORT_TID_BITS) - 1)

/* TIDs that are read at a time: at least those of a heap page. */
#define GPUSORT_TID_BATCH		Max(512, MaxHeapTuplesPerPage)

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

/*
 * Ascending TIDs that are read in batches.  'fill' sets 'tids' and 'count', which is 0 at the
 * end; 'next' is the first one that is not used up.
 */
typedef struct GsTidStream
{
	void		(*fill) (struct GsTidStream *stream);
	void	   *arg;
	uint32		next;
	uint32		count;
	uint64		tids[GPUSORT_TID_BATCH];
} GsTidStream;

/* Begin to read.  Sets the first batch. */
static inline void
gpusort_tid_stream_start(GsTidStream *stream)
{
	stream->next = 0;
	stream->fill(stream);
}

#endif							/* GPUSORT_GIN_TIDS_H */
