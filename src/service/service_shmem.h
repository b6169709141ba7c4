/*-------------------------------------------------------------------------
 *
 * service_shmem.h
 *		Shared memory between backends and the GPU service.
 *
 * Three kinds of processes use it.  Clients are backends that have something
 * to sort.  The supervisor is the background worker "pg_gpusort service".  The
 * device process is the supervisor's child, and the only one that uses CUDA;
 * the postmaster does not know it, so the server survives its death.
 *
 * The device process may die at any instruction, so it cannot hold locks.
 * Every word that several processes write is an atomic, and the slots' states
 * and the chunks' owners tell what the device process has left behind.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_SHMEM_H
#define GPUSORT_SERVICE_SHMEM_H

#include <semaphore.h>
#include <unistd.h>

#include "port/atomics.h"
#include "storage/latch.h"
#include "storage/spin.h"

#include "gpusort_device.h"
#include "reason.h"

/* Maximum number of concurrent sessions, and of GPUs. */
#define GPUSORT_SLOTS			64
#define GPUSORT_MAX_DEVICES		16

StaticAssertDecl(GPUSORT_MAX_DEVICES <= 32,
				 "there must be a bit for each device in GsSlotRequest");

/*
 * Maximum number of chunks in the pool, and number of chunks that each slot
 * has for itself.
 */
#define GPUSORT_MAX_CHUNKS		1024
#define GPUSORT_SLOT_CHUNKS		4

/*
 * Parts of a session.  Rows whose first sort key is NULL form a separate part, which
 * is sorted separately.
 */
typedef enum GsNullPart
{
	GS_PART_REGULAR,
	GS_PART_NULL_KEYS,
	GS_PARTS
} GsNullPart;

typedef enum GsServiceState
{
	GS_SERVICE_OFF,				/* there is no supervisor yet */
	GS_SERVICE_STARTING,		/* devices are being opened */
	GS_SERVICE_READY,
	GS_SERVICE_FAILED			/* see GsService.message */
} GsServiceState;

/*
 * States of a slot.  'c' marks transitions made by the client, 'd' those made
 * by the device process.
 *
 *	FREE -c-> CLAIMED -c-> OPENING -d-> OPEN -c-> SORTING -d-> SORTED
 *
 * OPEN -d-> FULL when the device has no room for a chunk; FULL -c-> SORTING.
 *
 * When the owner of a session that was full has read the sorted rows, it can have their
 * device memory freed, while other producers still find out that the session is full:
 * SORTED -c-> RELEASING -d-> RELEASED.
 *
 * Any state from OPENING on -d-> FAILED.  Any state from CLAIMED on -c->
 * CLOSING.  A CLOSING slot belongs to the service, which makes it FREE.
 */
typedef enum GsSlotState
{
	GS_SLOT_FREE,
	GS_SLOT_CLAIMED,
	GS_SLOT_OPENING,
	GS_SLOT_OPEN,
	GS_SLOT_FULL,
	GS_SLOT_SORTING,
	GS_SLOT_SORTED,
	GS_SLOT_RELEASING,
	GS_SLOT_RELEASED,
	GS_SLOT_FAILED,
	GS_SLOT_CLOSING
} GsSlotState;

/* A fault for tests, or all zeros; see service/fault.h. */
typedef struct GsFault
{
	char		point[8];
	char		action[12];
	uint32		number;			/* at which visit of the point, from 1 */
} GsFault;

/* What the client requests, written before OPENING. */
typedef struct GsSlotRequest
{
	GsSessionOptions options;	/* of the session of all rows */
	uint64		expected_bytes; /* of all rows, without keys */
	int			pid;			/* of the client */
	Oid			role;			/* who has logged in */
	uint32		role_sessions;	/* most sessions of all backends of the role */
	uint64		role_memory;	/* most device memory of these, or 0 for no
								 * limit */
	int			idle_timeout_ms;	/* after which sorted rows are parked, or
									 * 0 */
	GsFault		fault;
} GsSlotRequest;

/* The result of sorting a part. */
typedef struct GsPartResult
{
	uint64		rows;
	uint64		chunks;
} GsPartResult;

typedef struct GsSlotResult
{
	GsPartResult parts[GS_PARTS];
	uint64		device_bytes;	/* peak */
	double		sort_ms;		/* on the device */
} GsSlotResult;

#define GPUSORT_MESSAGE_BYTES	256

