/*-------------------------------------------------------------------------
 *
 * btree_workers.h
 *		Parallel workers that help with an index build.
 *
 * They read the table, and put rows into the GPU session of the leader's sort, as the leader
 * does, or sort their rows together with the leader.  Then they write pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BTREE_WORKERS_H
#define GPUSORT_BTREE_WORKERS_H

#include "heap/heap_rows.h"
#include "index/base/page_queue.h"
#include "sort/base/sort_spec.h"
#include "sort/producer.h"

typedef struct GsBtreeWorkers GsBtreeWorkers;

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

/* Returns a copy of 'parallel' that all processes share. */
extern GsParallelSort *gpusort_btree_workers_parallel(const GsBtreeWorkers *workers);

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

/* The queue of pages that they write, or NULL if none has started. */
extern GsPageQueue *gpusort_btree_workers_pages(const GsBtreeWorkers *workers);

/* Waits for the workers to end, and rethrows an error of theirs. */
extern void gpusort_btree_workers_finish(GsBtreeWorkers *workers);

#endif							/* GPUSORT_BTREE_WORKERS_H */
