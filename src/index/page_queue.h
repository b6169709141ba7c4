/*-------------------------------------------------------------------------
 *
 * page_queue.h
 *		Finished pages of a new index, on their way to its file.
 *
 * The process that makes pages, the leader, puts them into batches.  It hands full batches
 * over, and any of the processes writes them: parallel workers, or the leader itself when
 * it has no free page left.  So it needs no workers, and may have any number of them.
 *
 *		free page --leader--> batch --any process--> WAL, file --> free page
 *
 * The leader alone makes the file longer, before it hands a batch over.  A process thus
 * writes only blocks that are there, and no two processes the same one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_QUEUE_H
#define GPUSORT_PAGE_QUEUE_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

/* In memory of the leader, or in memory that it shares with workers. */
typedef struct GsPageQueue GsPageQueue;

/* The number of bytes of a queue for the leader alone, or for workers as well. */
extern Size gpusort_page_queue_bytes(bool shared);

/*
 * Make an empty queue for an index without blocks in so many bytes.  'use_wal' says whether
 * pages are logged.
 */
extern GsPageQueue *gpusort_page_queue_init(void *memory, bool shared, bool use_wal);

/* ---- In the leader ---- */

/*
 * Returns a page to fill, of BLCKSZ bytes and undefined content.  At most
 * GPUSORT_QUEUE_OPEN_PAGES may be filled at a time.
 */
extern Page gpusort_page_queue_new_page(GsPageQueue *queue);

#define GPUSORT_QUEUE_OPEN_PAGES	64

/*
 * Write a page as the given block.  Blocks may come in any order, each of them once.  The
 * caller must not use the page any more.
 */
extern void gpusort_page_queue_put(GsPageQueue *queue, Relation index,
								   BlockNumber block, Page page);

/* Write all pages that were put, and wait until they are in the file. */
extern void gpusort_page_queue_flush(GsPageQueue *queue, Relation index);

/*
 * Forget all pages, also those that are being filled, and wait until no process writes any.
 * The index must then be truncated, and can be written from its first block on.
 */
extern void gpusort_page_queue_discard(GsPageQueue *queue);

/* There will be no more pages, so workers can end. */
extern void gpusort_page_queue_close(GsPageQueue *queue);

/* ---- In a worker ---- */

/* Write pages until the queue is closed. */
extern void gpusort_page_queue_work(GsPageQueue *queue, Relation index);

#endif							/* GPUSORT_PAGE_QUEUE_H */
