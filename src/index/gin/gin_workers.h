/*-------------------------------------------------------------------------
 *
 * gin_workers.h
 *		Parallel workers that help to build a GIN index.
 *
 * Each process reads a share of the table and collects the keys there.  All of them sort these
 * together.  Then the workers write pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_WORKERS_H
#define GPUSORT_GIN_WORKERS_H

#include "access/relscan.h"
#include "nodes/execnodes.h"

#include "index/base/build_workers.h"

typedef struct GsGinResult GsGinResult;

typedef struct GsGinWorkers
{
	GsBuildWorkers build;
	Snapshot	snapshot;		/* SnapshotAny, or registered */
	ParallelTableScanDesc scan;
	GsGinResult *results;		/* of each worker */
} GsGinWorkers;

/*
 * Returns how many workers a build should have: those that PostgreSQL has planned, or that it
 * would plan for a btree of the same table; none without memory that processes share.
 */
extern int	gpusort_gin_workers_plan(Relation heap, Relation index, const IndexInfo *info);

/*
 * Start workers in the current memory context, which add rows to the leader's sort.  Returns NULL
 * if none are available.
 */
extern GsGinWorkers *gpusort_gin_workers_start(Relation heap, Relation index,
											   const IndexInfo *info, const GsSortSpec *spec,
											   const GsParallelSort *parallel, int nworkers);

/* Begin to scan the leader's share of the table. */
extern TableScanDesc gpusort_gin_workers_scan(GsGinWorkers *workers, Relation heap);

/*
 * When all rows have been read: add the live rows that the workers have read to *nlive, and set
 * info->ii_BrokenHotChain if one found such a chain.
 */
extern void gpusort_gin_workers_collect(const GsGinWorkers *workers, IndexInfo *info,
										double *nlive);

/* Wait for the workers to end, and rethrow an error of theirs. */
extern void gpusort_gin_workers_finish(GsGinWorkers *workers);

#endif							/* GPUSORT_GIN_WORKERS_H */
