/*-------------------------------------------------------------------------
 *
 * device_process.c
 *		The process that owns the GPUs.
 *
 * One loop looks at all slots in turn, and does a little for each: what is
 * asynchronous in the device library is started, what was started before is
 * asked whether it is done.  Only a sort is waited for, some milliseconds.
 *
 * The process is a child of the supervisor and not one of the server's own.
 * It must not use locks, memory contexts of a transaction, or anything else
 * that would have to be cleaned up; it may write to the server's log and set
 * latches.  It may die at any time: see service_shmem.h.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "utils/ps_status.h"

#include "service/device_library.h"
#include "service/device_process.h"
#include "service/fault.h"
#include "service/service_shmem.h"
#include "settings.h"

/*
 * How long to nap while there is work under way, and how long after the last
 * there was some; and how long to sleep without any.  Naps save clients the
 * waking, which costs them more than writing a thousand rows.
 */
#define NAP_US				50
#define NAPS_AFTER_WORK		40
#define IDLE_SECONDS		5

/* Chunks of one session that are looked at before it is another's turn. */
#define CHUNKS_PER_TURN		16

/*
 * Device memory that sorting takes per row, keys and row numbers twice and
 * some working space; and what delivery takes for each byte of a chunk.
 */
#define SORT_BYTES_PER_ROW	28
#define STAGING_FACTOR		6

/* The rest of a device's memory: for what allocation rounds up. */
#define SPARE_MEMORY		((uint64) 64 * 1024 * 1024)

/* The part of the rows that have NULL as their first key, for a start. */
#define EXPECTED_PART_APART	16

/* Bytes put after which the device's free memory is asked for again. */
#define MEMORY_CHECK_BYTES	((uint64) 256 * 1024 * 1024)

/* Of GS_FAULT_HANG. */
#define HANG_SECONDS		3

typedef struct GsDeviceUse
{
	GsDevice   *device;
	uint64		spoken_for;		/* bytes that sessions are yet to allocate */
} GsDeviceUse;

typedef struct GsInFlight
{
	GsPoolChunk *chunk;
	GsTicket	ticket;
} GsInFlight;

/* A slot's session as seen from here. */
typedef struct GsServed
{
	bool		open;
	int			device;
	GsSession  *parts[GS_PARTS];
	uint64		rows;			/* put */
	uint64		expected_rows;	/* at least */
	uint64		spoken_for;		/* its share of the device's */
	uint64		put_bytes;		/* since the last look at free memory */
	bool		full;
	bool		sorted;
	uint32		ring_tail;
	uint32		faults;			/* times that the fault's point was met */
	int			nflying;
	GsInFlight	flying[GPUSORT_MAX_CHUNKS];
} GsServed;

static const GsDeviceApi *api;
static GsDeviceUse devices[GPUSORT_MAX_DEVICES];
static int	ndevices;
static GsServed served[GPUSORT_SLOTS];
static uint32 my_epoch;
static volatile sig_atomic_t end_requested = false;

/* ----------------------------------------------------------------
 *		ends
 * ----------------------------------------------------------------
 */

pg_noreturn static void
end_process(int code)
{
	for (int d = 0; d < ndevices && code == GPUSORT_EXIT_ASKED; d++)
		api->device_close(devices[d].device);
	_exit(code);
}

static void
fail_process(int code, const char *message)
{
	strlcpy(gpusort_service->message, message, GPUSORT_MESSAGE_BYTES);
	end_process(code);
}

static void
handle_sigterm(SIGNAL_ARGS)
{
	int			save_errno = errno;

	end_requested = true;
	(void) sem_post(&gpusort_service->wakeup);
	errno = save_errno;
}

static void
handle_sigquit(SIGNAL_ARGS)
{
	_exit(GPUSORT_EXIT_ASKED);
}

