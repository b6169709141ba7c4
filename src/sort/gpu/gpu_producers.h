/*-------------------------------------------------------------------------
 *
 * gpu_producers.h
 *		Lets several processes put rows into the GPU sessions of one sort.
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
 * The session refused a row, or a flush, with GS_FALLBACK_DEVICE_MEMORY, and several
 * processes put rows into it: attach to the session that continues it, on another device.
 * One of the processes opens that.  It gets the rows that have been refused, and those that
 * this process has not put yet.  Returns NULL if no device has room or after a failure; the
 * reason is that of 'full'.  Otherwise rows are added only to the session returned.
 */
extern GsGpuSession *gpusort_gpu_session_follow(GsGpuSession *full);

/*
 * The same in a loop around put() and flush(): *session becomes the session that has room.
 * Return false if there is none or after a failure, which is that of *session then.
 */
extern bool gpusort_gpu_session_put_shared(GsGpuSession **session, const Datum *values,
										   const bool *isnull);
extern bool gpusort_gpu_session_flush_shared(GsGpuSession **session);

/*
 * In the process that has opened the first session, when all others have put their rows:
 * returns the session that continues this one, or NULL.
 */
extern GsGpuSession *gpusort_gpu_session_own_next(GsGpuSession *session);

/*
 * Is a session full, and no device has room for one that continues it?  If so, in each
 * process that has put rows: take_left() takes the rows that it has not put, and those that
 * the device has refused, one by one, until it returns false, also if the session is lost.
 * The processes can do that at the same time.
 */
extern bool gpusort_gpu_session_has_no_room(const GsGpuSession *session);
extern bool gpusort_gpu_session_take_left(GsGpuSession *session, Datum *values, bool *isnull);

/*
 * In the process that has opened it, after reading all sorted rows: free the device memory.
 * Others can still find out that there is no room.  Returns false if the session is lost.
 */
extern bool gpusort_gpu_session_release(GsGpuSession *session);

#endif							/* GPUSORT_GPU_PRODUCERS_H */
