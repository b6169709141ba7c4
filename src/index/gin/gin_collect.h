/*-------------------------------------------------------------------------
 *
 * gin_collect.h
 *		Reads a table, or a process's share of it, and collects the keys of a GIN index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_COLLECT_H
#define GPUSORT_GIN_COLLECT_H

#include "access/relscan.h"
#include "nodes/execnodes.h"

#include "fallback.h"
#include "index/gin/gin_merge.h"
#include "sort/base/progress.h"

/* What a process has collected.  The fields are for reading. */
typedef struct GsGinCollection
{
	GsGinOrder *order;
	GsGinKeys  *keys;			/* sorted, in memory */
	GsGinRuns  *runs;			/* those that did not fit there */
	Size		run_memory;		/* bytes for buffers of runs */
	GsProgress *progress;		/* of this process, for writing too */
	GsFallback	overflow;		/* why there are runs, or GS_FALLBACK_NONE */
	double		nlive;			/* live rows of the table */
} GsGinCollection;

/*
 * Read the table in blocks' order, or the share of it that 'scan' has, which is ended, and
 * collect the keys of its rows in 'memory' bytes.  'scan' is NULL for the whole table.  In a
 * worker, 'nworkers' is -1, and in the leader the number of workers beside it, which also
 * reports blocks.  The collection is allocated in the current memory context.
 */
extern GsGinCollection *gpusort_gin_collect(Relation heap, Relation index, IndexInfo *info,
											TableScanDesc scan, int nworkers, Size memory);

/* Remove the collection's file. */
extern void gpusort_gin_collection_end(GsGinCollection *collection);

#endif							/* GPUSORT_GIN_COLLECT_H */