static void
set_up_signals(void)
{
	pqsignal(SIGTERM, handle_sigterm);
	pqsignal(SIGQUIT, handle_sigquit);
	pqsignal(SIGINT, SIG_IGN);
	pqsignal(SIGHUP, SIG_IGN);
	pqsignal(SIGUSR1, SIG_IGN);
	pqsignal(SIGUSR2, SIG_IGN);
	pqsignal(SIGURG, SIG_IGN);
	pqsignal(SIGALRM, SIG_IGN);
	pqsignal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &UnBlockSig, NULL);
}

/* ----------------------------------------------------------------
 *		devices
 * ----------------------------------------------------------------
 */

static uint64
free_memory(int d)
{
	GsDeviceMemory memory;

	if (api->device_memory(devices[d].device, &memory) != GPUSORT_OK)
		return 0;
	pg_atomic_write_u64(&gpusort_service->devices[d].free_memory, memory.free);
	pg_atomic_write_u64(&gpusort_service->devices[d].used_memory,
						memory.in_use);
	return memory.free > SPARE_MEMORY ? memory.free - SPARE_MEMORY : 0;
}

/* Open a device and add it to the list; a reason why not goes to 'message'. */
static bool
open_device(int ordinal, char *message)
{
	GsServiceDevice *shared = &gpusort_service->devices[ndevices];
	GsDeviceOptions options = {
		.struct_size = sizeof(GsDeviceOptions),
		.ordinal = ordinal
	};
	GsDevice   *device;

	if (api->device_info(ordinal, &shared->info, message,
						 GPUSORT_MESSAGE_BYTES) != GPUSORT_OK ||
		api->device_open(&options, &device, message,
						 GPUSORT_MESSAGE_BYTES) != GPUSORT_OK)
		return false;
	/* What is pinned is so for all devices, and cannot be pinned again. */
	if (ndevices == 0 &&
		api->host_register(device, gpusort_service->pool,
						   gpusort_service->pool_bytes) != GPUSORT_OK)
	{
		strlcpy(message, api->device_message(device), GPUSORT_MESSAGE_BYTES);
		api->device_close(device);
		return false;
	}
	devices[ndevices].device = device;
	pg_atomic_write_u32(&shared->sessions, 0);
	(void) free_memory(ndevices);
	ndevices++;
	return true;
}

static void
open_devices(void)
{
	char		message[GPUSORT_MESSAGE_BYTES] = "";
	GsStatus	status;
	int			count = 0;

	api = gpusort_device_library_open(message, sizeof(message));
	if (api == NULL)
		fail_process(GPUSORT_EXIT_NO_DEVICE, message);
	status = api->device_count(&count, message, sizeof(message));
	if (status != GPUSORT_OK)
		fail_process(GPUSORT_EXIT_NO_DEVICE, message[0] != '\0' ? message :
					 api->status_text(status));
	for (int d = 0; d < count && ndevices < GPUSORT_MAX_DEVICES; d++)
	{
		if (!gpusort_settings_use_device(d))
			continue;
		if (!open_device(d, message))
			ereport(WARNING,
					(errmsg("could not use GPU %d: %s", d, message)));
	}
	if (ndevices == 0)
		fail_process(GPUSORT_EXIT_NO_DEVICE, message[0] != '\0' ? message :
					 "no GPU is to be used");
	for (int d = 0; d < ndevices; d++)
	{
		const		GsDeviceInfo *info = &gpusort_service->devices[d].info;

		ereport(LOG,
				(errmsg("pg_gpusort uses GPU %d: %s, compute capability %d.%d, %llu MB, through a pool of %zu MB",
						info->ordinal, info->name, info->capability_major,
						info->capability_minor,
						(unsigned long long) (info->total_memory >> 20),
						gpusort_service->pool_bytes >> 20)));
	}
	strlcpy(gpusort_service->build, api->build, sizeof(gpusort_service->build));
	pg_atomic_write_u32(&gpusort_service->ndevices, ndevices);
}

/* ----------------------------------------------------------------
 *		failures of sessions
 * ----------------------------------------------------------------
 */

/*
 * Move a slot on, unless its client is closing it, and tell the client.
 */
static void
change_state(GsSlot *slot, uint32 from, GsSlotState to)
{
	pg_write_barrier();
	if (pg_atomic_compare_exchange_u32(&slot->state, &from, to))
		SetLatch(slot->client);
}

