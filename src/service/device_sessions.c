/*-------------------------------------------------------------------------
 *
 * device_sessions.c
 *		Serves the clients' sessions, in the device process.
 *
 * The device process visits all slots in turn and does a little for each: it
 * starts asynchronous operations of the device library, and polls those that
 * it started before.  It waits only for sorts, which take some milliseconds,
 * and for a chunk at a time of rows that are parked.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <signal.h>
#include <unistd.h>

#include "miscadmin.h"

#include "service/device_sessions.h"
#include "service/fault.h"
#include "service/service_shmem.h"

/*
 * Maximum number of chunks to take from one session before the next one's
 * turn.
 */
#define CHUNKS_PER_TURN		16

/*
 * Device memory that sorting takes per row, for keys and row numbers twice and
 * some working space; and that returning rows takes per byte of a chunk.
 */
#define SORT_BYTES_PER_ROW	28
#define STAGING_FACTOR		6

/*
 * The library allocates memory for rows in segments, the last of which are partly unused: up to
 * this part of what the rows expected take, or the second part if the session's memory is
 * limited; and no more than so many bytes of each array.
 */
#define UNUSED_DIVISOR			4
#define LIMITED_UNUSED_DIVISOR	16
#define MAX_UNUSED_BYTES	((uint64) 256 * 1024 * 1024)

/*
 * Initially we expect one row of this many to have NULL as its first sort key.
 */
#define EXPECTED_NULL_KEYS_DIVISOR	16

/*
 * Number of bytes allocated after which the device is asked for its free memory
 * again.
 */
#define MEMORY_CHECK_BYTES	((uint64) 256 * 1024 * 1024)

static GsOpenDevices *devices;
static GsServedSlot served[GPUSORT_SLOTS];
static uint32 epoch_served;

/* ----------------------------------------------------------------
 *		failures of sessions
 * ----------------------------------------------------------------
 */

/*
 * Change the state of a slot, unless its client is closing it, and wake up the
 * client.
 */
static void
change_state(GsSlot *slot, uint32 from, GsSlotState to)
{
	pg_write_barrier();
	if (pg_atomic_compare_exchange_u32(&slot->state, &from, to))
		SetLatch(slot->client);
}

/* Returns why a session fails with a status of the device library. */
static GsReason
failure_of_status(GsStatus status)
{
	switch (status)
	{
		case GPUSORT_DEVICE_MEMORY:
			return GS_REASON_DEVICE_MEMORY;
		case GPUSORT_DEVICE_LOST:
			return GS_REASON_SERVICE_LOST;
		default:
			return GS_REASON_DEVICE_ERROR;
	}
}

/* A session cannot go on: note why, for its client. */
static void
fail_slot(uint32 s, GsReason reason, const char *message)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	uint32		state = pg_atomic_read_u32(&slot->state);

	served[s].failed = true;
	served[s].ntransfers = 0;	/* chunks in transfer are dropped with the
								 * session */
	slot->failure = reason;
	strlcpy(slot->message, message, GPUSORT_MESSAGE_BYTES);
	pg_write_barrier();
	while (state != GS_SLOT_CLOSING &&
		   !pg_atomic_compare_exchange_u32(&slot->state, &state,
										   GS_SLOT_FAILED))
		;
	SetLatch(slot->client);
}

/* An operation of the device library has failed.  Ends the process if the device is lost. */
static void
fail_session(uint32 s, GsStatus status)
{
	const char *message = devices->api->device_message(devices->use[served[s].device].device);

	if (message[0] == '\0')
		message = devices->api->status_text(status);
	if (status == GPUSORT_DEVICE_LOST)
		gpusort_devices_lose(served[s].device, message);
	fail_slot(s, failure_of_status(status), message);
}

