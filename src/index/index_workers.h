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
 * Start up to so many workers to read what 'rows' has begun to read, which from
 * now on are shared with them.  Returns NULL if there are none to be had.
 */
extern GsIndexWorkers *gpusort_index_workers_start(Relation heap,
												   Relation index,
												   const IndexInfo *info,
												   GsHeapRows *rows,
												   GsClientHandle handle,
												   int nworkers);

/*
 * The leader has no more rows to read: wait for the workers to end, and raise
 * the error that one of them ended with.  What they found out is added to 'rows'.
 * Returns why rows of theirs are missing, or GS_FALLBACK_NONE.
 */
extern GsFallback gpusort_index_workers_finish(GsIndexWorkers *workers);

#endif							/* GPUSORT_INDEX_WORKERS_H */
