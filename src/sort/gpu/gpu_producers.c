/*-------------------------------------------------------------------------
 *
 * gpu_producers.c
 *		Lets several processes put rows into the GPU sessions of one sort.
 *
 * The process that opens the first session owns it, and sorts it when all are done.  The
 * others, its parallel workers, attach to it.  Each producer fills chunks of its own, see
 * gpu_session.c, and flushes them after its last row.
 *
 * When the device is full, the producer that notices it first opens a session on another
 * device, which continues the full one, and moves the refused rows there.  The others wait
 * for that and follow, so each has a list of the sessions that it has used.  At the end the
 * owner finds all of them.
 *
 * If no device has room, each producer takes a part of the refused rows out, to sort them
 * together with the rest of its input.  The owner sorts and reads those that are on the
 * devices, and then releases the sessions' memory.
 *
 * Parallel workers of queries (sink_producer.c) and of index builds (btree_workers.c) call
 * this, and so does gpu_spread.c in the owner.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

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

/* ----------------------------------------------------------------
 *		sessions that are continued
 * ----------------------------------------------------------------
 */

/* Make a session for another client of the same sort. */
static GsGpuSession *
continue_session(GsGpuSession *previous, GsClient *client)
{
	GsGpuSession *session = gpusort_gpu_session_make(previous->spec);

	session->client = client;
	session->shared = true;
	session->has_ties = previous->has_ties;
	session->sum_rows = previous->sum_rows;
	session->sum_bytes = previous->sum_bytes;
	return session;
}

/*
 * After a session became full: move rows to the session that continues it.  If that is new,
 * the refused chunks are moved as well.  Earlier sessions may have rows that have not
 * found room so far; they arrived after those that the sessions behind them have refused.
 */
static void
move_to_next(GsGpuSession *full, GsGpuSession *next, bool opened)
{
	for (GsGpuSession *from = full; from != NULL; from = from->previous)
	{
		if (opened && (!gpusort_client_settle(from->client) ||
					   !gpusort_gpu_session_move_refused(from, next)))
			return;
		if (!gpusort_gpu_session_move_fills(from, next))
			return;
	}
}

GsGpuSession *
gpusort_gpu_session_follow(GsGpuSession *full)
{
	MemoryContext caller = MemoryContextSwitchTo(full->context);
	GsGpuSession *next = NULL;
	bool		opened;
	GsClient   *client = gpusort_client_find_next(full->client, &opened);

	if (client != NULL)
	{
		next = continue_session(full, client);
		next->previous = full;
		move_to_next(full, next, opened);
		if (opened && !gpusort_client_announce_next(full->client, client))
			next->failure = GS_FALLBACK_SERVICE_LOST;
	}
	MemoryContextSwitchTo(caller);
	if (next == NULL)
		(void) gpusort_gpu_session_fail(full);
	else if (next->failure != GS_FALLBACK_NONE &&
			 next->failure != GS_FALLBACK_DEVICE_MEMORY)
	{
		full->failure = next->failure;
		next = NULL;
	}
	return next;
}

/* Continue in the next session, after one became full.  Returns false if there is none. */
static bool
go_on(GsGpuSession **session)
{
	GsGpuSession *next;

	if ((*session)->failure != GS_FALLBACK_DEVICE_MEMORY)
		return false;
	next = gpusort_gpu_session_follow(*session);
	if (next == NULL)
		return false;
	*session = next;
	return true;
}

bool
gpusort_gpu_session_put_shared(GsGpuSession **session, const Datum *values,
							   const bool *isnull)
{
	while (!gpusort_gpu_session_put(*session, values, isnull))
		if (!go_on(session))
			return false;
	return true;
}

/* Has this process rows in chunks of any session that it has not put? */
static bool
has_fills(const GsGpuSession *session)
{
	for (; session != NULL; session = session->previous)
		if (gpusort_gpu_session_has_fills(session))
			return true;
	return false;
}

bool
gpusort_gpu_session_flush_shared(GsGpuSession **session)
{
	while ((*session)->failure != GS_FALLBACK_NONE ||
		   !gpusort_gpu_session_flush(*session))
	{
		/* The owner will find chunks that were put and are refused. */
		if ((*session)->failure == GS_FALLBACK_DEVICE_MEMORY &&
			!has_fills(*session))
			return true;
		if (!go_on(session))
			return false;
	}
	return true;
}

GsGpuSession *
gpusort_gpu_session_own_next(GsGpuSession *session)
{
	MemoryContext caller = MemoryContextSwitchTo(session->context);
	GsClient   *client = gpusort_client_own_next(session->client);
	GsGpuSession *next = NULL;

	if (client != NULL)
		next = continue_session(session, client);
	MemoryContextSwitchTo(caller);
	return next;
}

/* ----------------------------------------------------------------
 *		no room on any device
 * ----------------------------------------------------------------
 */

bool
gpusort_gpu_session_has_no_room(const GsGpuSession *session)
{
	return (session->failure == GS_FALLBACK_NONE ||
			session->failure == GS_FALLBACK_DEVICE_MEMORY) &&
		gpusort_client_has_no_room(session->client);
}

bool
gpusort_gpu_session_take_left(GsGpuSession *session, Datum *values, bool *isnull)
{
	for (GsGpuSession *from = session; from != NULL; from = from->previous)
	{
		if (!from->settled && !gpusort_client_settle(from->client))
		{
			session->failure = GS_FALLBACK_SERVICE_LOST;
			return false;
		}
		from->settled = true;
		if (gpusort_gpu_session_take_rest(from, values, isnull))
			return true;
	}
	return false;
}

bool
gpusort_gpu_session_release(GsGpuSession *session)
{
	return gpusort_client_release(session->client) || gpusort_gpu_session_fail(session);
}
