/*-------------------------------------------------------------------------
 *
 * build_workers.h
 *		Parallel workers of an index build: what all kinds of indexes have in common.
 *
 * A worker opens table and index as the leader has them, takes its rows, tells that it has,
 * and then writes pages that the leader makes, until there are no more.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_WORKERS_H
#define GPUSORT_BUILD_WORKERS_H

#include "access/parallel.h"
#include "nodes/execnodes.h"

#include "fallback.h"
#include "index/base/page_writer.h"
#include "sort/producer.h"

/* In memory that all processes share. */
typedef struct GsBuildShared GsBuildShared;

/* In the leader. */
typedef struct GsBuildWorkers
{
	ParallelContext *context;
	GsBuildShared *shared;
	GsParallelSort *parallel;	/* the sort of all processes */
	GsPageQueue *pages;
} GsBuildWorkers;

/* In a worker. */
typedef struct GsBuildWorker
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsBuildShared *shared;
	GsParallelSort *parallel;
	shm_toc    *toc;			/* to look up parts by their keys */
} GsBuildWorker;

/* Keys of the parts of a kind of index begin with this one. */
#define GPUSORT_BUILD_FIRST_KEY	UINT64CONST(16)

/* Estimate how many rows a table has. */
extern double gpusort_build_rows_estimate(Relation heap);

/*
 * Returns GS_FALLBACK_NONE, or why a build or validation of any kind of index is left to
 * PostgreSQL: it is switched off, or the table is not a heap or has too few rows.  The estimate
 * comes last, because for other access methods it may take long or have visible effects.
 */
extern GsFallback gpusort_build_check(Relation heap, Relation index);

/*
 * Returns how many of the planned workers a build should use: fewer if processors are busy with
 * other sorts and builds, unless the table's storage parameter parallel_workers is set.
 */
extern int	gpusort_build_workers_useful(Relation heap, int nplanned);

/* ---- The leader, in this order ---- */

/* Enter parallel mode.  'function' is the workers' main function. */
extern void gpusort_build_workers_create(GsBuildWorkers *workers, const char *function,
										 int nworkers);

/* Count a part of shared memory of so many bytes. */
extern void gpusort_build_workers_estimate(GsBuildWorkers *workers, Size size);

/*
 * Make the shared memory, for the leader's sort.  If there is none, leave parallel mode and return
 * false.
 */
extern bool gpusort_build_workers_allocate(GsBuildWorkers *workers, Relation heap,
										   Relation index, const IndexInfo *info,
										   const GsSortSpec *spec,
										   const GsParallelSort *parallel);

/* Returns a part of it, which workers find by its key. */
extern void *gpusort_build_workers_make(GsBuildWorkers *workers, uint64 key, Size size);

extern void gpusort_build_workers_launch(GsBuildWorkers *workers);

/*
 * Wait until all workers have taken their rows, and rethrow an error of theirs.  Returns how
 * many have started.
 */
extern int	gpusort_build_workers_await(GsBuildWorkers *workers);

/* The queue of the pages that workers write, or NULL if none has started. */
extern GsPageQueue *gpusort_build_workers_pages(const GsBuildWorkers *workers);

/* Wait for the workers to end, and leave parallel mode.  Rethrows an error of theirs. */
extern void gpusort_build_workers_finish(GsBuildWorkers *workers);

/* ---- A worker ---- */

extern void gpusort_build_worker_begin(GsBuildWorker *worker, shm_toc *toc);

/* Describe the size of this worker's share of the leader's sort. */
extern void gpusort_build_worker_describe(const GsBuildWorker *worker, GsSortSpec *spec);

/* This worker has taken its rows: write pages until the leader has made all. */
extern void gpusort_build_worker_end(GsBuildWorker *worker);

#endif							/* GPUSORT_BUILD_WORKERS_H */
