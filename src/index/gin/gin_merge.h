/*-------------------------------------------------------------------------
 *
 * gin_merge.h
 *		Merges the keys of a GIN index that are in memory with those in runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_MERGE_H
#define GPUSORT_GIN_MERGE_H

#include "index/gin/gin_keys.h"
#include "index/gin/gin_runs.h"

typedef struct GsGinMerge GsGinMerge;

/*
 * Begin to read sorted keys, and all runs of a set and of 'nothers' others, with buffers of
 * 'memory' bytes together.  'runs' is NULL if there are none.  The merge is allocated in the
 * current memory context.
 */
extern GsGinMerge *gpusort_gin_merge_begin(GsGinOrder *order, GsGinKeys *keys,
										   GsGinRuns *runs, GsGinRuns **others,
										   uint32 nothers, Size memory);

/*
 * Get the next key in the order of the index.  Of equal keys it is the one with the first
 * TID.  It is valid until the next call, before which all of its TIDs have to be read.
 * Returns false at the end.
 */
extern bool gpusort_gin_merge_next(GsGinMerge *merge, GsGinKey *key);

/*
 * Get up to GPUSORT_TID_BATCH of the key's TIDs in ascending order, each once.  Returns
 * their number, which is 0 at the end.
 */
extern uint32 gpusort_gin_merge_tids(GsGinMerge *merge, uint64 *tids);

/*
 * Merge sorted keys with all runs of a set, or none if it is NULL, and write the result to
 * 'target' as one more run.
 */
extern void gpusort_gin_merge_write(GsGinOrder *order, GsGinKeys *keys, GsGinRuns *runs,
									Size memory, GsGinRuns *target);

#endif							/* GPUSORT_GIN_MERGE_H */
