/*-------------------------------------------------------------------------
 *
 * service_shmem.c
 *		Shared memory between backends and the GPU service.
 *
 * The pool is a part of the server's main shared memory.  So it is at the same
 * address in every process, uses huge pages if the server's memory does, and
 * exists from the start.  If no device library is found when the server
 * starts, no memory is requested.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>
#include <unistd.h>

#include "miscadmin.h"

#include "core/poison.h"
#include "preload.h"
#include "service/service_shmem.h"
#include "settings.h"

/*
 * A chunk is a fixed fraction of the pool, within these limits.  In chunks of
 * 512 kB, 1 MB and 2 MB, an H200 takes rows at 62, 75 and 82 percent of the
 * rate of plain copies, and returns them at 76, 90 and 95 percent.
 */
#define CHUNKS_PER_POOL		256
#define MIN_CHUNK_BYTES		(64 * 1024)
#define MAX_CHUNK_BYTES		(2 * 1024 * 1024)

/* Large enough for the page size of every platform. */
#define POOL_ALIGNMENT		(64 * 1024)

GsService  *gpusort_service = NULL;

/*
 * The file of the device library, and whether it was there before the server requested
 * shared memory: after a crash it initializes the same amount again, even if the file has
 * appeared or disappeared meanwhile.
 */
char		gpusort_library_path[MAXPGPATH];
bool		gpusort_library_was_found = false;

/* Why there cannot be a GPU service nevertheless, or NULL. */
static const char *service_failure = NULL;

/*
 * A name without a path is looked up in the directory of our own library, beside which it is
 * installed.  That is usually the directory of PostgreSQL's modules, but the server may have
 * found our library in another directory of dynamic_library_path.
 */
static void
find_library(char *path)
{
	Dl_info		ours;
	const char *end;

	if (is_absolute_path(gpusort_device_library))
	{
		strlcpy(path, gpusort_device_library, MAXPGPATH);
		return;
	}
	/* PostgreSQL loads libraries by absolute paths. */
	if (dladdr(&gpusort_device_library, &ours) != 0 &&
		(end = last_dir_separator(ours.dli_fname)) != NULL)
		snprintf(path, MAXPGPATH, "%.*s/%s%s",
				 (int) (end - ours.dli_fname), ours.dli_fname,
				 gpusort_device_library, DLSUFFIX);
	else
		snprintf(path, MAXPGPATH, "%s/%s%s", pkglib_path,
				 gpusort_device_library, DLSUFFIX);
}

static Size
pool_bytes(void)
{
	return (Size) gpusort_pool_size * 1024;
}

static Size
choose_chunk_bytes(void)
{
	Size		bytes = pool_bytes() / CHUNKS_PER_POOL;

	bytes = Min(Max(bytes, MIN_CHUNK_BYTES), MAX_CHUNK_BYTES);
	bytes = Max(bytes, pool_bytes() / GPUSORT_MAX_CHUNKS);
	return TYPEALIGN(MIN_CHUNK_BYTES, bytes);
}

static bool
service_is_wanted(void)
{
	return gpusort_pool_size > 0 && gpusort_library_was_found;
}

/* The pool follows the GsService in memory. */
static Size
shared_bytes(void)
{
	return service_is_wanted() ?
		add_size(sizeof(GsService), pool_bytes() + POOL_ALIGNMENT) : 0;
}