/* The fault "hang": serve no session until the client gives up this one. */
static void
hang(GsSlot *slot, bool is_close)
{
	pid_t		worker = getppid();
	pid_t		client = slot->client->owner_pid;

	/*
	 * When it is closed, it has done so already: wait until its process ends.
	 * If that has ended before this one came here, its latch has no owner any
	 * more.
	 */
	while (getppid() == worker && client > 0 && kill(client, 0) == 0 &&
		   (is_close ||
			pg_atomic_read_u32(&slot->state) != GS_SLOT_CLOSING))
		pg_usleep(10 * 1000);
}

static bool
is_action(const GsFault *fault, const char *action)
{
	return strcmp(fault->action, action) == 0;
}

/* Called at a point where the session's fault may happen. */
static GsStatus
reach_fault(uint32 s, const char *point)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	const GsFault *fault = &slot->request.fault;

	if (!gpusort_fault_strikes(fault, point, &served[s].faults))
		return GPUSORT_OK;
	if (is_action(fault, "crash"))
		(void) kill(MyProcPid, SIGKILL);
	if (is_action(fault, "hang"))
		hang(slot, strcmp(point, "close") == 0);
	served[s].swap_rows = is_action(fault, "swap");
	if (is_action(fault, "lost"))
		return GPUSORT_DEVICE_LOST;
	if (is_action(fault, "memory"))
		return GPUSORT_DEVICE_MEMORY;
	return is_action(fault, "error") ? GPUSORT_DEVICE_ERROR : GPUSORT_OK;
}

/* ----------------------------------------------------------------
 *		opening and closing
 * ----------------------------------------------------------------
 */

/* Set the amount of device memory that the session will still allocate. */
static void
speak_for(uint32 s, uint64 bytes)
{
	GsServedSlot *session = &served[s];

	devices->use[session->device].spoken_for += bytes - session->spoken_for;
	session->spoken_for = bytes;
}

/* Returns the device memory for the expected rows and for sorting them. */
static uint64
expected_memory(const GsSlotRequest *request)
{
	const		GsSessionOptions *options = &request->options;
	bool		variable = options->row_layout == GPUSORT_ROWS_VARIABLE;
	uint64		arrays = options->key_words + (variable ? 3 : 1);
	uint64		per_row = options->key_words * sizeof(uint64);
	uint64		held;			/* for the rows */
	uint64		unused;			/* of the last segments */

	if (variable)
		per_row += sizeof(uint32) + 2 * sizeof(uint64);
	held = options->expected_rows * per_row + request->expected_bytes;
	unused = held / (options->device_memory_limit > 0 ? LIMITED_UNUSED_DIVISOR : UNUSED_DIVISOR);
	unused = Min(unused, arrays * MAX_UNUSED_BYTES);
	return held + unused + options->expected_rows * SORT_BYTES_PER_ROW +
		STAGING_FACTOR * options->chunk_bytes;
}

/* ----------------------------------------------------------------
 *		shares of roles
 *
 * Only this process opens sessions and gives them device memory, one after the other.  So two
 * sessions of a role cannot both take what is left of its share.
 * ----------------------------------------------------------------
 */

typedef struct GsRoleUse
{
	uint32		sessions;
	uint64		memory;
} GsRoleUse;

/* Set how much device memory counts for a session. */
static void
count_memory(uint32 s, uint64 bytes)
{
	pg_atomic_write_u64(&gpusort_service->slots[s].device_memory, bytes);
}

/* Returns what the other sessions of a session's role have. */
static GsRoleUse
others_of_role(uint32 s)
{
	GsSlot	   *slots = gpusort_service->slots;
	GsRoleUse	use = {0};

	for (uint32 other = 0; other < gpusort_service->nslots; other++)
	{
		if (other == s || !served[other].open ||
			slots[other].request.role != slots[s].request.role)
			continue;
		use.sessions++;
		use.memory += pg_atomic_read_u64(&slots[other].device_memory);
	}
	return use;
}

/* Would a session have more memory than is left of its role's share? */
static bool
exceeds_share(uint32 s, uint64 bytes)
{
	uint64		share = gpusort_service->slots[s].request.role_memory;

	return share > 0 && others_of_role(s).memory + bytes > share;
}

