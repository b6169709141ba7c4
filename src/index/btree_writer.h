/*-------------------------------------------------------------------------
 *
 * btree_writer.h
 *		Writes finished pages of a new btree index.
 *
 * Nobody else looks at the index before its transaction commits, so pages
 * bypass shared buffers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_WRITER_H
#define GPUSORT_BTREE_WRITER_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "index/leaf_tuples.h"
#include "index/page_queue.h"

typedef struct GsBtreeWriter GsBtreeWriter;

/*
 * Begin to write the main fork of an index that has no blocks.  'queue' is an empty one
 * that workers write as well, or NULL.  The writer is
 * allocated in the current memory context.  After an error, freeing that
 * context is all that is needed.
 */
extern GsBtreeWriter *gpusort_btree_writer_begin(Relation index, GsPageQueue *queue);

/*
 * Returns a page to fill, as _bt_pageinit() leaves it.  It belongs to the writer.
 */
extern Page gpusort_btree_writer_new_page(GsBtreeWriter *writer);

/*
 * Write a page as the given block.  Blocks may come in any order, each of them
 * once.  The caller must not use the page any more.  If tuples of the page are still to be
 * formed, which takes a queue, 'later' tells which.  Otherwise it is empty or NULL.
 */
extern void gpusort_btree_writer_put(GsBtreeWriter *writer, BlockNumber block,
									 Page page, const GsPageFills *later);

/* Returns when no row before a position is needed for the pages that were put. */
extern void gpusort_btree_writer_recall(GsBtreeWriter *writer, int64 position);

/*
 * Write the remaining pages, and make the file as durable as the persistence
 * of the index requires.
 */
extern void gpusort_btree_writer_end(GsBtreeWriter *writer);

/* Instead of that: forget pages, and wait until no process writes any. */
extern void gpusort_btree_writer_abandon(GsBtreeWriter *writer);

#endif							/* GPUSORT_BTREE_WRITER_H */
