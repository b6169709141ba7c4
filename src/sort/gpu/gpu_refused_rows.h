/*-------------------------------------------------------------------------
 *
 * gpu_refused_rows.h
 *		Takes the rows for which a device had no memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_REFUSED_ROWS_H
#define GPUSORT_GPU_REFUSED_ROWS_H

#include "sort/gpu/gpu_session.h"

/*
 * After sorting: are there rows for which there was no device memory?  If so, take
 * them out one by one, until false is returned.  Ties come in the order in which they
 * were added, and were added after those that have been sorted.
 */
extern bool gpusort_gpu_session_has_rest(const GsGpuSession *session);
extern bool gpusort_gpu_session_take_rest(GsGpuSession *session,
										  Datum *values, bool *isnull);

/* Has this process rows in chunks that it has not put?  They are a part of these. */
extern bool gpusort_gpu_session_has_fills(const GsGpuSession *session);

#endif							/* GPUSORT_GPU_REFUSED_ROWS_H */
