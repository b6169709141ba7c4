/*-------------------------------------------------------------------------
 *
 * heap_blocks.h
 *		Which blocks a process reads of a scan of a heap, that others may share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_BLOCKS_H
#define GPUSORT_HEAP_BLOCKS_H

#include "access/heapam.h"

typedef struct GsHeapBlocks
{
	HeapScanDesc scan;
	BlockNumber next;			/* of a scan that is not shared */
	BlockNumber left;			/* likewise */
} GsHeapBlocks;

/* Begin with the first block of a scan that has begun. */
extern void gpusort_heap_blocks_begin(GsHeapBlocks *blocks, HeapScanDesc scan);

/* Returns the next block to read, or InvalidBlockNumber. */
extern BlockNumber gpusort_heap_blocks_take(GsHeapBlocks *blocks);

#endif							/* GPUSORT_HEAP_BLOCKS_H */
