/*-------------------------------------------------------------------------
 *
 * gpu_refused_rows.c
 *		Takes the rows for which a device had no memory.
 *
 * When a device has no memory for a chunk that was put, it refuses this one and those that
 * follow it.  They stay in the pool.  Further rows are in the chunks that were being filled.
 * These are the rest: rows that the device does not have, and that arrived after those that
 * it has.
 *
 * The rows are taken one by one, and go to runs.  With one producer, row_runs.c does it after
 * sorting the session.  With several, gpu_producers.c does it in each of them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/base/row_format.h"
#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_refused_rows.h"
#include "sort/gpu/gpu_session_private.h"

bool
gpusort_gpu_session_has_fills(const GsGpuSession *session)
{
	for (int p = 0; p < GS_PARTS; p++)
		if (session->fills[p].chunk != NULL)
			return true;
	return false;
}

bool
gpusort_gpu_session_has_rest(const GsGpuSession *session)
{
	return (gpusort_client_has_refused(session->client) &&
			gpusort_client_first_refused(session->client) != NULL) ||
		gpusort_gpu_session_has_fills(session);
}

/*
 * Returns the next chunk of which rows can be taken, which the caller has to free; or NULL.
 * Chunks that the device has refused come first, since their rows arrived first.
 */
static GsPoolChunk *
next_rest_chunk(GsGpuSession *session)
{
	GsPoolChunk *chunk = gpusort_client_take_refused(session->client);

	for (int p = 0; p < GS_PARTS && chunk == NULL; p++)
		if (session->fills[p].chunk != NULL)
			chunk = gpusort_gpu_session_take_fill(session, &session->fills[p]);
	return chunk;
}

bool
gpusort_gpu_session_take_rest(GsGpuSession *session, Datum *values,
							  bool *isnull)
{
	while (session->rest == NULL || session->next_rest == session->rest->rows)
	{
		/* The values last returned are no longer in use. */
		if (session->rest != NULL)
			gpusort_chunk_free(session->rest);
		session->rest = next_rest_chunk(session);
		if (session->rest == NULL)
			return false;
		session->next_rest = 0;
		session->next_rest_row = gpusort_chunk_address(session->rest) +
			session->rest->data_offset;
	}
	gpusort_row_format_unpack(session->format, session->next_rest_row, values,
							  isnull);
	gpusort_tuple_row_get_keys(session->spec, values, isnull);
	session->next_rest_row +=
		gpusort_row_format_packed_length(session->format,
										 session->next_rest_row);
	session->next_rest++;
	return true;
}
