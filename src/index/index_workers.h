/*-------------------------------------------------------------------------
 *
 * index_workers.h
 *		Parallel workers that read a table for an index build.
 *
 * With a GPU they put rows into its session, as the leader does.  Without one, each
 * sorts its rows, and writes them as a run that the leader will read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_WORKERS_H
#define GPUSORT_INDEX_WORKERS_H

#include "index/heap_rows.h"
#include "service/service_client.h"
#include "sort/shared_run.h"

typedef enum GsIntakeKind
{
	GS_INTAKE_SERIAL,			/* there are to be no workers */
	GS_INTAKE_GPU,
	GS_INTAKE_RUNS
} GsIntakeKind;

/* Where the rows of workers go. */
typedef struct GsIntake
{
	GsIntakeKind kind;
	GsClientHandle handle;		/* of the GPU session */
	GsRunSetHandle runs;
	Size		memory;			/* bytes that each may use to sort */
} GsIntake;

typedef struct GsIndexWorkers GsIndexWorkers;

/*
 * Start up to so many workers to read what 'rows' has begun to read, which from
 * now on are shared with them.  Returns NULL if there are none to be had.
 */
extern GsIndexWorkers *gpusort_index_workers_start(Relation heap,
												   Relation index,
												   const IndexInfo *info,
												   GsHeapRows *rows,
												   const GsIntake *intake,
												   int nworkers);

/*
 * The leader has no more rows to read: wait for the workers to end, and raise
 * the error that one of them ended with.  What they found out is added to 'rows'.
 * Does nothing the second time.
 */
extern void gpusort_index_workers_finish(GsIndexWorkers *workers);

/* After that: why rows of theirs are missing, or GS_FALLBACK_NONE. */
extern GsFallback gpusort_index_workers_failure(const GsIndexWorkers *workers);

/* Likewise: their runs, from 0 on, some without rows; NULL behind the last. */
extern const GsSharedRun *gpusort_index_workers_run(const GsIndexWorkers *workers,
													int number);

#endif							/* GPUSORT_INDEX_WORKERS_H */