/* Returns why a role's share does not allow one more session, or GS_REASON_NONE. */
static GsReason
check_share(uint32 s)
{
	const GsSlotRequest *request = &gpusort_service->slots[s].request;

	if (others_of_role(s).sessions >= request->role_sessions)
		return GS_REASON_ROLE_SESSIONS;
	return exceeds_share(s, expected_memory(request)) ? GS_REASON_ROLE_MEMORY : GS_REASON_NONE;
}

/*
 * Choose a device that has room for the rows expected.  Of several, choose the one with the
 * most memory to spare, but prefer a device with fewer sessions if it has at least half
 * as much.  Returns -1 if there is none.
 */
static int
choose_device(const GsSlotRequest *request)
{
	uint64		expected = expected_memory(request);
	uint64		limit = request->options.device_memory_limit;
	int			best = -1;
	uint64		most = 0;
	uint32		best_sessions = 0;

	for (int d = 0; d < devices->count; d++)
	{
		uint64		available;
		uint32		sessions;

		if (devices->use[d].device == NULL)
			continue;
		available = gpusort_devices_memory(d);
		sessions = pg_atomic_read_u32(&gpusort_service->devices[d].sessions);
		available -= Min(available, devices->use[d].spoken_for);
		if (expected > available || (limit > 0 && expected > limit))
			continue;
		if (best < 0 || available > 2 * most ||
			(available > most && sessions <= best_sessions) ||
			(available >= most / 2 && sessions < best_sessions))
		{
			best = d;
			best_sessions = sessions;
			most = available;
		}
	}
	return best;
}

/*
 * Returns how much device memory a session holds; or, if a chunk is given, how much it will
 * hold with that in the part.
 */
static uint64
session_memory(const GsServedSlot *session, GsNullPart part, const GsChunk *chunk)
{
	uint64		sum = 0;

	for (int p = 0; p < GS_PARTS; p++)
		if (session->parts[p] != NULL)
			sum += devices->api->session_memory(session->parts[p], p == part ? chunk : NULL);
	return sum;
}

/* Begin a part of a session, which allocates what sorting its expected rows takes. */
static GsStatus
begin_part(uint32 s, GsNullPart part)
{
	GsSessionOptions options = gpusort_service->slots[s].request.options;
	GsServedSlot *session = &served[s];
	uint64		before = session_memory(session, part, NULL);
	uint64		taken;
	GsStatus	status;

	if (part == GS_PART_NULL_KEYS)
		options.expected_rows = options.expected_rows / EXPECTED_NULL_KEYS_DIVISOR + 1;
	status = devices->api->session_begin(devices->use[session->device].device, &options,
										 &session->parts[part]);
	taken = session_memory(session, part, NULL) - before;
	speak_for(s, session->spoken_for - Min(session->spoken_for, taken));
	return status;
}

/*
 * Make one of the device's allocations fail, or none again, if the session's
 * fault says so.
 */
static void
set_alloc_fault(uint32 s, bool on)
{
	GsDebugSettings settings = {
		.fail_alloc = gpusort_fault_device_alloc(&gpusort_service->slots[s].request.fault)
	};

	if (settings.fail_alloc == 0)
		return;
	(void) devices->api->debug_set(devices->use[served[s].device].device,
								   on ? &settings : NULL);
}

/* Free the device memory of a session.  This waits for copies from and to the chunks. */
static void
end_parts(uint32 s)
{
	GsServedSlot *session = &served[s];

	for (int p = 0; p < GS_PARTS; p++)
	{
		devices->api->session_end(session->parts[p]);
		session->parts[p] = NULL;
	}
	speak_for(s, 0);
	count_memory(s, 0);
	(void) gpusort_devices_memory(session->device);
}

static void close_session(uint32 s);

