/*-------------------------------------------------------------------------
 *
 * service_shmem.h
 *		Shared memory between backends and the GPU service.
 *
 * Three kinds of processes meet here.  Clients are backends with a sort to be
 * done.  The supervisor is the background worker "pg_gpusort service".  The
 * device process is the supervisor's child, and the only one that uses CUDA;
 * the postmaster does not know it, so that the server survives its death.
 *
 * The device process may die at any instruction.  So there are no locks: every
 * word that several processes write is an atomic, and whatever the device
 * process leaves behind is told by the slots' states and the chunks' owners.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_SHMEM_H
#define GPUSORT_SERVICE_SHMEM_H

#include <semaphore.h>

#include "port/atomics.h"
#include "storage/latch.h"

#include "gpusort_device.h"

/* Sessions at a time, and GPUs. */
#define GPUSORT_SLOTS			64
#define GPUSORT_MAX_DEVICES		16

/* Chunks of the pool: their most, and how many each slot has for itself. */
#define GPUSORT_MAX_CHUNKS		1024
#define GPUSORT_SLOT_CHUNKS		4

/*
 * Parts of a session: rows whose first sort key is NULL are a part of their
 * own, sorted among themselves.
 */
typedef enum GsPart
{
	GS_PART_REGULAR,
	GS_PART_APART,
	GS_PARTS
} GsPart;

typedef enum GsServiceState
{
	GS_SERVICE_OFF,				/* no supervisor yet */
	GS_SERVICE_STARTING,		/* devices are being opened */
	GS_SERVICE_READY,
	GS_SERVICE_FAILED			/* see GsService.message */
} GsServiceState;

/*
 * States of a slot.  'c' marks transitions that the client makes, 'd' those of
 * the device process.
 *
 *	FREE -c-> CLAIMED -c-> OPENING -d-> OPEN -c-> SORTING -d-> SORTED
 *
 * OPEN -d-> FULL when the device has no room for a chunk; FULL -c-> SORTING.
 * Any state from OPENING on -d-> FAILED.  Any state from CLAIMED on -c->
 * CLOSING, and then the slot is the service's, which makes it FREE.
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
	GS_SLOT_FAILED,
	GS_SLOT_CLOSING
} GsSlotState;

/* Faults on purpose; see service/fault.h. */
typedef struct GsFault
{
	uint8		point;			/* GsFaultPoint */
	uint8		action;			/* GsFaultAction */
	uint32		number;			/* which time the point is come to, from 1 */
} GsFault;

/* What the client wants, written before OPENING. */
typedef struct GsSlotRequest
{
	uint32		key_words;
	bool		variable;		/* rows of variable length */
	uint32		row_width;		/* bytes, unless variable */
	uint32		chunk_rows;		/* most rows of a sorted chunk */
	uint64		chunk_bytes;	/* most row bytes of a sorted chunk */
	uint64		expected_rows;
	uint64		expected_bytes; /* of all rows, without keys */
	uint64		device_memory;	/* limit in bytes, or 0 */
	GsFault		fault;
} GsSlotRequest;

/* What is known of a part once it is sorted. */
typedef struct GsPartResult
{
	uint64		rows;
	uint64		chunks;
} GsPartResult;

#define GPUSORT_MESSAGE_BYTES	256

typedef struct GsSlot
{
	pg_atomic_uint32 state;		/* GsSlotState */
	uint32		epoch;			/* of the service when it was claimed */
	Latch	   *client;
	GsSlotRequest request;

	/* The answer: written by the device process before the state tells of it. */
	int			device;			/* index in GsService.devices */
	GsStatus	status;			/* why it FAILED */
	char		message[GPUSORT_MESSAGE_BYTES];
	uint32		refused;		/* chunks for which there was no room */
	GsPartResult parts[GS_PARTS];
	uint64		device_bytes;	/* peak */
	double		sort_ms;		/* on the device */

	/*
	 * Chunks that the client hands over, in order.  Positions are taken by
	 * adding to 'ring_head'; an entry is a chunk's number, or
	 * GPUSORT_NO_CHUNK before it is written and after it was read.  There is
	 * room for all chunks, so it is never full.
	 */
	pg_atomic_uint32 ring_head;
	pg_atomic_uint32 ring[GPUSORT_MAX_CHUNKS];
} GsSlot;

#define GPUSORT_NO_CHUNK		PG_UINT32_MAX

typedef enum GsChunkOp
{
	GS_CHUNK_PUT,				/* rows for the device */
	GS_CHUNK_GET				/* to be filled with sorted rows */
} GsChunkOp;

