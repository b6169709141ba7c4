/*-------------------------------------------------------------------------
 *
 * service_client.c
 *		A backend's interface to the GPU service.
 *
 * Every event that the client waits for is an atomic in shared memory, after
 * whose change the device process sets the client's latch.  If the device
 * process dies, the supervisor increments GsService.epoch and sets the latch:
 * a session whose epoch is not that of the service is lost.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/spin.h"
#include "utils/float.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "service/fault.h"
#include "service/service_client.h"
#include "settings.h"
#include "work.h"

/*
 * Timeouts of waits in milliseconds: for the owner of a session, in case a
 * latch is missed, and for a client that joined a session, whose latch is
 * set only for a chunk that it has asked for.
 */
#define LOOK_AROUND_MS		1000
#define JOINED_LOOK_MS		1

/* See expect_rows(). */
#define MOST_EXPECTED_ROWS	1e12
#define MOST_EXPECTED_BYTES	1e18

/*
 * What the devices' speeds do not include: the service has to be woken up and to answer, and the
 * backend waits.  A sort of 3000 rows took 0.2 ms longer on an H100 than on the CPU; with 10,000
 * rows, it took two thirds of the time (docs/experiments.md, Few rows on a GPU).
 */
#define SERVICE_US			200

/* Reasons why a client waits. */
typedef enum GsClientWait
{
	GS_WAIT_OPEN,
	GS_WAIT_POOL,
	GS_WAIT_SORT,
	GS_WAIT_ROWS,
	GS_WAITS
} GsClientWait;

static const char *const wait_names[] = {
	[GS_WAIT_OPEN] = "GpuSortOpen",
	[GS_WAIT_POOL] = "GpuSortPool",
	[GS_WAIT_SORT] = "GpuSortSort",
	[GS_WAIT_ROWS] = "GpuSortRows",
};

struct GsClient
{
	uint32		number;			/* number of the slot */
	GsSlot	   *slot;
	bool		joined;			/* does another client own the session? */
	GsReason	failure;
	MemoryContextCallback callback;
};

/* The sessions that this process has open, without those that it has joined. */
static int	sessions_in_use = 0;

GsReason
gpusort_client_availability(void)
{
	if (gpusort_service == NULL)
		return GS_REASON_NO_GPU;
	switch ((GsServiceState) pg_atomic_read_u32(&gpusort_service->state))
	{
		case GS_SERVICE_OFF:
		case GS_SERVICE_STARTING:
			return GS_REASON_SERVICE_STARTING;
		case GS_SERVICE_READY:
			return GS_REASON_NONE;
		case GS_SERVICE_FAILED:
			break;
	}
	return GS_REASON_SERVICE_FAILED;
}

/* From how many rows on does a sort take less time on a device? */
static double
min_rows_of(const GsDeviceSpeed *speed)
{
	double		gain_ns = speed->cpu_row_ns - speed->gpu_row_ns;

	return gain_ns > 0 ? (SERVICE_US + speed->session_us) * 1000 / gain_ns :
		get_float8_infinity();
}

const GsDeviceSpeed *
gpusort_client_speed(double *min_rows)
{
	const GsDeviceSpeed *best = NULL;

	*min_rows = get_float8_infinity();
	for (uint32 d = 0; d < pg_atomic_read_u32(&gpusort_service->ndevices); d++)
	{
		GsServiceDevice *device = &gpusort_service->devices[d];

		if (pg_atomic_read_u32(&device->state) != GS_DEVICE_USED)
			continue;
		pg_read_barrier();		/* the state announces the speed */
		if (best == NULL || min_rows_of(&device->speed) < *min_rows)
		{
			best = &device->speed;
			*min_rows = min_rows_of(best);
		}
	}
	return best;
}

Size
gpusort_client_chunk_bytes(void)
{
	return gpusort_service->chunk_bytes;
}

GsReason
gpusort_client_failure(const GsClient *client)
{
	return client->failure;
}

/* ----------------------------------------------------------------
 *		waiting
 * ----------------------------------------------------------------
 */

static inline GsSlotState
slot_state(const GsClient *client)
{
	return (GsSlotState) pg_atomic_read_u32(&client->slot->state);
}