/* Returns false if the system cannot provide what the service needs. */
static bool
init_service(GsService *service)
{
	memset(service, 0, sizeof(GsService));
	pg_atomic_init_u32(&service->state,
					   service_failure != NULL ? GS_SERVICE_FAILED : GS_SERVICE_OFF);
	if (service_failure != NULL)
		strlcpy(service->message, service_failure, GPUSORT_MESSAGE_BYTES);
	pg_atomic_init_u32(&service->epoch, 0);
	pg_atomic_init_u32(&service->device_pid, 0);
	pg_atomic_init_u32(&service->restarts, 0);
	pg_atomic_init_u32(&service->asleep, GS_AWAKE);
	pg_atomic_init_u32(&service->steps, 0);
	pg_atomic_init_u32(&service->ndevices, 0);
	for (int d = 0; d < GPUSORT_MAX_DEVICES; d++)
	{
		pg_atomic_init_u32(&service->devices[d].state, GS_DEVICE_CLOSED);
		pg_atomic_init_u32(&service->devices[d].failures, 0);
		pg_atomic_init_u64(&service->devices[d].retry_at, 0);
		pg_atomic_init_u64(&service->devices[d].free_memory, 0);
		pg_atomic_init_u64(&service->devices[d].used_memory, 0);
		pg_atomic_init_u32(&service->devices[d].temperature, GPUSORT_UNKNOWN_HEALTH);
		pg_atomic_init_u64(&service->devices[d].memory_errors, GPUSORT_UNKNOWN_HEALTH);
		pg_atomic_init_u64(&service->devices[d].bytes_in, 0);
		pg_atomic_init_u64(&service->devices[d].bytes_out, 0);
		pg_atomic_init_u32(&service->devices[d].sessions, 0);
	}
	for (int s = 0; s < GPUSORT_SLOTS; s++)
	{
		pg_atomic_init_u32(&service->slots[s].state, GS_SLOT_FREE);
		pg_atomic_init_u64(&service->slots[s].device_memory, 0);
		pg_atomic_init_u64(&service->slots[s].file_bytes, 0);
		pg_atomic_init_u64(&service->slots[s].last_use, 0);
		pg_atomic_init_u32(&service->slots[s].ring_head, 0);
		pg_atomic_init_u32(&service->slots[s].has_ties, 0);
		SpinLockInit(&service->slots[s].take_lock);
		for (int r = 0; r < GPUSORT_MAX_CHUNKS; r++)
			pg_atomic_init_u32(&service->slots[s].ring[r], GPUSORT_NO_CHUNK);
	}
	for (int c = 0; c < GPUSORT_MAX_CHUNKS; c++)
	{
		pg_atomic_init_u32(&service->chunks[c].owner, 0);
		pg_atomic_init_u32(&service->chunks[c].state, GS_CHUNK_CLIENTS);
	}
	if (sem_init(&service->wakeup, 1, 0) != 0)
	{
		ereport(LOG,
				(errmsg("could not create a semaphore for the GPU service: %m")));
		return false;
	}
	return true;
}

static void
lay_out_pool(GsService *service)
{
	service->pool = (char *) TYPEALIGN(POOL_ALIGNMENT, service + 1);
	service->chunk_bytes = choose_chunk_bytes();
	service->nchunks = pool_bytes() / service->chunk_bytes;
	service->pool_bytes = (Size) service->nchunks * service->chunk_bytes;

	/* Half of the chunks are shared by all slots. */
	service->nslots = Min(GPUSORT_SLOTS,
						  service->nchunks / (2 * GPUSORT_SLOT_CHUNKS));
}

static void
start_shared(void *memory, bool found)
{
	gpusort_service = memory;
	if (found)
		return;
	if (init_service(gpusort_service))
		lay_out_pool(gpusort_service);
	else
		gpusort_service = NULL;
}

static const GsSharedMemory shared_memory = {
	.name = "pg_gpusort service",
	.bytes = shared_bytes,
	.start = start_shared,
};

void
gpusort_service_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	if (gpusort_device_library[0] != '\0')
	{
		find_library(gpusort_library_path);
		gpusort_library_was_found = access(gpusort_library_path, R_OK) == 0;
	}
	if (gpusort_pool_size > 0 && !gpusort_library_was_found && gpusort_device_library[0] != '\0' &&
		strcmp(gpusort_device_library, GPUSORT_DEFAULT_DEVICE_LIBRARY) != 0)
		ereport(WARNING,
				(errmsg("pg_gpusort sorts on the CPU: there is no device library \"%s\"",
						gpusort_device_library)));
	if (service_is_wanted() &&
		!gpusort_register_worker("pg_gpusort service", "gpusort_service_main"))
		service_failure = "max_worker_processes allows no background worker for the GPU service";
	gpusort_shared_memory_add(&shared_memory);
}

