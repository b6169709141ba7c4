/*-------------------------------------------------------------------------
 *
 * gpu_producers.c
 *		Lets several processes put rows into the GPU session of one sort.
 *
 * The process that opens the session owns it, and sorts it when all are done.  The
 * others, its parallel workers, attach to it.  Each producer fills chunks of its own, see
 * gpu_session.c, and flushes them after its last row.
 *
 * When the device is full, each producer takes a part of the refused rows out, to sort them
 * together with the rest of its input.  The owner sorts and reads those that are on the
 * device, and then releases the session's memory.
 *
 * Parallel workers of queries (sink_producer.c) and of index builds (btree_workers.c) call
 * this, and so does the sort of the owner.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/gpu/gpu_producers.h"
#include "sort/gpu/gpu_refused_rows.h"
#include "sort/gpu/gpu_session_private.h"

GsClientHandle
gpusort_gpu_session_handle(GsGpuSession *session)
{
	session->shared = true;
	return gpusort_client_handle(session->client);
}

GsGpuSession *
gpusort_gpu_session_attach(const GsSortSpec *spec, GsClientHandle handle)
{
	GsGpuSession *session = gpusort_gpu_session_make(spec);

	session->client = gpusort_client_attach(handle);
	session->shared = true;
	return session;
}

bool
gpusort_gpu_session_flush_shared(GsGpuSession *session)
{
	/* The owner will find chunks that were put and are refused. */
	return gpusort_gpu_session_flush(session) ||
		(session->failure == GS_FALLBACK_DEVICE_MEMORY &&
		 !gpusort_gpu_session_has_fills(session));
}

/* ----------------------------------------------------------------
 *		a session that is full
 * ----------------------------------------------------------------
 */

bool
gpusort_gpu_session_is_full(const GsGpuSession *session)
{
	return (session->failure == GS_FALLBACK_NONE ||
			session->failure == GS_FALLBACK_DEVICE_MEMORY) &&
		gpusort_client_is_full(session->client);
}

bool
gpusort_gpu_session_take_left(GsGpuSession *session, Datum *values, bool *isnull)
{
	if (!session->settled && !gpusort_client_settle(session->client))
	{
		session->failure = GS_FALLBACK_SERVICE_LOST;
		return false;
	}
	session->settled = true;
	return gpusort_gpu_session_take_rest(session, values, isnull);
}

bool
gpusort_gpu_session_release(GsGpuSession *session)
{
	return gpusort_client_release(session->client) || gpusort_gpu_session_fail(session);
}
