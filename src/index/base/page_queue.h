/*-------------------------------------------------------------------------
 *
 * page_queue.h
 *		Pages of a new index, on their way to its file.
 *
 * The process that lays pages out, the leader, puts them into batches.  It hands full batches
 * over, and any of the processes forms tuples that they lack and writes them: parallel workers,
 * or the leader itself when it has no free page left.  So it needs no workers, and may have any
 * number of them.
 *
 *		free page --leader--> batch --any process--> tuples, WAL, file --> free page
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

#include "index/base/leaf_tuples.h"

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

/* Before any page lacks tuples: say how they are formed. */
extern void gpusort_page_queue_set_form(GsPageQueue *queue, const GsLeafForm *form);

/*
 * Returns a page to fill, as _bt_pageinit() leaves it.  At most
 * GPUSORT_QUEUE_OPEN_PAGES may be filled at a time.
 */
extern Page gpusort_page_queue_new_page(GsPageQueue *queue);

#define GPUSORT_QUEUE_OPEN_PAGES	64

/*
 * Write a page as the given block.  Blocks may come in any order, each of them once.  The
 * caller must not use the page any more.  'later' tells which tuples it lacks, in the order
 * of their rows' positions; or it is NULL.
 */
extern void gpusort_page_queue_put(GsPageQueue *queue, Relation index,
								   BlockNumber block, Page page,
								   const GsPageFills *later);

/* Returns when no page that was put lacks tuples of rows before a position. */
extern void gpusort_page_queue_recall(GsPageQueue *queue, Relation index,
									  int64 position);

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