/* Close sessions whose clients have ended them, which frees memory for others. */
static void
close_ended_sessions(void)
{
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
	{
		if (pg_atomic_read_u32(&gpusort_service->slots[s].state) != GS_SLOT_CLOSING)
			continue;
		pg_read_barrier();
		close_session(s);
	}
}

static void
open_session(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServedSlot *session = &served[s];
	GsStatus	status;

	close_ended_sessions();
	memset(session, 0, offsetof(GsServedSlot, transfers));
	slot->failure = check_share(s);
	if (slot->failure == GS_REASON_NONE)
	{
		session->device = choose_device(&slot->request);
		if (session->device < 0)
			slot->failure = GS_REASON_DEVICE_MEMORY;
	}
	if (slot->failure != GS_REASON_NONE)
	{
		change_state(slot, GS_SLOT_OPENING, GS_SLOT_FAILED);
		return;
	}
	session->open = true;
	slot->device = session->device;
	pg_atomic_fetch_add_u32(&gpusort_service->devices[session->device].sessions,
							1);
	count_memory(s, expected_memory(&slot->request));
	pg_atomic_write_u64(&slot->last_use, GetCurrentTimestamp());
	set_alloc_fault(s, true);
	status = reach_fault(s, "open");
	speak_for(s, expected_memory(&slot->request));
	if (status == GPUSORT_OK)
		status = begin_part(s, GS_PART_REGULAR);
	if (status != GPUSORT_OK)
	{
		speak_for(s, 0);
		fail_session(s, status);
		return;
	}
	change_state(slot, GS_SLOT_OPENING, GS_SLOT_OPEN);
}

static void
close_session(uint32 s)
{
	GsServedSlot *session = &served[s];

	if (session->open)
	{
		GsServiceDevice *shared = &gpusort_service->devices[session->device];

		(void) reach_fault(s, "close");
		end_parts(s);
		gpusort_parking_end(session);
		set_alloc_fault(s, false);
		session->open = false;
		pg_atomic_fetch_sub_u32(&shared->sessions, 1);
		if (session->sorted && session->rows > 0 && !session->failed)
			gpusort_devices_succeeded(session->device);
	}
	gpusort_slot_free(s);
}

/* ----------------------------------------------------------------
 *		chunks
 * ----------------------------------------------------------------
 */

/*
 * Is there room for a chunk, with what sorting its rows will take?  The memory for the
 * expected rows was set aside when the session was opened.  For more, we ask the device
 * for its free memory, and set aside MEMORY_CHECK_BYTES at a time.
 */
static bool
has_room(uint32 s, GsNullPart part, const GsChunk *chunk)
{
	uint64		limit = gpusort_service->slots[s].request.options.device_memory_limit;
	GsServedSlot *session = &served[s];
	uint64		then = session_memory(session, part, chunk);
	uint64		more = then - session_memory(session, part, NULL);
	uint64		others;			/* set aside for other sessions */

	if (limit > 0 && then > limit)
		return false;
	if (then > pg_atomic_read_u64(&gpusort_service->slots[s].device_memory))
	{
		if (exceeds_share(s, then))
			return false;
		count_memory(s, then);
	}
	if (more <= session->spoken_for)
	{
		speak_for(s, session->spoken_for - more);
		return true;
	}
	others = devices->use[session->device].spoken_for - session->spoken_for;
	if (gpusort_devices_memory(session->device) < others + more + MEMORY_CHECK_BYTES)
		return false;
	speak_for(s, MEMORY_CHECK_BYTES);
	return true;
}

static void
start_transfer(GsServedSlot *session, GsPoolChunk *chunk, GsTicket ticket)
{
	session->transfers[session->ntransfers++] = (GsTransfer)
	{
		.chunk = chunk,
			.ticket = ticket
	};
}

