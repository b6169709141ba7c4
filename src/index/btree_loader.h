/*-------------------------------------------------------------------------
 *
 * btree_loader.h
 *		Writes the pages of a new btree index from its tuples in index order.
 *
 * The pages are those that PostgreSQL's own index build writes, byte for byte:
 * they have posting lists for duplicates, truncated pivot tuples, the
 * requested fillfactor, and block numbers in the order in which pages are
 * begun.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_LOADER_H
#define GPUSORT_BTREE_LOADER_H

#include "access/itup.h"
#include "utils/rel.h"

#include "index/index_rows.h"
#include "index/page_queue.h"
#include "sort/base/word_rows.h"

typedef struct GsBtreeLoader GsBtreeLoader;

/*
 * Begin to load an index, in a new memory context below the current one.  The
 * index must have no blocks.  'unique' is ii_Unique of its IndexInfo: a unique
 * index gets no posting lists.  'queue' is an empty one that workers write as
 * well, or NULL.  Nothing is written before the first page is
 * full or the loader is ended.
 */
extern GsBtreeLoader *gpusort_btree_loader_begin(Relation heap, Relation index,
												 bool unique,
												 GsPageQueue *queue);

/*
 * Add the next tuple in index order: by its keys, and by its TID if they are
 * equal.  The tuple is copied.  Raises stock PostgreSQL's error if it is too
 * large for the index.
 */
extern void gpusort_btree_loader_add(GsBtreeLoader *loader, IndexTuple tuple);

/*
 * Add the first of some rows in index order, whose tuples have the given form: as many of
 * them as have no NULL, are not dead, and differ from the row before and the one after them,
 * which must be among the rows.  Returns their number.
 */
extern uint32 gpusort_btree_loader_add_words(GsBtreeLoader *loader, const GsWordTuple *form,
											 const GsWordRows *rows);

/*
 * Write the remaining leaf pages, the levels above the leaves and the
 * metapage, and free the loader.  The index is then as durable as its
 * persistence requires.
 */
extern void gpusort_btree_loader_end(GsBtreeLoader *loader);

/*
 * Free the loader and truncate the index to no blocks, instead of ending it.
 */
extern void gpusort_btree_loader_abandon(GsBtreeLoader *loader);

#endif							/* GPUSORT_BTREE_LOADER_H */