/* Sleep until something may have happened, at most for so many milliseconds. */
static void
wait_for(GsClientWait wait, long timeout_ms)
{
	static uint32 wait_events[GS_WAITS];

	if (wait_events[wait] == 0)
		wait_events[wait] = GPUSORT_NEW_WAIT_EVENT(wait_names[wait]);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 timeout_ms,
					 wait_events[wait]);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

static void
wait_for_service(const GsClient *client, GsClientWait wait)
{
	wait_for(wait, client->joined ? JOINED_LOOK_MS : LOOK_AROUND_MS);
}

static void
log_failure(const GsClient *client)
{
	ereport(LOG,
			(errmsg("GPU %d could not sort: %s",
					gpusort_service->devices[client->slot->device].info.ordinal,
					client->slot->message)));
}

/* Has the session failed?  If so, sets the reason. */
static bool
has_failed(GsClient *client)
{
	if (client->failure != GS_REASON_NONE)
		return true;
	if (client->slot->epoch != pg_atomic_read_u32(&gpusort_service->epoch))
		client->failure = GS_REASON_SERVICE_LOST;
	else if (slot_state(client) == GS_SLOT_FAILED)
	{
		pg_read_barrier();
		client->failure = client->slot->failure;
		if (client->failure == GS_REASON_DEVICE_ERROR)
			log_failure(client);
	}
	return client->failure != GS_REASON_NONE;
}

/*
 * Wait until the slot is no longer in 'state'; returns false after a failure.
 */
static bool
wait_while(GsClient *client, GsSlotState state, GsClientWait wait)
{
	for (;;)
	{
		if (has_failed(client))
			return false;
		if (slot_state(client) != state)
		{
			pg_read_barrier();
			return !has_failed(client);
		}
		wait_for_service(client, wait);
	}
}

/* ----------------------------------------------------------------
 *		opening and closing
 * ----------------------------------------------------------------
 */

static void
close_client(void *arg)
{
	GsClient   *client = arg;
	Latch	   *supervisor;

	if (client->slot == NULL || client->joined)
		return;
	sessions_in_use--;
	pg_memory_barrier();		/* the slot must not be accessed after this */
	pg_atomic_write_u32(&client->slot->state, GS_SLOT_CLOSING);
	client->slot = NULL;
	gpusort_service_wake();

	/* The supervisor frees slots if there is no device process. */
	supervisor = gpusort_service->supervisor;
	if (pg_atomic_read_u32(&gpusort_service->device_pid) == 0 &&
		supervisor != NULL)
		SetLatch(supervisor);
}

/*
 * May this process open another session?  Its sessions can be those of cursors that nobody
 * reads from, for as long as their transaction lasts, so it must not have all of them.
 */
static bool
is_session_allowed(void)
{
	int			most = gpusort_max_sessions_per_backend;

	if (most < 0)
		most = Max(gpusort_service->nslots / 2, 1);
	return sessions_in_use < most;
}

static bool
claim_slot(GsClient *client)
{
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
	{
		GsSlot	   *slot = &gpusort_service->slots[s];
		uint32		free_state = GS_SLOT_FREE;

		if (pg_atomic_read_u32(&slot->state) == GS_SLOT_FREE &&
			pg_atomic_compare_exchange_u32(&slot->state, &free_state,
										   GS_SLOT_CLAIMED))
		{
			client->number = s;
			client->slot = slot;
			sessions_in_use++;
			return true;
		}
	}
	return false;
}

/*
 * Set how many rows a session is to expect.  The planner's estimate can be any number, up to
 * 1e100 rows.  The device process computes sizes of what is expected as uint64, so we limit
 * it to what no device holds.
 */
static void
expect_rows(GsSlotRequest *request, double rows, double row_bytes)
{
	double		bytes;

	rows = rows < MOST_EXPECTED_ROWS ? Max(rows, 0) : MOST_EXPECTED_ROWS;
	bytes = rows * row_bytes;
	request->options.expected_rows = (uint64) rows;
	request->expected_bytes = (uint64) Min(bytes, MOST_EXPECTED_BYTES);
}