/* Returns how many bytes the copy of a chunk to or from the device has. */
static uint64
copied_bytes(const GsSessionOptions * options, const GsPoolChunk *chunk)
{
	uint64		per_row = options->row_layout == GPUSORT_ROWS_VARIABLE ? sizeof(uint32) : 0;

	if (chunk->op == GS_CHUNK_PUT)
		per_row += options->key_words * sizeof(uint64);
	return chunk->data_bytes + chunk->rows * per_row;
}

static void
refuse_chunk(GsSlot *slot, GsServedSlot *session, GsPoolChunk *chunk)
{
	session->full = true;
	pg_write_barrier();
	pg_atomic_write_u32(&chunk->state, GS_CHUNK_REFUSED);
	change_state(slot, GS_SLOT_OPEN, GS_SLOT_FULL);
}

static void
put_chunk(uint32 s, GsPoolChunk *pool_chunk)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServedSlot *session = &served[s];
	char	   *address = gpusort_chunk_address(pool_chunk);
	GsTicket	ticket;
	GsStatus	status = reach_fault(s, "put");
	GsChunk		chunk = {
		.rows = pool_chunk->rows,
		.data = address + pool_chunk->data_offset,
		.data_bytes = pool_chunk->data_bytes
	};

	if (session->full)
	{
		refuse_chunk(slot, session, pool_chunk);
		return;
	}
	for (uint32 w = 0; w < slot->request.options.key_words; w++)
		chunk.keys[w] = (uint64_t *) (address + pool_chunk->keys_offset[w]);
	if (slot->request.options.row_layout == GPUSORT_ROWS_VARIABLE)
		chunk.lengths = (uint32_t *) (address + pool_chunk->lengths_offset);
	if (status == GPUSORT_OK && session->parts[pool_chunk->part] == NULL)
		status = begin_part(s, pool_chunk->part);
	if (status == GPUSORT_OK && !has_room(s, pool_chunk->part, &chunk))
		status = GPUSORT_DEVICE_MEMORY;
	if (status == GPUSORT_OK)
		status = devices->api->session_put(session->parts[pool_chunk->part], &chunk,
										   &ticket);
	if (status == GPUSORT_OK)
	{
		session->rows += chunk.rows;
		start_transfer(session, pool_chunk, ticket);
	}
	else if (status == GPUSORT_DEVICE_MEMORY)
		refuse_chunk(slot, session, pool_chunk);
	else
		fail_session(s, status);
}

/* The fault "swap": exchange the first and the last row of a sorted chunk. */
static void
swap_rows(GsServedSlot *session, const GsPoolChunk *chunk)
{
	char	   *data = gpusort_chunk_address(chunk) + chunk->data_offset;
	Size		row_bytes = chunk->data_bytes / chunk->rows;
	char	   *last = data + (chunk->rows - 1) * row_bytes;

	for (Size i = 0; i < row_bytes; i++)
	{
		char		byte = data[i];

		data[i] = last[i];
		last[i] = byte;
	}
	session->swap_rows = false;
}

/* A chunk is filled: let the process that has asked for it know. */
static void
deliver_chunk(GsServedSlot *session, GsPoolChunk *chunk)
{
	Latch	   *client = chunk->client;

	if (unlikely(session->swap_rows))
		swap_rows(session, chunk);
	pg_write_barrier();
	pg_atomic_write_u32(&chunk->state, GS_CHUNK_DONE);
	SetLatch(client);
}

