/*-------------------------------------------------------------------------
 *
 * gpu_runs.h
 *		Reads a GPU session's rows if their keys do not say all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_RUNS_H
#define GPUSORT_GPU_RUNS_H

#include "sort/gpu/gpu_session.h"

typedef struct GsGpuRuns GsGpuRuns;

/*
 * Make a reader, in the current memory context, to be ended before that is; an
 * error ends it as well.  NULL if the keys say all, and the rows come from the session in order.
 */
extern GsGpuRuns *gpusort_gpu_runs_create(const GsSessionSpec *spec,
										  GsGpuSession *gpu);

/*
 * gpusort_gpu_session_get() with rows with equal keys in the order of their
 * comparators, and of arrival among equal rows.  May raise the errors of
 * comparators.
 */
extern bool gpusort_gpu_runs_get(GsGpuRuns *runs, int64 position,
								 Datum *values, bool *isnull);

extern void gpusort_gpu_runs_end(GsGpuRuns *runs);

#endif							/* GPUSORT_GPU_RUNS_H */