static void
fail_session(uint32 s, GsStatus status)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	uint32		state = pg_atomic_read_u32(&slot->state);
	const char *message = api->device_message(devices[served[s].device].device);

	if (message[0] == '\0')
		message = api->status_text(status);
	if (status == GPUSORT_DEVICE_LOST)
		fail_process(GPUSORT_EXIT_LOST, message);
	served[s].nflying = 0;		/* chunks on their way go with the session */
	slot->status = status;
	strlcpy(slot->message, message, GPUSORT_MESSAGE_BYTES);
	pg_write_barrier();
	while (state != GS_SLOT_CLOSING &&
		   !pg_atomic_compare_exchange_u32(&slot->state, &state,
										   GS_SLOT_FAILED))
		;
	SetLatch(slot->client);
}

/* Come to a point where the session's fault may strike. */
static GsStatus
meet_fault(uint32 s, GsFaultPoint point)
{
	const GsFault *fault = &gpusort_service->slots[s].request.fault;

	if (fault->point != point || ++served[s].faults != fault->number)
		return GPUSORT_OK;
	switch ((GsFaultAction) fault->action)
	{
		case GS_FAULT_CRASH:
			(void) kill(MyProcPid, SIGKILL);
			break;
		case GS_FAULT_LOST:
			return GPUSORT_DEVICE_LOST;
		case GS_FAULT_MEMORY:
			return GPUSORT_DEVICE_MEMORY;
		case GS_FAULT_ERROR:
			return GPUSORT_DEVICE_ERROR;
		case GS_FAULT_HANG:
			sleep(HANG_SECONDS);
			break;
		case GS_FAULT_ALLOC:
		case GS_FAULT_NOTHING:
			break;
	}
	return GPUSORT_OK;
}

/* ----------------------------------------------------------------
 *		opening and closing
 * ----------------------------------------------------------------
 */

/* What a session of so many rows is yet to take of device memory. */
static void
speak_for(uint32 s, uint64 bytes)
{
	GsServed   *session = &served[s];

	devices[session->device].spoken_for += bytes - session->spoken_for;
	session->spoken_for = bytes;
}

static uint64
staging_bytes(const GsSlotRequest *request)
{
	return STAGING_FACTOR * request->chunk_bytes;
}

/* Device memory of the rows expected, with all that sorting takes. */
static uint64
expected_memory(const GsSlotRequest *request)
{
	uint64		per_row = request->key_words * sizeof(uint64) +
		SORT_BYTES_PER_ROW;

	if (request->variable)
		per_row += sizeof(uint32) + 2 * sizeof(uint64);
	return request->expected_rows * per_row + request->expected_bytes +
		staging_bytes(request);
}

/*
 * The device with the most memory to spare; one with fewer sessions is better
 * if it has half as much or more.
 */
static int
choose_device(uint64 *room)
{
	int			best = 0;
	uint32		best_sessions = 0;

	*room = 0;
	for (int d = 0; d < ndevices; d++)
	{
		uint64		available = free_memory(d);
		uint32		sessions =
			pg_atomic_read_u32(&gpusort_service->devices[d].sessions);

		available -= Min(available, devices[d].spoken_for);
		if (d == 0 || available > 2 * *room ||
			(available > *room && sessions <= best_sessions) ||
			(available >= *room / 2 && sessions < best_sessions))
		{
			best = d;
			best_sessions = sessions;
			*room = available;
		}
	}
	return best;
}

static GsStatus
begin_part(uint32 s, GsPart part)
{
	const GsSlotRequest *request = &gpusort_service->slots[s].request;
	GsSessionOptions options = {
		.struct_size = sizeof(GsSessionOptions),
		.key_words = request->key_words,
		.row_layout = request->variable ? GPUSORT_ROWS_VARIABLE :
		GPUSORT_ROWS_FIXED,
		.row_width = request->row_width,
		.chunk_rows = request->chunk_rows,
		.chunk_bytes = request->chunk_bytes,
		.device_memory_limit = request->device_memory,
		.expected_rows = part == GS_PART_REGULAR ? request->expected_rows :
		request->expected_rows / EXPECTED_PART_APART + 1
	};

	return api->session_begin(devices[served[s].device].device, &options,
							  &served[s].parts[part]);
}