const char *
gpusort_service_absence(void)
{
	if (gpusort_pool_size == 0)
		return "pg_gpusort.pool_size is 0";
	if (gpusort_device_library[0] == '\0')
		return "pg_gpusort.device_library is empty";
	if (!gpusort_library_was_found)
		return psprintf("there is no library \"%s\"", gpusort_library_path);
	return service_failure;
}

/* ----------------------------------------------------------------
 *		chunks
 * ----------------------------------------------------------------
 */

/*
 * Take a free chunk between 'first' and 'end' - 1, searching from 'start' on.
 */
static GsPoolChunk *
take_chunk(uint32 slot, uint32 first, uint32 end, uint32 start)
{
	for (uint32 i = 0; i < end - first; i++)
	{
		uint32		number = first + (start - first + i) % (end - first);
		GsPoolChunk *chunk = &gpusort_service->chunks[number];
		uint32		nobody = 0;

		if (pg_atomic_read_u32(&chunk->owner) == 0 &&
			pg_atomic_compare_exchange_u32(&chunk->owner, &nobody, slot + 1))
		{
			Assert(pg_atomic_read_u32(&chunk->state) == GS_CHUNK_CLIENTS);
			return chunk;
		}
	}
	return NULL;
}

/*
 * Each slot has chunks of its own, so that no session has to wait for another
 * one, which may belong to a cursor that nobody reads from.  The other chunks
 * are shared.
 */
GsPoolChunk *
gpusort_chunk_alloc(uint32 slot)
{
	uint32		own = slot * GPUSORT_SLOT_CHUNKS;
	uint32		common = gpusort_service->nslots * GPUSORT_SLOT_CHUNKS;
	uint32		end = gpusort_service->nchunks;
	GsPoolChunk *chunk = take_chunk(slot, own, own + GPUSORT_SLOT_CHUNKS, own);

	/*
	 * Start at different chunks, so that sessions do not contend for the same
	 * ones.
	 */
	if (chunk == NULL && common < end)
		chunk = take_chunk(slot, common, end,
						   common + slot * (end - common) / GPUSORT_SLOTS);
	if (chunk != NULL)
		gpusort_poison(gpusort_chunk_address(chunk),
					   gpusort_service->chunk_bytes);
	return chunk;
}

void
gpusort_chunk_free(GsPoolChunk *chunk)
{
	/*
	 * Our accesses end before another slot takes it.  They include reading,
	 * which a write barrier does not order.
	 */
	pg_memory_barrier();
	pg_atomic_write_u32(&chunk->state, GS_CHUNK_CLIENTS);
	pg_write_barrier();			/* who sees another owner sees this state */
	pg_atomic_write_u32(&chunk->owner, 0);
}

/* ----------------------------------------------------------------
 *		slots and waking
 * ----------------------------------------------------------------
 */

void
gpusort_slot_free(uint32 number)
{
	GsSlot	   *slot = &gpusort_service->slots[number];

	for (uint32 c = 0; c < gpusort_service->nchunks; c++)
		if (pg_atomic_read_u32(&gpusort_service->chunks[c].owner) == number + 1)
			gpusort_chunk_free(&gpusort_service->chunks[c]);
	pg_atomic_write_u64(&slot->device_memory, 0);
	pg_atomic_write_u64(&slot->file_bytes, 0);
	pg_memory_barrier();		/* as for a chunk */
	pg_atomic_write_u32(&slot->state, GS_SLOT_FREE);
}

void
gpusort_service_wake(void)
{
	/*
	 * Either we see that the device process is asleep, or it sees what we
	 * have written.
	 */
	pg_memory_barrier();
	if (pg_atomic_exchange_u32(&gpusort_service->asleep, GS_AWAKE) != GS_AWAKE)
		(void) sem_post(&gpusort_service->wakeup);
}
