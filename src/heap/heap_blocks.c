/*-------------------------------------------------------------------------
 *
 * heap_blocks.c
 *		Which blocks a process reads of a scan of a heap, that others may share.
 *
 * The scan is read page by page and not through the table access method, so the order of blocks is
 * decided here, as the heap decides it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/syncscan.h"
#include "access/tableam.h"

#include "heap/heap_blocks.h"

void
gpusort_heap_blocks_begin(GsHeapBlocks *blocks, HeapScanDesc scan)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	blocks->scan = scan;
	blocks->next = scan->rs_startblock;
	blocks->left = scan->rs_nblocks;
	if (shared != NULL)
		GPUSORT_BEGIN_PARALLEL_SCAN(scan, shared);
}

BlockNumber
gpusort_heap_blocks_take(GsHeapBlocks *blocks)
{
	HeapScanDesc scan = blocks->scan;
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	BlockNumber block = blocks->next;

	if (shared != NULL)
		return table_block_parallelscan_nextpage(scan->rs_base.rs_rd,
												 scan->rs_parallelworkerdata, shared);
	if (blocks->left == 0)
		return InvalidBlockNumber;
	blocks->left--;
	if (++blocks->next == scan->rs_nblocks)
		blocks->next = 0;
	if (scan->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->rs_base.rs_rd, blocks->next);
	return block;
}