static void
get_chunk(uint32 s, GsPoolChunk *pool_chunk)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServedSlot *session = &served[s];
	char	   *address = gpusort_chunk_address(pool_chunk);
	GsSortedChunk target = {
		.data = address + pool_chunk->data_offset
	};
	GsTicket	ticket = 0;
	GsStatus	status = reach_fault(s, "get");

	if (slot->request.options.row_layout == GPUSORT_ROWS_VARIABLE)
		target.lengths = (uint32_t *) (address + pool_chunk->lengths_offset);
	if (slot->request.options.tie_levels > 0)
		target.ties = (uint32_t *) (address + pool_chunk->ties_offset);
	if (status == GPUSORT_OK && session->place == GS_ROWS_PARKED)
	{
		if (!gpusort_parking_read(slot, session, pool_chunk, &target))
		{
			char		message[GPUSORT_MESSAGE_BYTES];

			snprintf(message, sizeof(message), "could not read rows of an idle session from a file: %m");
			fail_slot(s, GS_REASON_DEVICE_ERROR, message);
			return;
		}
	}
	else if (status == GPUSORT_OK)
		status = devices->api->session_get(session->parts[pool_chunk->part],
										   pool_chunk->number, &target, &ticket);
	if (status != GPUSORT_OK)
	{
		fail_session(s, status);
		return;
	}
	pool_chunk->rows = target.rows;
	pool_chunk->first_row = target.first_row;
	pool_chunk->data_bytes = target.data_bytes;
	if (session->place == GS_ROWS_PARKED)
		deliver_chunk(session, pool_chunk);
	else
		start_transfer(session, pool_chunk, ticket);
}

/*
 * Take the chunks that the client handed over; returns true if there were any.
 */
static bool
take_chunks(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServedSlot *session = &served[s];
	int			taken = 0;

	while (taken < CHUNKS_PER_TURN)
	{
		uint32		position = session->ring_tail % gpusort_service->nchunks;
		uint32		number = pg_atomic_read_u32(&slot->ring[position]);
		GsPoolChunk *chunk;

		if (number == GPUSORT_NO_CHUNK)
			break;
		pg_read_barrier();
		pg_atomic_write_u32(&slot->ring[position], GPUSORT_NO_CHUNK);
		session->ring_tail++;
		taken++;
		chunk = &gpusort_service->chunks[number];
		if (chunk->op == GS_CHUNK_PUT)
			put_chunk(s, chunk);
		else
			get_chunk(s, chunk);
		if (pg_atomic_read_u32(&slot->state) == GS_SLOT_FAILED)
			break;
		if (session->place == GS_ROWS_PARKED)
			break;				/* we have waited for the file */
	}
	return taken > 0;
}

