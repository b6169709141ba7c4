/*-------------------------------------------------------------------------
 *
 * btree.h
 *		Builds btree indexes, and validates those that concurrent statements have built.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_H
#define GPUSORT_BTREE_H

#include "index/base/index_build.h"

extern const GsIndexKind gpusort_btree_kind;

/*
 * ---- Writing the pages of an index from its tuples in index order: btree_loader.c ----
 *
 * The pages are those that PostgreSQL's own index build writes, byte for byte:
 * they have posting lists for duplicates, truncated pivot tuples, the
 * requested fillfactor, and block numbers in the order in which pages are
 * begun.
 */

typedef struct GsBtreeLoader GsBtreeLoader;

/*
 * Begin to load the index of a build, in a new memory context below the current one.  The
 * index must have no blocks.  Nothing is written before the first page is full or the loader is
 * ended.
 */
extern GsBtreeLoader *gpusort_btree_loader_begin(const GsIndexBuild *build);

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

/* ---- Validation, which inserts the rows that are missing: btree_validate.c ---- */

/*
 * Do what btbulkdelete() does for validate_index(), which must be the caller: collect the
 * index's TIDs.  If the validation is for us, they are not passed to the callback, and the
 * scan of the table that follows is ours.
 */
extern IndexBulkDeleteResult *gpusort_btree_validate_collect(IndexVacuumInfo *info,
															 IndexBulkDeleteResult *result,
															 IndexBulkDeleteCallback callback,
															 void *callback_arg);

/*
 * Have the TIDs of an index been collected for a scan of the table that has not begun?
 * Nothing may be inserted then: PostgreSQL's scan would insert all rows again.
 */
extern bool gpusort_btree_validate_is_pending(Relation index);

/* After a statement: forget a validation that an error has ended. */
extern void gpusort_btree_validate_reset(void);

#endif							/* GPUSORT_BTREE_H */