typedef struct GsSlot
{
	pg_atomic_uint32 state;		/* GsSlotState */
	uint32		epoch;			/* epoch of the service when it was claimed */
	Latch	   *client;
	GsSlotRequest request;

	/* The answer, written by the device process before it sets the state. */
	int			device;			/* index in GsService.devices, or -1 */
	GsReason	failure;		/* why it FAILED */
	char		message[GPUSORT_MESSAGE_BYTES];
	GsSlotResult result;

	/*
	 * Set by clients, before they put the row: do the words of a row not tell
	 * all of its sort keys?
	 */
	pg_atomic_uint32 has_ties;

	/*
	 * Written by the device process: the bytes of device memory that the
	 * session holds, or until it is sorted, that it may come to hold; those
	 * of its rows that are parked in a file; and when a client has used it
	 * last.
	 */
	pg_atomic_uint64 device_memory;
	pg_atomic_uint64 file_bytes;
	pg_atomic_uint64 last_use;	/* TimestampTz */

	/*
	 * Chunks that the clients hand over, in order.  A client takes a position
	 * by incrementing 'ring_head'.  An entry is the number of a chunk, or
	 * GPUSORT_NO_CHUNK before it is written and after it was read.  The ring
	 * has room for all chunks, so it is never full.
	 */
	pg_atomic_uint32 ring_head;
	pg_atomic_uint32 ring[GPUSORT_MAX_CHUNKS];

	/* Held by clients only, while one of several takes a refused chunk. */
	slock_t		take_lock;
} GsSlot;

#define GPUSORT_NO_CHUNK		PG_UINT32_MAX

typedef enum GsChunkOp
{
	GS_CHUNK_PUT,				/* rows for the device */
	GS_CHUNK_GET				/* to fill with sorted rows */
} GsChunkOp;

typedef enum GsChunkState
{
	GS_CHUNK_CLIENTS,			/* the client may use it */
	GS_CHUNK_DEVICES,			/* handed over to the device process */
	GS_CHUNK_REFUSED,			/* a PUT that was refused for lack of room */
	GS_CHUNK_DONE				/* a GET that is filled */
} GsChunkState;

/*
 * A chunk of the pool.  Offsets are bytes from the chunk's start.  When the
 * device has taken the rows of a chunk, the device process frees it.
 *
 * A free chunk is in state GS_CHUNK_CLIENTS.  Other clients look at the state of
 * every chunk with the number of their slot as its owner, so it must not be that
 * of an earlier owner.
 */
typedef struct GsPoolChunk
{
	pg_atomic_uint32 owner;		/* 0: free; else its slot's number + 1 */
	pg_atomic_uint32 state;		/* GsChunkState */
	GsChunkOp	op;
	Latch	   *client;			/* of the process that has handed it over */
	GsNullPart	part;
	uint32		rows;
	uint32		keys_offset[GPUSORT_MAX_KEY_WORDS];
	uint32		lengths_offset; /* rows of variable length */
	uint32		ties_offset;	/* GET: see ties of GsSortedChunk */
	uint32		data_offset;
	uint64		data_bytes;
	uint64		number;			/* PUT: its position in the ring; GET: which
								 * chunk of the part */
	uint64		first_row;		/* GET: position of its first row in the part */
} GsPoolChunk;

/*
 * States of a device.  The device process opens and uses devices, and the
 * supervisor notices the end of that process.
 *
 *	CLOSED -> OPENING -> USED -> CLOSED
 *
 * OPENING and USED -> FAILED, and FAILED -> OPENING when the device is due.
 */
typedef enum GsDeviceState
{
	GS_DEVICE_CLOSED,			/* there is no device process */
	GS_DEVICE_OPENING,
	GS_DEVICE_USED,
	GS_DEVICE_FAILED			/* see message */
} GsDeviceState;

/*
 * What sorting takes with rows that are in memory before and after it.  All of it is measured
 * with one key of 64 bits and 8 bytes of other columns.
 */
typedef struct GsDeviceSpeed
{
	double		session_us;		/* a session on the device, without the rows */
	double		gpu_row_ns;		/* and a row, both ways */
	double		cpu_row_ns;		/* a row on the CPU; 0 if nothing was measured */
} GsDeviceSpeed;

/* What the driver does not say of a device. */
#define GPUSORT_UNKNOWN_HEALTH	PG_UINT32_MAX

/*
 * One of the machine's devices that the settings allow.  The device process
 * writes this while there is one, otherwise the supervisor; both write
 * retry_at.
 */
typedef struct GsServiceDevice
{
	pg_atomic_uint32 state;		/* GsDeviceState */
	pg_atomic_uint32 failures;	/* consecutive ones */
	pg_atomic_uint64 retry_at;	/* TimestampTz before which it is not opened */
	char		message[GPUSORT_MESSAGE_BYTES]; /* of the last failure, or "" */
	GsDeviceInfo info;			/* only the ordinal is set until it was opened */
	GsDeviceSpeed speed;		/* measured when it was first opened */
	pg_atomic_uint64 free_memory;
	pg_atomic_uint64 used_memory;	/* by sessions and working space */
	pg_atomic_uint32 temperature;	/* degrees Celsius, or unknown */
	pg_atomic_uint64 memory_errors; /* not corrected, or unknown */
	pg_atomic_uint64 bytes_in;	/* of rows and keys copied to the device, and */
	pg_atomic_uint64 bytes_out; /* from it, since the server started */
	pg_atomic_uint32 sessions;
} GsServiceDevice;