static void
fill_request(GsSlotRequest *request, const GsClientOptions *options)
{
	Size		chunk_bytes = gpusort_service->chunk_bytes;
	GsSessionOptions *session = &request->options;

	memset(request, 0, sizeof(*request));
	session->key_words = options->key_words;
	session->row_layout = options->variable ? GPUSORT_ROWS_VARIABLE : GPUSORT_ROWS_FIXED;
	session->row_width = options->row_width;
	if (options->variable)
	{
		/*
		 * Use an eighth of the chunk for lengths, which is enough for rows of
		 * 28 bytes or more.
		 */
		session->chunk_rows = chunk_bytes / 8 / sizeof(uint32);
		session->chunk_bytes = chunk_bytes - chunk_bytes / 8;
	}
	else
	{
		session->chunk_rows = chunk_bytes / options->row_width;
		session->chunk_bytes = chunk_bytes;
	}
	session->tie_levels = options->tie_levels;
	memcpy(session->tie_level, options->tie_level, sizeof(session->tie_level));
	if (options->tie_levels > 0)
		session->chunk_bytes -= MAXALIGN(gpusort_ties_words(session->chunk_rows) * sizeof(uint32));
	expect_rows(request, options->expected_rows, options->expected_row_bytes);
	session->device_memory_limit = (uint64) gpusort_settings_device_memory() * 1024;
	request->pid = MyProcPid;
	request->role = GetAuthenticatedUserId();
	request->role_sessions = gpusort_max_sessions_per_role < 0 ?
		PG_UINT32_MAX : (uint32) gpusort_max_sessions_per_role;
	request->role_memory = (uint64) gpusort_max_device_memory_per_role * 1024;
	request->idle_timeout_ms = gpusort_idle_session_timeout;
	request->fault = gpusort_fault_of_service();
}

static GsClient *
open_client(const GsSlotRequest *request, GsReason *reason)
{
	GsClient   *client;

	if (!is_session_allowed())
	{
		*reason = GS_REASON_BACKEND_SESSIONS;
		return NULL;
	}
	client = palloc0(sizeof(GsClient));
	client->callback.func = close_client;
	client->callback.arg = client;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &client->callback);
	if (!claim_slot(client))
	{
		*reason = GS_REASON_NO_SESSION;
		return NULL;
	}

	client->slot->epoch = pg_atomic_read_u32(&gpusort_service->epoch);
	client->slot->client = MyLatch;
	client->slot->device = -1;
	client->slot->message[0] = '\0';
	client->slot->request = *request;
	pg_atomic_write_u32(&client->slot->ring_head, 0);
	pg_atomic_write_u32(&client->slot->has_ties, 0);
	for (uint32 r = 0; r < gpusort_service->nchunks; r++)
		pg_atomic_write_u32(&client->slot->ring[r], GPUSORT_NO_CHUNK);
	pg_write_barrier();
	pg_atomic_write_u32(&client->slot->state, GS_SLOT_OPENING);
	gpusort_service_wake();

	/*
	 * The service was ready.  One that was not any more when the epoch was
	 * read does not declare this session lost, so it must still be ready.
	 */
	*reason = gpusort_client_availability() == GS_REASON_NONE ?
		GS_REASON_NONE : GS_REASON_SERVICE_LOST;
	if (*reason == GS_REASON_NONE &&
		!wait_while(client, GS_SLOT_OPENING, GS_WAIT_OPEN))
		*reason = client->failure;
	if (*reason == GS_REASON_NONE)
		return client;
	/* Its callback stays registered, and then does nothing. */
	close_client(client);
	return NULL;
}

GsClient *
gpusort_client_open(const GsClientOptions *options, GsReason *reason)
{
	GsSlotRequest request;

	*reason = gpusort_client_availability();
	if (*reason != GS_REASON_NONE)
		return NULL;
	fill_request(&request, options);
	return open_client(&request, reason);
}

int
gpusort_client_device(const GsClient *client)
{
	return client->slot->device;
}

GsClientHandle
gpusort_client_handle(const GsClient *client)
{
	return (GsClientHandle)
	{
		.slot = client->number,
			.epoch = client->slot->epoch
	};
}

GsClient *
gpusort_client_attach(GsClientHandle handle)
{
	GsClient   *client = palloc0(sizeof(GsClient));

	client->joined = true;
	client->number = handle.slot;
	client->slot = &gpusort_service->slots[handle.slot];
	if (client->slot->epoch != handle.epoch)
		client->failure = GS_REASON_SERVICE_LOST;
	return client;
}

/* ----------------------------------------------------------------
 *		a session that is full
 * ----------------------------------------------------------------
 */

