/*-------------------------------------------------------------------------
 *
 * gin_runs.h
 *		Sorted runs of keys of a GIN index and their TIDs, in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_RUNS_H
#define GPUSORT_GIN_RUNS_H

#include "index/gin/gin_order.h"
#include "index/gin/gin_tids.h"
#include "sort/disk/extent_file.h"

/* The runs of one process, in one file. */
typedef struct GsGinRuns GsGinRuns;

/* Where a run is in its file.  Contains no pointers. */
typedef struct GsGinRun
{
	uint32		first_extent;
	uint32		nextents;
} GsGinRun;

/*
 * Create an empty set of runs in the current memory context.  If 'target' is not NULL, other
 * processes can open them.
 */
extern GsGinRuns *gpusort_gin_runs_create(GsGinOrder *order, const GsRunTarget *target);

/* Open the run that another process has written as its only one. */
extern GsGinRuns *gpusort_gin_runs_open(GsGinOrder *order, const GsRunTarget *target,
										const GsGinRun *run);

/*
 * Write one more run: begin it; begin each key in the order of the index, add its TIDs in
 * ascending order, and end it; end the run.
 */
extern void gpusort_gin_runs_begin_run(GsGinRuns *runs);
extern void gpusort_gin_runs_begin_key(GsGinRuns *runs, const GsGinKey *key);
extern void gpusort_gin_runs_add(GsGinRuns *runs, const uint64 *tids, uint32 count);
extern void gpusort_gin_runs_end_key(GsGinRuns *runs);
extern void gpusort_gin_runs_end_run(GsGinRuns *runs);

/* Returns where a run is. */
extern GsGinRun gpusort_gin_runs_get(const GsGinRuns *runs, uint32 number);

/* The size of their file. */
extern int64 gpusort_gin_runs_bytes(const GsGinRuns *runs);

extern uint32 gpusort_gin_runs_count(const GsGinRuns *runs);

/* Close the file, and remove it unless it has a target.  Readers must not be used any more. */
extern void gpusort_gin_runs_end(GsGinRuns *runs);

/* Reads a run. */
typedef struct GsGinRunReader GsGinRunReader;

/* Begin to read the run with this number, with a buffer of about so many bytes. */
extern GsGinRunReader *gpusort_gin_run_open(GsGinRuns *runs, uint32 number,
											Size buffer_bytes);

/*
 * Get the next key and its TIDs, which belong to the reader.  The TIDs of the previous key
 * must have been read to the end.  Returns NULL at the end of the run.
 */
extern GsTidStream *gpusort_gin_run_next(GsGinRunReader *reader, GsGinKey *key);

#endif							/* GPUSORT_GIN_RUNS_H */
