/*-------------------------------------------------------------------------
 *
 * device_parking.c
 *		Parks the sorted rows of sessions that nobody reads in files.
 *
 * A cursor that nobody reads from keeps its rows on the device for as long as it is open.  After
 * pg_gpusort.idle_session_timeout the device process copies them to a file, a chunk for each of
 * its visits of the slot, so that other sessions do not wait for long.  Chunks keep their
 * numbers, so clients ask for them as before, and do not notice.  While the rows are copied, they
 * are also on the device: if a client asks for any, or the file cannot be written, they stay there.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "service/device_sessions.h"

/* If the rows of an idle session cannot be written to a file, try it again after this time. */
#define PARK_AGAIN_MS		(60 * 1000)

void
gpusort_parking_end(GsServedSlot *session)
{
	if (session->place != GS_ROWS_ON_DEVICE)
		gpusort_parked_rows_close(&session->parked);
	session->place = GS_ROWS_ON_DEVICE;
}

void
gpusort_parking_note_use(GsSlot *slot, GsServedSlot *session)
{
	int			timeout = slot->request.idle_timeout_ms;
	TimestampTz now = GetCurrentTimestamp();

	if (session->place == GS_ROWS_PARKING)
		gpusort_parking_end(session);
	session->park_at = timeout > 0 ? TimestampTzPlusMilliseconds(now, timeout) : DT_NOEND;
	pg_atomic_write_u64(&slot->last_use, now);
}

TimestampTz
gpusort_parking_due(GsSlot *slot, const GsServedSlot *session)
{
	return session->open && session->sorted && session->place != GS_ROWS_PARKED &&
		pg_atomic_read_u32(&slot->state) == GS_SLOT_SORTED ? session->park_at : DT_NOEND;
}

/* Rows cannot be written, for the reason in errno: they stay on the device for a while. */
static void
stop_parking(const GsSlot *slot, GsServedSlot *session)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz again = TimestampTzPlusMilliseconds(now, PARK_AGAIN_MS);

	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write rows of an idle session of GPU %d to a temporary file: %m",
					gpusort_service->devices[session->device].info.ordinal)));
	gpusort_parking_end(session);
	session->park_at = Max(again, TimestampTzPlusMilliseconds(now, slot->request.idle_timeout_ms));
}

/* Returns the index of the first chunk of a part among those of both. */
static uint64
first_index(const GsSlot *slot, GsNullPart part)
{
	return part == GS_PART_REGULAR ? 0 : slot->result.parts[GS_PART_REGULAR].chunks;
}

/*
 * Copy a chunk to the file, with the given area in between.  Sets *written to whether the file
 * could be written.
 */
static GsStatus
copy_chunk(const GsSlot *slot, GsServedSlot *session, const GsDeviceApi * api, uint64 index,
		   char *area, bool *written)
{
	const		GsSessionOptions *options = &slot->request.options;
	GsNullPart	part = index < first_index(slot, GS_PART_NULL_KEYS) ?
		GS_PART_REGULAR : GS_PART_NULL_KEYS;
	bool		variable = options->row_layout == GPUSORT_ROWS_VARIABLE;
	GsSortedChunk chunk = {
		.data = area,
		.lengths = (uint32_t *) (area + options->chunk_bytes)
	};
	GsTicket	ticket;
	GsStatus	status;

	/* There is room for them, as in a chunk of the pool. */
	chunk.ties = chunk.lengths + (variable ? options->chunk_rows : 0);
	status = api->session_get(session->parts[part], index - first_index(slot, part), &chunk,
							  &ticket);
	if (status == GPUSORT_OK)
		status = api->session_wait(session->parts[part], ticket);
	if (status != GPUSORT_OK)
		return status;
	pg_atomic_fetch_add_u64(&gpusort_service->devices[session->device].bytes_out,
							chunk.data_bytes + (variable ? chunk.rows * sizeof(uint32) : 0));
	*written = gpusort_parked_rows_write(&session->parked, options, index, &chunk);
	return status;
}

GsStatus
gpusort_parking_step(GsSlot *slot, GsServedSlot *session, const GsDeviceApi * api, bool fault)
{
	static char *area = NULL;
	const GsPartResult *parts = slot->result.parts;
	GsStatus	status = GPUSORT_OK;
	bool		written = !fault;

	if (fault)
		errno = ENOSPC;
	else if (session->place == GS_ROWS_ON_DEVICE)
	{
		if (area == NULL)
			area = malloc(gpusort_service->chunk_bytes);
		written = area != NULL && gpusort_parked_rows_create(&session->parked);
		if (written)
			session->place = GS_ROWS_PARKING;
		session->next_parked = 0;
	}
	else if (session->next_parked < parts[GS_PART_REGULAR].chunks + parts[GS_PART_NULL_KEYS].chunks)
		status = copy_chunk(slot, session, api, session->next_parked++, area, &written);
	else
	{
		session->place = GS_ROWS_PARKED;
		pg_atomic_write_u64(&slot->file_bytes, session->parked.bytes);
	}
	if (!written)
		stop_parking(slot, session);
	return status;
}

bool
gpusort_parking_read(const GsSlot *slot, const GsServedSlot *session,
					 const GsPoolChunk *pool_chunk, GsSortedChunk * target)
{
	return gpusort_parked_rows_read(&session->parked, &slot->request.options,
									first_index(slot, pool_chunk->part) + pool_chunk->number,
									target);
}