/* Poll the chunks in transfer; returns true if any transfer has completed. */
static bool
poll_transfers(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServedSlot *session = &served[s];
	GsServiceDevice *device = &gpusort_service->devices[session->device];
	int			still_in_transfer = 0;
	bool		landed = false;
	uint64		bytes;

	for (int i = 0; i < session->ntransfers; i++)
	{
		GsTransfer *transfer = &session->transfers[i];
		GsPoolChunk *chunk = transfer->chunk;
		GsStatus	status =
			devices->api->session_poll(session->parts[chunk->part], transfer->ticket);

		if (status == GPUSORT_NOT_READY)
		{
			session->transfers[still_in_transfer++] = *transfer;
			continue;
		}
		if (status != GPUSORT_OK)
		{
			fail_session(s, status);
			return true;
		}
		landed = true;
		bytes = copied_bytes(&slot->request.options, chunk);
		if (chunk->op == GS_CHUNK_PUT)
		{
			pg_atomic_fetch_add_u64(&device->bytes_in, bytes);
			gpusort_chunk_free(chunk);
			SetLatch(slot->client); /* the owner may wait for a free chunk */
		}
		else
		{
			pg_atomic_fetch_add_u64(&device->bytes_out, bytes);
			deliver_chunk(session, chunk);
		}
	}
	session->ntransfers = still_in_transfer;
	return landed;
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

static void
sort_session(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServedSlot *session = &served[s];
	GsStatus	status = reach_fault(s, "sort");

	memset(&slot->result, 0, sizeof(slot->result));
	for (int p = 0; p < GS_PARTS && status == GPUSORT_OK; p++)
	{
		GsSessionResult result = {0};

		if (session->parts[p] != NULL)
			status = devices->api->session_sort(session->parts[p], &result);
		slot->result.parts[p].rows = result.rows;
		slot->result.parts[p].chunks = result.chunks;
		slot->result.device_bytes += result.device_bytes_peak;
		slot->result.sort_ms += result.sort_ms;
	}
	if (status != GPUSORT_OK)
	{
		fail_session(s, status);
		return;
	}
	session->sorted = true;
	speak_for(s, 0);
	count_memory(s, session_memory(session, GS_PART_REGULAR, NULL));
	(void) gpusort_devices_memory(session->device);
	change_state(slot, GS_SLOT_SORTING, GS_SLOT_SORTED);
}

/* Free the device memory of a session whose rows have been read.  It takes no more rows. */
static void
release_session(uint32 s)
{
	GsServedSlot *session = &served[s];

	end_parts(s);
	gpusort_parking_end(session);
	session->full = true;
	change_state(&gpusort_service->slots[s], GS_SLOT_RELEASING, GS_SLOT_RELEASED);
}

/* Park the next chunk of an idle session.  After the last one, free its device memory. */
static void
park_chunk(uint32 s)
{
	GsStatus	status = gpusort_parking_step(&gpusort_service->slots[s], &served[s],
											  devices->api, reach_fault(s, "park") != GPUSORT_OK);

	if (status != GPUSORT_OK)
		fail_session(s, status);
	else if (served[s].place == GS_ROWS_PARKED)
	{
		end_parts(s);
		gpusort_devices_trim();
	}
}

/* ----------------------------------------------------------------
 *		all sessions in turn
 * ----------------------------------------------------------------
 */

void
gpusort_device_sessions_init(GsOpenDevices *open_devices)
{
	devices = open_devices;
	epoch_served = pg_atomic_read_u32(&gpusort_service->epoch);
}

/* Serve a slot; returns true if there was anything to do. */
static bool
serve_slot(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsSlotState state = (GsSlotState) pg_atomic_read_u32(&slot->state);
	bool		worked;

	if (state == GS_SLOT_FREE || state == GS_SLOT_CLAIMED)
		return false;
	pg_read_barrier();
	if (state == GS_SLOT_CLOSING)
	{
		close_session(s);
		return true;
	}

	/*
	 * Sessions of an earlier device process are lost; the epoch tells their
	 * clients.
	 */
	if (slot->epoch != epoch_served || state == GS_SLOT_FAILED)
		return false;
	if (state == GS_SLOT_OPENING)
	{
		open_session(s);
		return true;
	}
	worked = take_chunks(s);
	worked |= poll_transfers(s);
	if (state == GS_SLOT_SORTING && !worked && !served[s].sorted &&
		pg_atomic_read_u32(&slot->state) == GS_SLOT_SORTING)
	{
		sort_session(s);
		worked = true;
	}
	if (state == GS_SLOT_RELEASING && !worked && served[s].ntransfers == 0)
	{
		release_session(s);
		worked = true;
	}
	if (worked || served[s].ntransfers > 0)
		gpusort_parking_note_use(slot, &served[s]);
	else if (gpusort_parking_due(slot, &served[s]) <= GetCurrentTimestamp())
	{
		park_chunk(s);
		worked = true;
	}
	return worked;
}

bool
gpusort_device_sessions_serve(bool *transferring)
{
	bool		worked = false;

	*transferring = false;
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
	{
		if (serve_slot(s))
		{
			gpusort_service_step();
			worked = true;
		}
		*transferring |= served[s].open && served[s].ntransfers > 0;
	}
	return worked;
}

long
gpusort_device_sessions_idle_ms(long most)
{
	TimestampTz now = GetCurrentTimestamp();

	for (uint32 s = 0; s < gpusort_service->nslots; s++)
	{
		TimestampTz due = gpusort_parking_due(&gpusort_service->slots[s], &served[s]);

		if (due != DT_NOEND)
			most = Min(most, TimestampDifferenceMilliseconds(now, due));
	}
	return most;
}

bool
gpusort_device_sessions_any(void)
{
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
		if (served[s].open)
			return true;
	return false;
}