/* Let the device's allocation of that number fail. */
static void
set_alloc_fault(uint32 s, bool on)
{
	const GsFault *fault = &gpusort_service->slots[s].request.fault;
	GsDebugSettings settings = {.struct_size = sizeof(GsDebugSettings)};

	if (fault->action != GS_FAULT_ALLOC)
		return;
	settings.fail_alloc = fault->number;
	(void) api->debug_set(devices[served[s].device].device,
						  on ? &settings : NULL);
}

static void
open_session(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServed   *session = &served[s];
	uint64		room;
	GsStatus	status;

	memset(session, 0, offsetof(GsServed, flying));
	session->open = true;
	session->device = choose_device(&room);
	slot->device = session->device;
	pg_atomic_fetch_add_u32(&gpusort_service->devices[session->device].sessions,
							1);
	if (slot->request.device_memory > 0)
		room = Min(room, slot->request.device_memory);
	if (expected_memory(&slot->request) > room)
	{
		fail_session(s, GPUSORT_DEVICE_MEMORY);
		return;
	}
	session->expected_rows = slot->request.expected_rows;
	set_alloc_fault(s, true);
	status = meet_fault(s, GS_FAULT_OPEN);
	if (status == GPUSORT_OK)
		status = begin_part(s, GS_PART_REGULAR);
	if (status != GPUSORT_OK)
	{
		fail_session(s, status);
		return;
	}
	speak_for(s, expected_memory(&slot->request));
	change_state(slot, GS_SLOT_OPENING, GS_SLOT_OPEN);
}

static void
close_session(uint32 s)
{
	GsServed   *session = &served[s];

	if (session->open)
	{
		GsServiceDevice *shared = &gpusort_service->devices[session->device];

		(void) meet_fault(s, GS_FAULT_CLOSE);

		/* Waits for copies from and to the chunks. */
		for (int p = 0; p < GS_PARTS; p++)
			api->session_end(session->parts[p]);
		set_alloc_fault(s, false);
		speak_for(s, 0);
		session->open = false;
		pg_atomic_fetch_sub_u32(&shared->sessions, 1);
		(void) free_memory(session->device);
	}
	gpusort_slot_free(s);
}

/* ----------------------------------------------------------------
 *		chunks
 * ----------------------------------------------------------------
 */

static uint64
session_memory(const GsServed *session)
{
	uint64		sum = 0;

	for (int p = 0; p < GS_PARTS; p++)
	{
		uint64		bytes;

		if (session->parts[p] != NULL &&
			api->session_memory(session->parts[p], &bytes) == GPUSORT_OK)
			sum += bytes;
	}
	return sum;
}

/*
 * Is there room for a chunk, and then for sorting?  The rows expected were
 * spoken for when the session was opened; of the memory for more rows, the
 * device is asked from time to time.
 */
static bool
has_room(uint32 s, const GsPoolChunk *chunk)
{
	const GsSlotRequest *request = &gpusort_service->slots[s].request;
	GsServed   *session = &served[s];
	GsDeviceUse *use = &devices[session->device];
	uint64		rows = session->rows + chunk->rows;
	uint64		to_sort = rows * SORT_BYTES_PER_ROW + staging_bytes(request);
	uint64		chunk_bytes = chunk->data_bytes +
		chunk->rows * request->key_words * sizeof(uint64);
	uint64		wanted = to_sort + to_sort / 4 + MEMORY_CHECK_BYTES;

	if (request->device_memory > 0 &&
		session_memory(session) + chunk_bytes + to_sort > request->device_memory)
		return false;
	session->put_bytes += chunk_bytes;
	if (session->put_bytes < MEMORY_CHECK_BYTES &&
		(rows <= session->expected_rows || session->spoken_for >= to_sort))
		return true;
	session->put_bytes = 0;
	if (rows <= session->expected_rows)
	{
		uint64		expected = expected_memory(request);
		uint64		held = session_memory(session);

		speak_for(s, Max(to_sort, expected - Min(expected, held)));
		return true;
	}
	if (free_memory(session->device) < use->spoken_for - session->spoken_for + wanted)
		return false;
	speak_for(s, wanted);
	return true;
}

