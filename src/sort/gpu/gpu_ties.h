/*-------------------------------------------------------------------------
 *
 * gpu_ties.h
 *		Reads the rows of a GPU session whose encoded keys are not exact.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_TIES_H
#define GPUSORT_GPU_TIES_H

#include "sort/gpu/gpu_session.h"

typedef struct GsGpuTies GsGpuTies;

/*
 * Make a reader in the current memory context.  End it before the context; an
 * error ends it, too.  Returns NULL if the encoded keys are exact, so that there
 * are no ties to break and the session returns its rows in order.
 */
extern GsGpuTies *gpusort_gpu_ties_create(const GsSortSpec *spec,
										  GsGpuSession *gpu);

/*
 * Read a row as gpusort_gpu_session_get() does, with ties in the order of the
 * comparators, and in the order of arrival where these call rows equal.  May raise
 * the errors of comparators.
 */
extern bool gpusort_gpu_ties_get(GsGpuTies *ties, int64 position,
								 Datum *values, bool *isnull);

extern void gpusort_gpu_ties_end(GsGpuTies *ties);

#endif							/* GPUSORT_GPU_TIES_H */
