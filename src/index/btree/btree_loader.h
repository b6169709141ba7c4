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

#include "index/base/leaf_tuples.h"
#include "index/base/page_writer.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"

typedef struct GsBtreeLoader GsBtreeLoader;

/*
 * Begin to load an index, in a new memory context below the current one.  The
 * index must have no blocks.  'unique' is ii_Unique of its IndexInfo: a unique
 * index gets no posting lists.  'spec' is that of the sort.  'queue' is an empty
 * one that workers write as well, or NULL.  Nothing is written before the first
 * page is full or the loader is ended.
 */
extern GsBtreeLoader *gpusort_btree_loader_begin(Relation heap, Relation index,
												 bool unique,
												 const GsSortSpec *spec,
												 GsPageQueue *queue);

/* Returns how tuples are formed from rows in place, or NULL if they are not. */
extern const GsLeafForm *gpusort_btree_loader_form(const GsBtreeLoader *loader);

/*
 * Add the next tuple in index order: by its keys, and by its TID if they are
 * equal.  The tuple is copied.  Raises stock PostgreSQL's error if it is too
 * large for the index.
 */
extern void gpusort_btree_loader_add(GsBtreeLoader *loader, IndexTuple tuple);

/*
 * Add the first of some rows in index order, at a position of the sort: as many as can be
 * added without knowing the row after them.  Rows of a unique index are alive, and differ from
 * the row after them.  Returns their number, and sets *last to the last one, or the first of
 * those with the same keys; it stays what it is if there are none.
 *
 * Lasting rows are read later, by any process.  They must stay until
 * gpusort_btree_loader_recall() has returned for a later position, or the loader has ended or has
 * been abandoned.
 */
extern uint32 gpusort_btree_loader_add_rows(GsBtreeLoader *loader, const GsRowsInPlace *rows,
											int64 position, const char **last);
extern void gpusort_btree_loader_recall(GsBtreeLoader *loader, int64 position);

/*
 * Write the remaining leaf pages, the levels above the leaves and the
 * metapage, and free the loader.  The index is then as durable as its
 * persistence requires.
 */
extern void gpusort_btree_loader_end(GsBtreeLoader *loader);

/* Free the loader, instead of ending it.  The index must then be truncated to no blocks. */
extern void gpusort_btree_loader_abandon(GsBtreeLoader *loader);

#endif							/* GPUSORT_BTREE_LOADER_H */
