/*-------------------------------------------------------------------------
 *
 * gin_tids.h
 *		TIDs of a key of a GIN index: as numbers, in bytes, and of several lists together.
 *
 * A TID is a number that has the offset number in its lowest bits, and above it the block
 * number.  Of ascending TIDs the differences are stored, seven bits in a byte, the lowest
 * bits first; the highest bit of a byte says that another one follows.  GIN's posting
 * lists have the same bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_TIDS_H
#define GPUSORT_GIN_TIDS_H

#include "access/htup_details.h"
#include "storage/itemptr.h"

#define GPUSORT_TID_OFFSET_BITS	11
#define GPUSORT_TID_BITS		(32 + GPUSORT_TID_OFFSET_BITS)
#define GPUSORT_TID_MASK		((UINT64CONST(1) << GPUSORT_TID_BITS) - 1)

/* The most bytes of a difference. */
#define GPUSORT_TID_MAX_BYTES	7

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

/* Write a difference, of which there is room for all bytes.  Returns the end. */
static inline uint8 *
gpusort_tid_write(uint8 *bytes, uint64 difference)
{
	while (difference > 0x7F)
	{
		*bytes++ = (uint8) (difference | 0x80);
		difference >>= 7;
	}
	*bytes++ = (uint8) difference;
	return bytes;
}

/* Read a difference.  Returns the end. */
static inline const uint8 *
gpusort_tid_read(const uint8 *bytes, uint64 *difference)
{
	uint64		value = *bytes & 0x7F;

	for (unsigned shift = 7; (*bytes++ & 0x80) != 0; shift += 7)
		value |= (uint64) (*bytes & 0x7F) << shift;
	*difference = value;
	return bytes;
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

/*
 * Get up to GPUSORT_TID_BATCH of the TIDs of several streams in ascending order, each TID
 * once.  'last' is the last TID that was returned before, or 0.  Returns their number, which
 * is 0 at the end.
 */
extern uint32 gpusort_tid_streams_read(GsTidStream **streams, uint32 nstreams,
									   uint64 last, uint64 *tids);

#endif							/* GPUSORT_GIN_TIDS_H */
