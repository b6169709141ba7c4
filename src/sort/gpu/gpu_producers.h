/*-------------------------------------------------------------------------
 *
 * gpu_producers.h
 *		Lets several processes put rows into the GPU session of one sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_PRODUCERS_H
#define GPUSORT_GPU_PRODUCERS_H

#include "service/service_client.h"
#include "sort/gpu/gpu_session.h"

/*
 * Attach to the session of another process of the same query, given its handle.  The
 * rows must be of the same type.  An attached process can only add rows, and must
 * flush the session after its last one.
 */
extern GsClientHandle gpusort_gpu_session_handle(GsGpuSession *session);
extern GsGpuSession *gpusort_gpu_session_attach(const GsSortSpec *spec,
												GsClientHandle handle);

/*
 * After the last row: hand over the rows that have been added.  Returns true as well if the
 * session is full, but all of them are handed over.
 */
extern bool gpusort_gpu_session_flush_shared(GsGpuSession *session);

/*
 * Is the session full?  If so, in each process that has put rows: take_left() takes the rows
 * that it has not put, and those that the device has refused, one by one, until it returns
 * false, also if the session is lost.  The processes can do that at the same time.
 */
extern bool gpusort_gpu_session_is_full(const GsGpuSession *session);
extern bool gpusort_gpu_session_take_left(GsGpuSession *session, Datum *values, bool *isnull);

/*
 * In the process that has opened it, after reading all sorted rows: free the device memory.
 * Others can still find out that it is full.  Returns false if the session is lost.
 */
extern bool gpusort_gpu_session_release(GsGpuSession *session);

#endif							/* GPUSORT_GPU_PRODUCERS_H */
