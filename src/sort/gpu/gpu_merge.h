/*-------------------------------------------------------------------------
 *
 * gpu_merge.h
 *		Reads the rows of several GPU sessions in one sorted order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_MERGE_H
#define GPUSORT_GPU_MERGE_H

#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_ties.h"

typedef struct GsGpuMerge GsGpuMerge;

/*
 * Create a merge in the current memory context.  sessions[i] must be sorted, and ties[i]
 * is its reader, or NULL if the encoded keys are exact.  Both must stay valid, and nobody
 * else may read them.  Rows of a session have arrived before those of the sessions after
 * it.
 */
extern GsGpuMerge *gpusort_gpu_merge_create(const GsSortSpec *spec,
											GsGpuSession *const *sessions,
											GsGpuTies *const *ties, int count);

/*
 * Read the row at a position in the order of all sessions, counted from 0.  It must be
 * the next or the previous row, or one that was read before.  Values passed by reference
 * are valid until the next call.  Returns false if the rows are lost.  Ties come in the
 * order of arrival.
 */
extern bool gpusort_gpu_merge_get(GsGpuMerge *merge, int64 position,
								  Datum *values, bool *isnull);

#endif							/* GPUSORT_GPU_MERGE_H */
