/*-------------------------------------------------------------------------
 *
 * btree_private.h
 *		What the files of this room call of each other to build a btree index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_PRIVATE_H
#define GPUSORT_BTREE_PRIVATE_H

#include "access/itup.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "heap/heap_rows.h"
#include "index/base/build_workers.h"
#include "index/base/leaf_tuples.h"
#include "key/key_plan.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"
#include "sort/producer.h"

/* ---- That no two live rows of a unique index are equal: unique_check.c ---- */

typedef struct GsUniqueCheck GsUniqueCheck;

/* Create a check in the current memory context.  'keys' must stay valid. */
extern GsUniqueCheck *gpusort_unique_check_create(Relation heap, Relation index,
												  const IndexInfo *info,
												  const GsSortKeys *keys);

/*
 * Check the key columns of the next live row in index order.  Raises stock
 * PostgreSQL's error if they are equal to those of the previous live row.
 * NULLs are equal if the index is NULLS NOT DISTINCT.
 */
extern void gpusort_unique_check_row(GsUniqueCheck *check, const Datum *values,
									 const bool *isnull);

/*
 * ---- Parallel workers that help with an index build: btree_workers.c ----
 *
 * They read the table, and put rows into the GPU session of the leader's sort, as the leader
 * does, or sort their rows together with the leader.  Then they write pages.
 */

typedef struct GsBtreeWorkers
{
	GsBuildWorkers build;
	GsHeapRows *rows;
	bool		collected;		/* are the results of workers in 'rows'? */
} GsBtreeWorkers;

/*
 * Start up to 'nworkers' workers to help to read 'rows', whose remaining rows
 * are shared with them from now on.  'spec' is that of the leader's sort, and 'parallel' where
 * rows go.  Returns NULL if no workers are available.
 */
extern GsBtreeWorkers *gpusort_btree_workers_start(Relation heap,
												   Relation index,
												   const IndexInfo *info,
												   GsHeapRows *rows,
												   const GsSortSpec *spec,
												   const GsParallelSort *parallel,
												   int nworkers);

/*
 * Called when the leader has no more rows to read, and all workers have read theirs: adds
 * their results to 'rows'.
 */
extern void gpusort_btree_workers_collect(GsBtreeWorkers *workers);

/*
 * Waits until the workers have put or written all of their rows, and rethrows an error of
 * theirs.  Collects their results if that was not done before.  Returns why rows of workers
 * are missing, or GS_FALLBACK_NONE.
 */
extern GsFallback gpusort_btree_workers_await(GsBtreeWorkers *workers);

/* Waits for the workers to end, and rethrows an error of theirs. */
extern void gpusort_btree_workers_finish(GsBtreeWorkers *workers);

/*
 * ---- Writing pages from tuples in index order: btree_loader.c ----
 *
 * The pages are those that PostgreSQL's own index build writes, byte for byte:
 * they have posting lists for duplicates, truncated pivot tuples, the
 * requested fillfactor, and block numbers in the order in which pages are
 * begun.
 */

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

/*
 * Free the loader and truncate the index to no blocks, instead of ending it.
 */
extern void gpusort_btree_loader_abandon(GsBtreeLoader *loader);

#endif							/* GPUSORT_BTREE_PRIVATE_H */
