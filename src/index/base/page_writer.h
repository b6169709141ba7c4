/*-------------------------------------------------------------------------
 *
 * page_writer.h
 *		Writes finished pages of a new index.
 *
 * Nobody else looks at the index before its transaction commits, so pages
 * bypass shared buffers.
 *
 * Pages go through a queue.  The process that lays pages out, the leader, puts them into
 * batches.  It hands full batches over, and any of the processes forms tuples that they lack and
 * writes them: parallel workers, or the leader itself when it has no free page left.  So it needs
 * no workers, and may have any number of them.
 *
 *		free page --leader--> batch --any process--> tuples, WAL, file --> free page
 *
 * The leader alone makes the file longer, before it hands a batch over.  A process thus
 * writes only blocks that are there, and no two processes the same one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_WRITER_H
#define GPUSORT_PAGE_WRITER_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "index/base/leaf_tuples.h"

/* ---- The queue, in memory of the leader, or in memory that it shares with workers ---- */

typedef struct GsPageQueue GsPageQueue;

/* The number of bytes of a queue for the leader alone, or for workers as well. */
extern Size gpusort_page_queue_bytes(bool shared);

/*
 * Make an empty queue in memory of gpusort_page_queue_bytes().  The index has no blocks yet.
 * 'use_wal' says whether pages are logged.
 */
extern GsPageQueue *gpusort_page_queue_init(void *memory, bool shared, bool use_wal);

/* There will be no more pages, so workers can end. */
extern void gpusort_page_queue_close(GsPageQueue *queue);

/* In a worker: write pages until the queue is closed. */
extern void gpusort_page_queue_work(GsPageQueue *queue, Relation index);

/* ---- In the leader ---- */

typedef struct GsPageWriter GsPageWriter;

/*
 * Begin to write the main fork of an index that has no blocks.  'queue' is an empty one
 * that workers write as well, or NULL.  'form' is how the tuples are formed that pages
 * lack, or NULL if they lack none.  The writer is
 * allocated in the current memory context.  After an error, freeing that
 * context is all that is needed.
 */
extern GsPageWriter *gpusort_page_writer_begin(Relation index, GsPageQueue *queue,
											   const GsLeafForm *form);

/*
 * Returns a page to fill, as _bt_pageinit() leaves it; other kinds of indexes initialize it
 * anew.  It belongs to the writer.
 */
extern Page gpusort_page_writer_new_page(GsPageWriter *writer);

/*
 * Write a page as the given block.  Blocks may come in any order, each of them
 * once.  The caller must not use the page any more.  If tuples of the page are still to be
 * formed, 'later' tells which.  Otherwise it has no rows or is NULL.
 */
extern void gpusort_page_writer_put(GsPageWriter *writer, BlockNumber block,
									Page page, const GsLeafFill *later);

/* Returns when no row before a position is needed for the pages that were put. */
extern void gpusort_page_writer_recall(GsPageWriter *writer, int64 position);

/*
 * Write the remaining pages, and make the file as durable as the persistence
 * of the index requires.
 */
extern void gpusort_page_writer_end(GsPageWriter *writer);

/*
 * Instead of that: forget all pages, also those that are being filled, and wait until no process
 * writes any.  The index must then be truncated, and can be written from its first block on.
 */
extern void gpusort_page_writer_abandon(GsPageWriter *writer);

#endif							/* GPUSORT_PAGE_WRITER_H */