/* Does a chunk belong to this session? */
static bool
has_chunk(const GsClient *client, GsPoolChunk *chunk)
{
	if (pg_atomic_read_u32(&chunk->owner) != client->number + 1)
		return false;
	pg_read_barrier();			/* the state is not that of an earlier owner */
	return true;
}

/* Is a chunk of this session on its way to the device? */
static bool
is_being_put(const GsClient *client, GsPoolChunk *chunk)
{
	if (!has_chunk(client, chunk) ||
		pg_atomic_read_u32(&chunk->state) != GS_CHUNK_DEVICES)
		return false;
	pg_read_barrier();			/* who sees the state sees the chunk */
	return chunk->op == GS_CHUNK_PUT;
}

bool
gpusort_client_settle(GsClient *client)
{
	for (;;)
	{
		bool		settled = true;

		for (uint32 c = 0; c < gpusort_service->nchunks && settled; c++)
			settled = !is_being_put(client, &gpusort_service->chunks[c]);
		if (settled)
		{
			pg_read_barrier();	/* before refused chunks are looked for */
			return true;
		}
		wait_for(GS_WAIT_POOL, JOINED_LOOK_MS);
		if (client->slot->epoch != pg_atomic_read_u32(&gpusort_service->epoch) ||
			slot_state(client) == GS_SLOT_FAILED)
			return false;
	}
}

/* ----------------------------------------------------------------
 *		chunks to the device
 * ----------------------------------------------------------------
 */

/*
 * Has the device refused any chunks?  When the owner sorts the rows, other clients may still
 * have to find that out.
 */
static bool
is_full(GsClient *client)
{
	GsSlotState state = slot_state(client);

	if (state < GS_SLOT_FULL || state >= GS_SLOT_FAILED ||
		(state > GS_SLOT_FULL && !client->joined))
		return false;
	pg_read_barrier();			/* who sees the state sees what was refused */
	client->failure = GS_REASON_DEVICE_MEMORY;
	return true;
}

static GsPoolChunk *
get_chunk(GsClient *client, GsChunkOp op, bool wait)
{
	/*
	 * Sooner or later a chunk is free, because the slot's own ones come back.
	 */
	for (;;)
	{
		GsPoolChunk *chunk;

		if (has_failed(client) || (op == GS_CHUNK_PUT && is_full(client)))
			return NULL;
		chunk = gpusort_chunk_alloc(client->number);
		if (chunk != NULL)
			chunk->op = op;
		if (chunk != NULL || !wait)
			return chunk;

		/* Other processes that read chunks free them without a word. */
		wait_for(GS_WAIT_POOL, client->joined || op == GS_CHUNK_GET ?
				 JOINED_LOOK_MS : LOOK_AROUND_MS);
	}
}

GsPoolChunk *
gpusort_client_new_chunk(GsClient *client, bool wait)
{
	GsPoolChunk *chunk = get_chunk(client, GS_CHUNK_PUT, wait);

	if (chunk != NULL)
	{
		chunk->rows = 0;
		chunk->data_bytes = 0;
	}
	return chunk;
}

static void
hand_over(GsClient *client, GsPoolChunk *chunk)
{
	GsSlot	   *slot = client->slot;
	uint32		position = pg_atomic_fetch_add_u32(&slot->ring_head, 1);

	chunk->client = MyLatch;
	if (chunk->op == GS_CHUNK_PUT)
		chunk->number = position;
	pg_atomic_write_u32(&chunk->state, GS_CHUNK_DEVICES);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->ring[position % gpusort_service->nchunks],
						chunk - gpusort_service->chunks);
	gpusort_service_wake();
}

bool
gpusort_client_put(GsClient *client, GsPoolChunk *chunk)
{
	hand_over(client, chunk);
	return !has_failed(client) && !is_full(client);
}

static bool
is_refused(const GsClient *client, GsPoolChunk *chunk)
{
	return has_chunk(client, chunk) &&
		pg_atomic_read_u32(&chunk->state) == GS_CHUNK_REFUSED;
}

GsPoolChunk *
gpusort_client_first_refused(GsClient *client)
{
	GsPoolChunk *first = NULL;

	for (uint32 c = 0; c < gpusort_service->nchunks; c++)
	{
		GsPoolChunk *chunk = &gpusort_service->chunks[c];

		if (!is_refused(client, chunk))
			continue;
		pg_read_barrier();		/* who sees the state sees the chunk */
		if (first == NULL || chunk->number < first->number)
			first = chunk;
	}
	return first;
}

