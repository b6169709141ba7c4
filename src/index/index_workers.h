/*-------------------------------------------------------------------------
 *
 * index_workers.h
 *		Parallel workers that read a table for an index build.
 *
 * They put rows into the GPU session of the leader's sort, as the leader does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_WORKERS_H
#define GPUSORT_INDEX_WORKERS_H

#include "heap/heap_rows.h"
#include "service/service_client.h"

typedef struct GsIndexWorkers GsIndexWorkers;

/*
 * Start up to 'nworkers' workers to help to read 'rows', whose remaining rows
 * are shared with them from now on.  Returns NULL if no workers are available.
 */
extern GsIndexWorkers *gpusort_index_workers_start(Relation heap,
												   Relation index,
												   const IndexInfo *info,
												   GsHeapRows *rows,
												   GsClientHandle handle,
												   int nworkers);

/*
 * Called when the leader has no more rows to read.  Waits for the workers to
 * end, and rethrows an error of theirs.  Adds their results to 'rows'.
 * Returns why rows of workers are missing, or GS_FALLBACK_NONE.
 */
extern GsFallback gpusort_index_workers_finish(GsIndexWorkers *workers);

#endif							/* GPUSORT_INDEX_WORKERS_H */
