/*-------------------------------------------------------------------------
 *
 * gin_runs.h
 *		Sorted runs of keys of a GIN index and their TIDs, in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_RUNS_H
#define GPUSORT_GIN_RUNS_H

#include "index/gin_keys.h"

typedef struct GsGinRuns GsGinRuns;

/* Create an empty set of runs in the current memory context. */
extern GsGinRuns *gpusort_gin_runs_create(GsGinOrder *order);

/* Write sorted keys, of which none has been read, as one more run. */
extern void gpusort_gin_runs_write(GsGinRuns *runs, GsGinKeys *keys);

extern uint32 gpusort_gin_runs_count(const GsGinRuns *runs);

/* Remove the file.  Its readers must not be used any more. */
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
