/*-------------------------------------------------------------------------
 *
 * gin_tids.h
 *		TIDs of a key of a GIN index: as numbers, in bytes, and of several lists together.
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

/* Several streams that are read together. */
typedef struct GsTidStreams
{
	GsTidStream **streams;		/* in the order of their next TIDs */
	uint32		count;			/* of those that are not at their ends */
	uint64		last;			/* TID that was returned; 0 at the beginning */
} GsTidStreams;

/* Begin to read streams that have been started.  Changes their order in the array. */
extern void gpusort_tid_streams_start(GsTidStreams *streams, GsTidStream **array,
									  uint32 count);

/*
 * Get up to GPUSORT_TID_BATCH of their TIDs in ascending order, each TID once.  Returns their
 * number, which is 0 at the end.
 */
extern uint32 gpusort_tid_streams_read(GsTidStreams *streams, uint64 *tids);

#endif							/* GPUSORT_GIN_TIDS_H */