/* Take a chunk unless another producer has taken it.  Refused chunks change in no other way. */
static bool
take_if_refused(GsClient *client, GsPoolChunk *chunk)
{
	bool		taken;

	SpinLockAcquire(&client->slot->take_lock);
	taken = is_refused(client, chunk);
	if (taken)
		pg_atomic_write_u32(&chunk->state, GS_CHUNK_CLIENTS);
	SpinLockRelease(&client->slot->take_lock);
	return taken;
}

GsPoolChunk *
gpusort_client_take_refused(GsClient *client)
{
	for (;;)
	{
		GsPoolChunk *chunk = gpusort_client_first_refused(client);

		if (chunk == NULL || take_if_refused(client, chunk))
			return chunk;
	}
}

/* ----------------------------------------------------------------
 *		sort
 * ----------------------------------------------------------------
 */

bool
gpusort_client_sort(GsClient *client)
{
	uint32		state = GS_SLOT_OPEN;

	/* A device without memory for more rows can sort those that it has. */
	if (client->failure == GS_REASON_DEVICE_MEMORY && is_full(client))
		client->failure = GS_REASON_NONE;
	while (!has_failed(client))
	{
		/* The device process may have set it to FULL in the meantime. */
		if (pg_atomic_compare_exchange_u32(&client->slot->state, &state,
										   GS_SLOT_SORTING))
		{
			gpusort_service_wake();
			if (wait_while(client, GS_SLOT_SORTING, GS_WAIT_SORT))
				return true;

			/* Memory for sorting the rows should have been left. */
			if (client->failure == GS_REASON_DEVICE_MEMORY)
				log_failure(client);
			return false;
		}
	}
	return false;
}

bool
gpusort_client_release(GsClient *client)
{
	uint32		state = GS_SLOT_SORTED;

	if (has_failed(client))
		return false;
	if (!pg_atomic_compare_exchange_u32(&client->slot->state, &state, GS_SLOT_RELEASING))
	{
		/* Only the device process has changed it meanwhile. */
		if (!has_failed(client))
			client->failure = GS_REASON_SERVICE_LOST;
		return false;
	}
	gpusort_service_wake();
	return wait_while(client, GS_SLOT_RELEASING, GS_WAIT_SORT);
}

bool
gpusort_client_is_sorted(GsClient *client)
{
	if (has_failed(client))
		return false;
	pg_read_barrier();			/* who knows that it is sorted sees the
								 * results */
	return true;
}

void
gpusort_client_note_ties(GsClient *client)
{
	pg_atomic_write_u32(&client->slot->has_ties, 1);
}

bool
gpusort_client_has_ties(const GsClient *client)
{
	return pg_atomic_read_u32(&client->slot->has_ties) != 0;
}

const GsSlotResult *
gpusort_client_result(const GsClient *client)
{
	return &client->slot->result;
}

/* ----------------------------------------------------------------
 *		chunks from the device
 * ----------------------------------------------------------------
 */

GsPoolChunk *
gpusort_client_ask(GsClient *client, GsNullPart part, uint64 number, bool wait)
{
	GsPoolChunk *chunk = get_chunk(client, GS_CHUNK_GET, wait);
	const		GsSessionOptions *options = &client->slot->request.options;

	if (chunk == NULL)
		return NULL;
	chunk->part = part;
	chunk->number = number;
	chunk->rows = 0;
	chunk->data_offset = 0;
	chunk->lengths_offset = options->chunk_bytes;
	chunk->ties_offset = options->chunk_bytes;
	if (options->row_layout == GPUSORT_ROWS_VARIABLE)
		chunk->ties_offset += options->chunk_rows * sizeof(uint32);
	hand_over(client, chunk);
	return chunk;
}

bool
gpusort_client_await(GsClient *client, GsPoolChunk *chunk)
{
	while (pg_atomic_read_u32(&chunk->state) != GS_CHUNK_DONE)
	{
		if (has_failed(client))
			return false;
		wait_for_service(client, GS_WAIT_ROWS);
	}
	pg_read_barrier();
	return true;
}