static void
fly(GsServed *session, GsPoolChunk *chunk, GsTicket ticket)
{
	session->flying[session->nflying++] = (GsInFlight)
	{
		.chunk = chunk,
			.ticket = ticket
	};
}

static void
refuse_chunk(GsSlot *slot, GsServed *session, GsPoolChunk *chunk)
{
	session->full = true;
	slot->refused++;
	pg_write_barrier();
	pg_atomic_write_u32(&chunk->state, GS_CHUNK_REFUSED);
	change_state(slot, GS_SLOT_OPEN, GS_SLOT_FULL);
}

static void
put_chunk(uint32 s, GsPoolChunk *pool_chunk)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServed   *session = &served[s];
	char	   *address = gpusort_chunk_address(pool_chunk);
	GsTicket	ticket;
	GsStatus	status = meet_fault(s, GS_FAULT_PUT);
	GsChunk		chunk = {
		.struct_size = sizeof(GsChunk),
		.rows = pool_chunk->rows,
		.data = address + pool_chunk->data_offset,
		.data_bytes = pool_chunk->data_bytes
	};

	if (session->full)
	{
		refuse_chunk(slot, session, pool_chunk);
		return;
	}
	for (uint32 w = 0; w < slot->request.key_words; w++)
		chunk.keys[w] = (uint64_t *) (address + pool_chunk->keys_offset[w]);
	if (slot->request.variable)
		chunk.lengths = (uint32_t *) (address + pool_chunk->lengths_offset);
	if (status == GPUSORT_OK && !has_room(s, pool_chunk))
		status = GPUSORT_DEVICE_MEMORY;
	if (status == GPUSORT_OK && session->parts[pool_chunk->part] == NULL)
		status = begin_part(s, pool_chunk->part);
	if (status == GPUSORT_OK)
		status = api->session_put(session->parts[pool_chunk->part], &chunk,
								  &ticket);
	if (status == GPUSORT_OK)
	{
		session->rows += chunk.rows;
		fly(session, pool_chunk, ticket);
	}
	else if (status == GPUSORT_DEVICE_MEMORY)
		refuse_chunk(slot, session, pool_chunk);
	else
		fail_session(s, status);
}

static void
get_chunk(uint32 s, GsPoolChunk *pool_chunk)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServed   *session = &served[s];
	char	   *address = gpusort_chunk_address(pool_chunk);
	GsSortedChunk target = {
		.struct_size = sizeof(GsSortedChunk),
		.data = address + pool_chunk->data_offset
	};
	GsTicket	ticket;
	GsStatus	status = meet_fault(s, GS_FAULT_GET);

	if (slot->request.variable)
		target.lengths = (uint32_t *) (address + pool_chunk->lengths_offset);
	if (status == GPUSORT_OK)
		status = api->session_get(session->parts[pool_chunk->part],
								  pool_chunk->number, &target, &ticket);
	if (status != GPUSORT_OK)
	{
		fail_session(s, status);
		return;
	}
	pool_chunk->rows = target.rows;
	pool_chunk->first_row = target.first_row;
	pool_chunk->data_bytes = target.data_bytes;
	fly(session, pool_chunk, ticket);
}

/* Take the chunks that the client handed over; true if there were any. */
static bool
take_chunks(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServed   *session = &served[s];
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
	}
	return taken > 0;
}

