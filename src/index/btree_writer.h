/*-------------------------------------------------------------------------
 *
 * btree_writer.h
 *		Writes finished pages of a new btree index: WAL, checksums, the file.
 *
 * The index belongs to the transaction that builds it, and nobody else looks at
 * it: pages pass shared buffers by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_WRITER_H
#define GPUSORT_BTREE_WRITER_H

#include "storage/block.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

typedef struct GsBtreeWriter GsBtreeWriter;

/*
 * Begin to write the main fork of an index without blocks.  The writer lives in
 * the current memory context, and ends with it if there is an error.
 */
extern GsBtreeWriter *gpusort_btree_writer_begin(Relation index);

/* A page to fill, of BLCKSZ bytes of any content; it belongs to the writer. */
extern Page gpusort_btree_writer_new_page(GsBtreeWriter *writer);

/*
 * Write a page as a block.  Blocks come in any order, each once.  The page must
 * not be used any more.
 */
extern void gpusort_btree_writer_put(GsBtreeWriter *writer, BlockNumber block,
									 Page page);

/*
 * Write what is left, and see to it that the file is as durable as the index's
 * kind asks for.
 */
extern void gpusort_btree_writer_end(GsBtreeWriter *writer);

#endif							/* GPUSORT_BTREE_WRITER_H */
