/*-------------------------------------------------------------------------
 *
 * tid_set.c
 *		A set of TIDs of a heap, with a bit for each possible one.
 *
 * A page of 8 kB has 40 bytes of bits, which is the space of five TIDs in a sort.  The bits
 * of all pages fit in the processor's caches for tables of some gigabytes, so that it is
 * fast to add TIDs in any order, and the set yields them in ascending order.
 *
 * The bits are allocated in chunks of pages when the first TID of a chunk is added: to
 * clear all of them at the beginning could take longer than a cancelled query may.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "heap/tid_set.h"

#define PAGES_PER_CHUNK		1024

typedef uint64 GsTidSetPage[GPUSORT_TID_SET_WORDS];

struct GsTidSet
{
	MemoryContext context;
	BlockNumber nblocks;
	GsTidSetPage *chunks[FLEXIBLE_ARRAY_MEMBER];	/* NULL if without TIDs */
};

static const GsTidSetPage no_tids = {0};

static size_t
chunks_of(BlockNumber nblocks)
{
	return ((size_t) nblocks + PAGES_PER_CHUNK - 1) / PAGES_PER_CHUNK;
}

uint64
gpusort_tid_set_size(BlockNumber nblocks)
{
	return sizeof(GsTidSet) + chunks_of(nblocks) *
		(sizeof(GsTidSetPage *) + PAGES_PER_CHUNK * sizeof(GsTidSetPage));
}

GsTidSet *
gpusort_tid_set_create(BlockNumber nblocks)
{
	GsTidSet   *set = palloc0(sizeof(GsTidSet) + chunks_of(nblocks) * sizeof(GsTidSetPage *));

	set->context = CurrentMemoryContext;
	set->nblocks = nblocks;
	return set;
}

void
gpusort_tid_set_add(GsTidSet *set, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	unsigned	bit = (unsigned) ItemPointerGetOffsetNumberNoCheck(tid) - 1;
	GsTidSetPage **chunk;

	if (unlikely(block >= set->nblocks || bit >= MaxHeapTuplesPerPage))
		return;
	chunk = &set->chunks[block / PAGES_PER_CHUNK];
	if (unlikely(*chunk == NULL))
		*chunk = MemoryContextAllocZero(set->context, PAGES_PER_CHUNK * sizeof(GsTidSetPage));
	(*chunk)[block % PAGES_PER_CHUNK][bit / 64] |= UINT64CONST(1) << (bit % 64);
}

BlockNumber
gpusort_tid_set_blocks(const GsTidSet *set)
{
	return set->nblocks;
}

const uint64 *
gpusort_tid_set_page(const GsTidSet *set, BlockNumber block)
{
	const GsTidSetPage *chunk = set->chunks[block / PAGES_PER_CHUNK];

	return chunk != NULL ? chunk[block % PAGES_PER_CHUNK] : no_tids;
}