/* See what has arrived; true if anything has. */
static bool
land_chunks(uint32 s)
{
	GsSlot	   *slot = &gpusort_service->slots[s];
	GsServed   *session = &served[s];
	int			still_flying = 0;
	bool		landed = false;

	for (int i = 0; i < session->nflying; i++)
	{
		GsInFlight *flight = &session->flying[i];
		GsPoolChunk *chunk = flight->chunk;
		GsStatus	status =
			api->session_poll(session->parts[chunk->part], flight->ticket);

		if (status == GPUSORT_NOT_READY)
		{
			session->flying[still_flying++] = *flight;
			continue;
		}
		if (status != GPUSORT_OK)
		{
			fail_session(s, status);
			return true;
		}
		landed = true;
		if (chunk->op == GS_CHUNK_PUT)
			gpusort_chunk_free(chunk);
		else
		{
			pg_write_barrier();
			pg_atomic_write_u32(&chunk->state, GS_CHUNK_DONE);
		}
	}
	session->nflying = still_flying;
	if (landed)
		SetLatch(slot->client);
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
	GsServed   *session = &served[s];
	GsStatus	status = meet_fault(s, GS_FAULT_SORT);

	slot->device_bytes = 0;
	slot->sort_ms = 0;
	for (int p = 0; p < GS_PARTS && status == GPUSORT_OK; p++)
	{
		GsSessionResult result = {0};

		if (session->parts[p] != NULL)
			status = api->session_sort(session->parts[p], &result);
		slot->parts[p].rows = result.rows;
		slot->parts[p].chunks = result.chunks;
		slot->device_bytes += result.device_bytes_peak;
		slot->sort_ms += result.sort_ms;
	}
	if (status != GPUSORT_OK)
	{
		fail_session(s, status);
		return;
	}
	session->sorted = true;
	speak_for(s, 0);
	(void) free_memory(session->device);
	change_state(slot, GS_SLOT_SORTING, GS_SLOT_SORTED);
}

/* ----------------------------------------------------------------
 *		the loop
 * ----------------------------------------------------------------
 */

/* Do what there is to do for a slot; true if there was anything. */
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
	/* Sessions of an earlier device process are lost; clients know. */
	if (slot->epoch != my_epoch || state == GS_SLOT_FAILED)
		return false;
	if (state == GS_SLOT_OPENING)
	{
		open_session(s);
		return true;
	}
	worked = take_chunks(s);
	worked |= land_chunks(s);
	if (state == GS_SLOT_SORTING && !worked && !served[s].sorted &&
		pg_atomic_read_u32(&slot->state) == GS_SLOT_SORTING)
	{
		sort_session(s);
		worked = true;
	}
	return worked;
}

static void
nap(void)
{
	struct timespec pause = {.tv_nsec = NAP_US * 1000};

	(void) nanosleep(&pause, NULL);
}

/* Sleep until a client has something to do, but not for ever. */
static void
sleep_until_woken(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += IDLE_SECONDS;
	while (sem_timedwait(&gpusort_service->wakeup, &until) != 0 &&
		   errno == EINTR && !end_requested)
		;
}

/* Serve all slots once; *flying tells of work under way on a device. */
static bool
serve_all(bool *flying)
{
	bool		worked = false;

	*flying = false;
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
	{
		worked |= serve_slot(s);
		*flying |= served[s].open && served[s].nflying > 0;
	}
	return worked;
}

void
gpusort_device_process_main(void)
{
	pid_t		supervisor = getppid();
	bool		flying;
	int			naps = 0;

	set_up_signals();
	my_epoch = pg_atomic_read_u32(&gpusort_service->epoch);
	open_devices();
	set_ps_display("serving");
	pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_READY);

	while (!end_requested && getppid() == supervisor)
	{
		bool		worked = serve_all(&flying);

		if (worked || flying)
			naps = NAPS_AFTER_WORK;
		if (worked)
			continue;
		if (naps > 0)
		{
			naps--;
			nap();
			continue;
		}

		/* Whoever writes from now on wakes us; what was written we see. */
		pg_atomic_write_u32(&gpusort_service->asleep, 1);
		pg_memory_barrier();
		if (!serve_all(&flying))
			sleep_until_woken();
		pg_atomic_write_u32(&gpusort_service->asleep, 0);
	}
	end_process(GPUSORT_EXIT_ASKED);
}
