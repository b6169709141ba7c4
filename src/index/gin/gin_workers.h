/*-------------------------------------------------------------------------
 *
 * gin_workers.h
 *		Parallel workers that help to build a GIN index.
 *
 * Each process reads a share of the table and collects the keys there.  A worker leaves its
 * keys as a run, in a file that the leader opens.  Then it writes pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_WORKERS_H
#define GPUSORT_GIN_WORKERS_H

#include "access/relscan.h"
#include "nodes/execnodes.h"

#include "fallback.h"
#include "index/base/page_writer.h"
#include "index/gin/gin_runs.h"

typedef struct GsGinWorkers GsGinWorkers;

/*
 * Returns how many workers a build should have: those that PostgreSQL has planned, or that it
 * would plan for a btree of the same table.
 */
extern int	gpusort_gin_workers_plan(Relation heap, Relation index, const IndexInfo *info);

/*
 * Start workers in the current memory context, with 'memory' bytes for each process.
 * Returns NULL if none are available.
 */
extern GsGinWorkers *gpusort_gin_workers_start(Relation heap, Relation index,
											   const IndexInfo *info, int nworkers,
											   Size memory);

/* Begin to scan the leader's share of the table. */
extern TableScanDesc gpusort_gin_workers_scan(GsGinWorkers *workers, Relation heap);

/*
 * Wait until the workers have written their runs, and rethrow an error of theirs.  Adds the
 * live rows that they have read to *nlive, and sets *overflow if keys of one did not fit in
 * its memory, and info->ii_BrokenHotChain if one found such a chain.
 */
extern void gpusort_gin_workers_await(GsGinWorkers *workers, IndexInfo *info, double *nlive,
									  GsFallback *overflow);

/* After that: open the runs of all workers.  Returns their number. */
extern uint32 gpusort_gin_workers_open(GsGinWorkers *workers, GsGinOrder *order,
									   GsGinRuns ***runs);

/* The queue of pages that they write from then on, or NULL if none has started. */
extern GsPageQueue *gpusort_gin_workers_pages(const GsGinWorkers *workers);

/* Wait for the workers to end, and rethrow an error of theirs. */
extern void gpusort_gin_workers_finish(GsGinWorkers *workers);

#endif							/* GPUSORT_GIN_WORKERS_H */