/*
 * Why a device process has ended.  It tells that here, and not by its exit
 * status, since libraries can exit with any status.
 */
typedef enum GsProcessEnd
{
	GS_END_UNEXPECTED,			/* by a signal, or by a library */
	GS_END_ASKED,				/* by SIGTERM or SIGQUIT */
	GS_END_NO_DEVICE,			/* see GsService.message */
	GS_END_LOST,				/* a device is lost, see GsService.lost_device
								 * and message */
	GS_END_AGAIN				/* start again without a device that was lost
								 * when it was opened */
} GsProcessEnd;

/*
 * Does the device process sleep?  It changes AWAKE to DOZING, looks once more for
 * something to do, and then changes DOZING to ASLEEP.  A client who wakes it makes it
 * AWAKE.  So nobody waits for a process that is ASLEEP.
 */
typedef enum GsSleep
{
	GS_AWAKE,
	GS_DOZING,
	GS_ASLEEP
} GsSleep;

typedef struct GsService
{
	pg_atomic_uint32 state;		/* GsServiceState */
	pg_atomic_uint32 epoch;		/* number of device processes that have ended */
	pg_atomic_uint32 device_pid;	/* PID of the device process, or 0 */
	pg_atomic_uint32 restarts;	/* number of unexpected ends of device
								 * processes */
	Latch	   *supervisor;
	GsProcessEnd end;			/* set by the device process right before its
								 * end, and reset when it is started */
	char		message[GPUSORT_MESSAGE_BYTES];
	char		build[16];		/* of the device library */

	/* The device process sleeps on this. */
	sem_t		wakeup;
	pg_atomic_uint32 asleep;	/* GsSleep */

	/*
	 * Changed by the device process after each step, so that the supervisor
	 * can tell whether it hangs.
	 */
	pg_atomic_uint32 steps;

	int			machine_devices;	/* number in the machine, used or not */
	int			lost_device;	/* index of the device that ended the process */
	pg_atomic_uint32 ndevices;
	GsServiceDevice devices[GPUSORT_MAX_DEVICES];

	uint32		nslots;			/* number of slots that can be used */
	GsSlot		slots[GPUSORT_SLOTS];

	uint32		nchunks;
	uint32		chunk_bytes;
	char	   *pool;			/* page-aligned */
	Size		pool_bytes;
	GsPoolChunk chunks[GPUSORT_MAX_CHUNKS];
} GsService;

/* NULL if there is no GPU service. */
extern GsService *gpusort_service;

static inline char *
gpusort_chunk_address(const GsPoolChunk *chunk)
{
	return gpusort_service->pool +
		(chunk - gpusort_service->chunks) * (Size) gpusort_service->chunk_bytes;
}

/*
 * Returns a free chunk for the slot, in state GS_CHUNK_CLIENTS, or NULL if
 * there is none at the moment.
 */
extern GsPoolChunk *gpusort_chunk_alloc(uint32 slot);
extern void gpusort_chunk_free(GsPoolChunk *chunk);

/* Wake up the device process.  Write what it should see before the call. */
extern void gpusort_service_wake(void);

/* In the device process: show the supervisor that it does not hang. */
static inline void
gpusort_service_step(void)
{
	pg_atomic_write_u32(&gpusort_service->steps,
						pg_atomic_read_u32(&gpusort_service->steps) + 1);
}

/* In the device process, also in signal handlers: end it, for this reason. */
static inline void
gpusort_service_end_process(GsProcessEnd end)
{
	gpusort_service->end = end;
	_exit(0);
}

/*
 * Free a CLOSING slot for which the device process no longer holds anything.
 */
extern void gpusort_slot_free(uint32 slot);

/*
 * Decide whether there should be a GPU service, and register its worker.  Called once by
 * _PG_init().
 */
extern void gpusort_service_init(void);

/*
 * The path of the file of pg_gpusort.device_library, and whether pg_gpusort was preloaded and that
 * file there when the server started.  If not, nobody expects that a GPU is used.
 */
extern char gpusort_library_path[];
extern bool gpusort_library_was_found;

/*
 * Returns why this server has no GPU service, or NULL if it has one.  In the postmaster, after
 * gpusort_service_init().
 */
extern const char *gpusort_service_absence(void);

#endif							/* GPUSORT_SERVICE_SHMEM_H */
