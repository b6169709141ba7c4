/*-------------------------------------------------------------------------
 *
 * page_writer.h
 *		Writes finished pages of a new index, or leaves the index to PostgreSQL.
 *
 * Nobody else looks at the index before its transaction commits, so pages
 * bypass shared buffers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_WRITER_H
#define GPUSORT_PAGE_WRITER_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "index/base/leaf_tuples.h"
#include "index/base/page_queue.h"

typedef struct GsPageWriter GsPageWriter;

/*
 * Begin to write the main fork of an index that has no blocks.  'queue' is an empty one
 * that workers write as well, or NULL.  The writer is
 * allocated in the current memory context.  After an error, freeing that
 * context is all that is needed.
 */
extern GsPageWriter *gpusort_page_writer_begin(Relation index, GsPageQueue *queue);

/*
 * Returns a page to fill, as _bt_pageinit() leaves it; other kinds of indexes initialize it
 * anew.  It belongs to the writer.
 */
extern Page gpusort_page_writer_new_page(GsPageWriter *writer);

/*
 * Write a page as the given block.  Blocks may come in any order, each of them
 * once.  The caller must not use the page any more.  If tuples of the page are still to be
 * formed, which takes a queue, 'later' tells which.  Otherwise it is empty or NULL.
 */
extern void gpusort_page_writer_put(GsPageWriter *writer, BlockNumber block,
									Page page, const GsPageFills *later);

/* Returns when no row before a position is needed for the pages that were put. */
extern void gpusort_page_writer_recall(GsPageWriter *writer, int64 position);

/*
 * Write the remaining pages, and make the file as durable as the persistence
 * of the index requires.
 */
extern void gpusort_page_writer_end(GsPageWriter *writer);

/* Instead of that: forget pages, and wait until no process writes any. */
extern void gpusort_page_writer_abandon(GsPageWriter *writer);

/* ---- If its rows or keys turn out not to be in order ---- */

/* Empty the file, as PostgreSQL's build wants to find it. */
extern void gpusort_wrong_order_truncate(Relation index);

/*
 * Warn that PostgreSQL builds the index.  That is more than a reason to be counted: indexes that
 * were built before should be looked at.  'encoding' describes what the rows or keys were
 * sorted by.
 */
extern void gpusort_wrong_order_warn(Relation index, const char *encoding);

#endif							/* GPUSORT_PAGE_WRITER_H */
