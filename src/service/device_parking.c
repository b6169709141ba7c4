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
 * The device process is no backend, so it does not use PostgreSQL's files: nobody would clean up
 * when it is killed.  Only the kernel knows the file, which has no name, so it is gone when the
 * device process closes it or ends.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file_perm.h"
#include "miscadmin.h"

#include "service/device_sessions.h"

/* As PG_TEMP_FILES_DIR: the server removes what a crash has left there. */
#define DIRECTORY	"base/pgsql_tmp"

/* If the rows of an idle session cannot be written to a file, try it again after this time. */
#define PARK_AGAIN_MS		(60 * 1000)

/* ----------------------------------------------------------------
 *		the file
 *
 * All chunks have the same room in the file, so that each is found by its index.  What a chunk
 * does not use of it is a hole.
 * ----------------------------------------------------------------
 */

/* The arrays of a chunk, and the numbers of GsSortedChunk. */
#define ARRAYS		4

typedef struct GsChunkArray
{
	void	   *address;
	uint64		room;
	uint64		bytes;			/* in use, at most 'room' */
} GsChunkArray;

/* Create a file, which has no name any more when this returns.  Returns false and sets errno. */
static bool
create_file(GsServedSlot *session)
{
	char		path[MAXPGPATH];
	int			save_errno;

	session->file_bytes = 0;
	snprintf(path, sizeof(path), DIRECTORY "/pgsql_tmp%d.gpusort", (int) MyProcPid);
	if (mkdir(DIRECTORY, pg_dir_create_mode) != 0 && errno != EEXIST)
		return false;
	session->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, pg_file_create_mode);
	if (session->file < 0)
		return false;
	if (unlink(path) == 0)
		return true;
	save_errno = errno;
	(void) close(session->file);
	errno = save_errno;
	return false;
}

/* Set the arrays of a chunk, whose numbers are known, and which arrays it has. */
static void
list_arrays(const GsSessionOptions * options, const GsSortedChunk * chunk, GsChunkArray *arrays)
{
	bool		variable = options->row_layout == GPUSORT_ROWS_VARIABLE;
	bool		ties = options->tie_levels > 0;

	arrays[0].address = (void *) chunk;
	arrays[0].room = arrays[0].bytes = sizeof(*chunk);
	arrays[1].address = chunk->data;
	arrays[1].room = options->chunk_bytes;
	arrays[1].bytes = chunk->data_bytes;
	arrays[2].address = chunk->lengths;
	arrays[2].room = variable ? options->chunk_rows * sizeof(uint32) : 0;
	arrays[2].bytes = variable ? chunk->rows * sizeof(uint32) : 0;
	arrays[3].address = chunk->ties;
	arrays[3].room = ties ? gpusort_ties_words(options->chunk_rows) * sizeof(uint32) : 0;
	arrays[3].bytes = ties ? gpusort_ties_words(chunk->rows) * sizeof(uint32) : 0;
}

/* Returns where a chunk begins, of which the room of the arrays is known. */
static uint64
start_of_chunk(const GsChunkArray *arrays, uint64 index)
{
	uint64		room = 0;

	for (int a = 0; a < ARRAYS; a++)
		room += arrays[a].room;
	return index * room;
}

/* Write an array to the file, or read it.  Returns false and sets errno if that fails. */
static bool
transfer_array(int file, const GsChunkArray *array, uint64 offset, bool write)
{
	uint64		done = 0;

	while (done < array->bytes)
	{
		char	   *address = (char *) array->address + done;
		Size		left = array->bytes - done;
		ssize_t		n = write ? pwrite(file, address, left, offset + done) :
			pread(file, address, left, offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = write ? ENOSPC : EIO;	/* or the file is too short */
		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

/* Write a sorted chunk, which session_get() has filled.  Returns false and sets errno. */
static bool
write_chunk(GsServedSlot *session, const GsSessionOptions * options, uint64 index,
			const GsSortedChunk * chunk)
{
	GsChunkArray arrays[ARRAYS];
	uint64		offset;

	list_arrays(options, chunk, arrays);
	offset = start_of_chunk(arrays, index);
	for (int a = 0; a < ARRAYS; offset += arrays[a++].room)
	{
		if (!transfer_array(session->file, &arrays[a], offset, true))
			return false;
		session->file_bytes += arrays[a].bytes;
	}
	return true;
}

/* ----------------------------------------------------------------
 *		parking
 * ----------------------------------------------------------------
 */

void
gpusort_parking_end(GsServedSlot *session)
{
	if (session->place != GS_ROWS_ON_DEVICE)
		(void) close(session->file);
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
	*written = write_chunk(session, options, index, &chunk);
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
		written = area != NULL && create_file(session);
		if (written)
			session->place = GS_ROWS_PARKING;
		session->next_parked = 0;
	}
	else if (session->next_parked < parts[GS_PART_REGULAR].chunks + parts[GS_PART_NULL_KEYS].chunks)
		status = copy_chunk(slot, session, api, session->next_parked++, area, &written);
	else
	{
		session->place = GS_ROWS_PARKED;
		pg_atomic_write_u64(&slot->file_bytes, session->file_bytes);
	}
	if (!written)
		stop_parking(slot, session);
	return status;
}

bool
gpusort_parking_read(const GsSlot *slot, const GsServedSlot *session,
					 const GsPoolChunk *pool_chunk, GsSortedChunk * target)
{
	const		GsSessionOptions *options = &slot->request.options;
	GsSortedChunk written = *target;
	GsChunkArray arrays[ARRAYS];
	uint64		offset;

	/* The numbers come first, and say how long the arrays are. */
	list_arrays(options, &written, arrays);
	offset = start_of_chunk(arrays, first_index(slot, pool_chunk->part) + pool_chunk->number);
	if (!transfer_array(session->file, &arrays[0], offset, false))
		return false;
	target->rows = written.rows;
	target->first_row = written.first_row;
	target->data_bytes = written.data_bytes;
	list_arrays(options, target, arrays);
	for (int a = 1; a < ARRAYS; a++)
	{
		offset += arrays[a - 1].room;
		if (!transfer_array(session->file, &arrays[a], offset, false))
			return false;
	}
	return true;
}
