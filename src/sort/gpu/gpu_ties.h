/*-------------------------------------------------------------------------
 *
 * gpu_ties.h
 *		Reads the rows of a GPU session whose encoded keys are not exact.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_TIES_H
#define GPUSORT_GPU_TIES_H

#include "sort/base/rows_in_place.h"
#include "sort/gpu/gpu_session.h"

typedef struct GsGpuTies GsGpuTies;

/*
 * Create a reader in the current memory context.  It must be ended before that context
 * is deleted, except after an error.  Returns NULL if the encoded keys are exact, so
 * that there are no ties to break and the session returns its rows in order.
 */
extern GsGpuTies *gpusort_gpu_ties_create(const GsSortSpec *spec,
										  GsGpuSession *gpu);

/*
 * Read a row as gpusort_gpu_session_get() does, but return ties in the order of the
 * comparators, and rows that these consider equal in the order of arrival.
 * Comparators may raise errors.
 */
extern bool gpusort_gpu_ties_get(GsGpuTies *ties, int64 position,
								 Datum *values, bool *isnull);

/*
 * See gpusort_gpu_session_in_place(): false as well in a group of ties that has not been
 * returned as a whole.
 */
extern bool gpusort_gpu_ties_in_place(const GsGpuTies *ties, int64 position,
									  GsRowsInPlace *rows);

/* See gpusort_gpu_session_is_near(): false as well if long groups would be sorted again. */
extern bool gpusort_gpu_ties_is_near(const GsGpuTies *ties, int64 position);

extern void gpusort_gpu_ties_end(GsGpuTies *ties);

#endif							/* GPUSORT_GPU_TIES_H */