typedef enum GsChunkState
{
	GS_CHUNK_CLIENTS,			/* the client may use it */
	GS_CHUNK_DEVICES,			/* handed over */
	GS_CHUNK_REFUSED,			/* a PUT for which there was no room */
	GS_CHUNK_DONE				/* a GET that is there */
} GsChunkState;

/*
 * A chunk of the pool.  Offsets are bytes from the chunk's start.  A chunk
 * whose rows the device has taken becomes free of itself.
 */
typedef struct GsPoolChunk
{
	pg_atomic_uint32 owner;		/* 0: free; else its slot's number + 1 */
	pg_atomic_uint32 state;		/* GsChunkState */
	GsChunkOp	op;
	GsPart		part;
	uint32		rows;
	uint32		keys_offset[GPUSORT_MAX_KEY_WORDS];
	uint32		lengths_offset; /* rows of variable length */
	uint32		data_offset;
	uint64		data_bytes;
	uint64		number;			/* PUT: position in the ring; GET: which one
								 * of the part */
	uint64		first_row;		/* GET: position of its first row in the part */
} GsPoolChunk;

/*
 * What a device is.  The device process opens and uses it, the supervisor sees the
 * end of the process.
 *
 *	CLOSED -> OPENING -> USED -> CLOSED
 *
 * From OPENING and USED -> FAILED, and from there -> OPENING, when it is time.
 */
typedef enum GsDeviceState
{
	GS_DEVICE_CLOSED,			/* there is no device process */
	GS_DEVICE_OPENING,
	GS_DEVICE_USED,
	GS_DEVICE_FAILED			/* see message */
} GsDeviceState;

/*
 * One of the machine's devices that are to be used.  Written by the device process
 * while there is one, then by the supervisor; retry_at by both.
 */
typedef struct GsServiceDevice
{
	pg_atomic_uint32 state;		/* GsDeviceState */
	pg_atomic_uint32 failures;	/* in a row */
	pg_atomic_uint64 retry_at;	/* TimestampTz: it is not opened before */
	char		message[GPUSORT_MESSAGE_BYTES]; /* of the last failure, or "" */
	char		logged[GPUSORT_MESSAGE_BYTES];	/* why it could not be opened */
	GsDeviceInfo info;			/* but for its number, only if it was opened */
	pg_atomic_uint64 free_memory;
	pg_atomic_uint64 used_memory;	/* by sessions and working space */
	pg_atomic_uint32 sessions;
} GsServiceDevice;

/* How the device process ends, if it ends by itself. */
#define GPUSORT_EXIT_ASKED		0	/* by SIGTERM */
#define GPUSORT_EXIT_NO_DEVICE	1	/* see GsService.message */
#define GPUSORT_EXIT_LOST		2	/* a device is lost, see lost_device;
									 * likewise */
#define GPUSORT_EXIT_AGAIN		3	/* to start again without a device that
									 * was lost when it was opened */

typedef struct GsService
{
	pg_atomic_uint32 state;		/* GsServiceState */
	pg_atomic_uint32 epoch;		/* device processes that have ended */
	pg_atomic_uint32 device_pid;	/* of the device process, or 0 */
	pg_atomic_uint32 restarts;	/* device processes that ended unasked */
	Latch	   *supervisor;
	char		message[GPUSORT_MESSAGE_BYTES];
	char		build[16];		/* of the device library */

	/* What the device process sleeps on. */
	sem_t		wakeup;
	pg_atomic_uint32 asleep;

	int			machine_devices;	/* of the machine, used or not */
	int			lost_device;	/* index of the one that ended the process */
	pg_atomic_uint32 ndevices;
	GsServiceDevice devices[GPUSORT_MAX_DEVICES];

	uint32		nslots;			/* that can be used */
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
 * A free chunk for the slot, or NULL if there is none at the moment.  It is in
 * state GS_CHUNK_CLIENTS.
 */
extern GsPoolChunk *gpusort_chunk_alloc(uint32 slot);
extern void gpusort_chunk_free(GsPoolChunk *chunk);

/* Wake the device process, after what it is to see has been written. */
extern void gpusort_service_wake(void);

/* Free a CLOSING slot that the device process holds nothing for any more. */
extern void gpusort_slot_free(uint32 slot);

/* Called once by _PG_init(). */
extern void gpusort_service_shmem_init(void);

/*
 * Is there a GPU service until the server stops?  Known from
 * gpusort_service_shmem_init() on.
 */
extern bool gpusort_service_is_wanted(void);

#endif							/* GPUSORT_SERVICE_SHMEM_H */
