/*-------------------------------------------------------------------------
 *
 * btree_loader.h
 *		Writes the pages of a new btree index from its tuples in index order.
 *
 * The pages are what PostgreSQL's own index build writes, byte for byte:
 * duplicates in posting lists, pivot tuples truncated, pages filled up to the
 * fillfactor, block numbers given as pages are begun.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_LOADER_H
#define GPUSORT_BTREE_LOADER_H

#include "access/itup.h"
#include "utils/rel.h"

typedef struct GsBtreeLoader GsBtreeLoader;

/*
 * Begin in a memory context of its own below the current one.  The index has
 * no blocks.  'unique' is ii_Unique of its IndexInfo: such an index gets no
 * posting lists.  Nothing is written before the first page is full, or the end.
 */
extern GsBtreeLoader *gpusort_btree_loader_begin(Relation heap, Relation index,
												 bool unique);

/*
 * Add the next tuple in the order of the index: by its keys, and where they are
 * equal by its TID.  The tuple is copied.  Raises the error of stock PostgreSQL
 * if it is too long for the index.
 */
extern void gpusort_btree_loader_add(GsBtreeLoader *loader, IndexTuple tuple);

/*
 * Write what is left, the levels above the leaves, and the metapage; then the
 * index is as durable as its kind asks for.  Ends the loader.
 */
extern void gpusort_btree_loader_end(GsBtreeLoader *loader);

/* Instead: take back what was written.  The index has no blocks again. */
extern void gpusort_btree_loader_abandon(GsBtreeLoader *loader);

#endif							/* GPUSORT_BTREE_LOADER_H */
