/*
 * gpusort_device.h
 *		The C interface of the device library: sorts of arrays and sort sessions on a GPU.
 *
 * pg_gpusort_cuda.so and pg_gpusort_emu.so both export one symbol, gpusort_device_api(), which
 * returns a table of functions.  The second runs the same kernels on the CPU, for tests.  The
 * library knows nothing of PostgreSQL.  Loading it needs no driver and touches no device.
 *
 * Conventions
 *
 * - Every function that can fail returns a GsStatus.  Where a message is of use it is written
 *   to the caller's buffer, or kept until the next failing call on the same device and
 *   returned by device_message().  Nothing is printed, no signal is raised, no exception
 *   leaves the library.
 * - Sizes are bytes unless a name says rows, items or words.  Structs that callers fill start
 *   with struct_size, which is sizeof the struct as the caller was compiled; fields beyond it
 *   count as zero, so that fields can be added at the end within one version.
 * - A GsDevice and everything that belongs to it is used by one thread at a time.  Different
 *   GsDevices may be used by different threads at the same time.
 * - Host memory given to an asynchronous call must stay valid and unchanged until the ticket
 *   of that call is done.  Copies overlap with the caller only when that memory was registered
 *   with host_register(); otherwise they work, but may be done before the call returns.
 * - After GPUSORT_DEVICE_LOST every call on that device returns the same, until
 *   device_recover() succeeds or the device is closed.  Ending sessions and closing remain
 *   allowed and free all host memory.
 */
#ifndef GPUSORT_DEVICE_H
#define GPUSORT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSORT_DEVICE_ABI_VERSION 1
#define GPUSORT_DEVICE_ENTRY	   "gpusort_device_api"
#define GPUSORT_MAX_KEY_WORDS	   4

typedef enum GsStatus {
	GPUSORT_OK = 0,
	GPUSORT_NOT_READY,	   /* poll: still running; no error */
	GPUSORT_BAD_ARGUMENT,  /* NULL, misaligned, out of range, overflowing size */
	GPUSORT_BAD_VERSION,   /* the library does not speak the version asked for */
	GPUSORT_BAD_STATE,	   /* call not allowed now (put after sort, get before sort, ...) */
	GPUSORT_NO_DRIVER,	   /* no CUDA driver, or one too old */
	GPUSORT_NO_DEVICE,	   /* no such device, or one that cannot run the kernels; not from an
							* open device: if it cannot be found any more, it is lost */
	GPUSORT_DEVICE_MEMORY, /* device memory, or the session's limit of it, is exhausted */
	GPUSORT_HOST_MEMORY,   /* host memory is exhausted */
	GPUSORT_DEVICE_LOST,   /* a sticky error: everything on the device is gone */
	GPUSORT_DEVICE_ERROR   /* any other error of the device; the call had no effect */
} GsStatus;

/* How keys are ordered.  The bits of a key come back exactly as they went in. */
typedef enum GsKeyOrder {
	GPUSORT_UNSIGNED = 0, /* as unsigned integers */
	GPUSORT_SIGNED,		  /* as two's complement integers */
	GPUSORT_FLOAT		  /* as IEEE numbers; -0 equals +0, all NaN are equal and greatest */
} GsKeyOrder;

typedef enum GsMemoryPlace { GPUSORT_HOST_ARRAYS = 0, GPUSORT_DEVICE_ARRAYS } GsMemoryPlace;

typedef enum GsRowLayout {
	GPUSORT_ROWS_NONE = 0, /* no rows: sorted chunks carry row numbers (argsort) */
	GPUSORT_ROWS_FIXED,	   /* every row has row_width bytes */
	GPUSORT_ROWS_VARIABLE  /* each row has its own length */
} GsRowLayout;

typedef struct GsDevice GsDevice;
typedef struct GsSession GsSession;

/* Names one asynchronous operation of one session; never 0; grows with each operation. */
typedef uint64_t GsTicket;

typedef struct GsDeviceInfo {
	char name[128];
	int ordinal;
	int capability_major;
	int capability_minor;
	int multiprocessors;
	uint64_t total_memory;
} GsDeviceInfo;

typedef struct GsDeviceMemory {
	uint64_t total;	 /* of the device */
	uint64_t free;	 /* of the device, whoever uses the rest */
	uint64_t in_use; /* taken by this GsDevice: buffers, sessions, working space */
	uint32_t sessions;
} GsDeviceMemory;

typedef struct GsDeviceOptions {
	uint32_t struct_size;
	int32_t ordinal;
	uint64_t
		memory_limit; /* most device memory this GsDevice may take; 0: no limit of its own */
} GsDeviceOptions;

/*
 * One sort of an array.
 *
 * keys_in and keys_out point to n keys of key_width bytes (4 or 8), aligned to key_width;
 * values_in and values_out to n values of value_width bytes (0 for none, 4 or 8), aligned to
 * value_width.
 *
 * keys_out NULL: keys are not returned.  values_in NULL with value_width > 0: the values are
 * the row numbers 0 .. n-1 (n at most 2^32 for 4-byte values).  So argsort is keys_out NULL and
 * values_in NULL.  The sort is stable.  Only the bits begin_bit <= b < end_bit of the ordered
 * form of a key count (0 and 8 * key_width: all of it; equal: nothing is moved).
 *
 * Outputs must not overlap inputs, nor each other, except that with host arrays an output may
 * be the very same array as its input.  Inputs are left unchanged.  n = 0 is allowed with NULL
 * arrays.
 */
typedef struct GsSortRequest {
	uint32_t struct_size;
	uint32_t key_width;
	uint32_t value_width;
	uint32_t begin_bit;
	uint32_t end_bit;
	GsKeyOrder order;
	int32_t descending;
	GsMemoryPlace place;
	uint64_t n;
	const void *keys_in;
	void *keys_out;
	const void *values_in;
	void *values_out;
} GsSortRequest;

/*
 * What a session sorts.  Keys are key_words 64-bit words per row, compared as unsigned numbers,
 * the first word first; equal keys keep the order of arrival (see GsChunk.order).  A session
 * takes up to 2^32 - 1 rows.
 */
typedef struct GsSessionOptions {
	uint32_t struct_size;
	uint32_t key_words; /* 1 .. GPUSORT_MAX_KEY_WORDS */
	GsRowLayout row_layout;
	uint32_t row_width;			  /* GPUSORT_ROWS_FIXED: bytes of a row, > 0 */
	uint32_t return_keys;		  /* sorted chunks can carry the key words as well */
	uint32_t chunk_rows;		  /* most rows of a sorted chunk, > 0 */
	uint64_t chunk_bytes;		  /* most row bytes of a sorted chunk; no row may be longer */
	uint64_t device_memory_limit; /* of this session; 0: no limit of its own */
	uint64_t expected_rows;		  /* a hint for the first allocation; 0: unknown */
} GsSessionOptions;

/*
 * One chunk of unsorted rows in host memory.  Keys are columns: keys[w] points to rows words.
 * data holds the rows packed one after another without padding: rows * row_width bytes, or the
 * sum of lengths, less than 4 GiB.  Chunks count as having arrived by ascending order, and
 * among equal numbers in the sequence of the calls.
 */
typedef struct GsChunk {
	uint32_t struct_size;
	uint32_t rows;
	uint64_t order;
	const uint64_t *keys[GPUSORT_MAX_KEY_WORDS];
	const void *data;		 /* NULL with GPUSORT_ROWS_NONE */
	const uint32_t *lengths; /* GPUSORT_ROWS_VARIABLE: bytes of each row */
	uint64_t data_bytes;	 /* bytes at data */
} GsChunk;

/*
 * Where a sorted chunk is delivered.  The caller gives arrays large enough for chunk_rows rows
 * and chunk_bytes bytes; NULL arrays are not filled.  Row numbers count rows in the sequence of
 * the session_put calls, from 0.
 */
typedef struct GsSortedChunk {
	uint32_t struct_size;
	uint32_t rows;
	uint64_t first_row; /* position of the chunk's first row in the sorted sequence */
	uint64_t data_bytes;
	uint64_t *keys[GPUSORT_MAX_KEY_WORDS]; /* used when return_keys */
	uint64_t *row_numbers;
	void *data;
	uint32_t *lengths; /* GPUSORT_ROWS_VARIABLE */
} GsSortedChunk;

typedef struct GsSessionResult {
	uint64_t rows;
	uint64_t chunks;
	uint64_t device_bytes_peak;
	float sort_ms;		   /* on the device */
	uint32_t digit_passes; /* sweeps over the data that were needed */
} GsSessionResult;

/* Which kernel a sort takes; GPUSORT_PATH_AUTO decides by size. */
typedef enum GsSortPath {
	GPUSORT_PATH_AUTO = 0,
	GPUSORT_PATH_WARP,	   /* one warp, up to 32 items */
	GPUSORT_PATH_BLOCK,	   /* one block */
	GPUSORT_PATH_GRID,	   /* one launch of cooperating blocks */
	GPUSORT_PATH_ONESWEEP, /* histogram and one sweep per digit */
	GPUSORT_PATH_RANK	   /* one launch of blocks that count the ranks of their items */
} GsSortPath;

/*
 * Settings for tests.  All zero is normal operation.  The emu_ fields act in the emulator
 * alone.
 */
typedef struct GsDebugSettings {
	uint32_t struct_size;
	GsSortPath path;	  /* a path that cannot take the input is BAD_ARGUMENT */
	uint64_t strip_items; /* items of a strip (0: the normal 2^30); rounded up to whole tiles */
	uint32_t delay_every; /* every so many tiles publishes its counts late (0: none) */
	uint32_t delay_polls; /* how late: a number of waits of a microsecond */
	uint32_t fallback_polls; /* polls until a look-back counts the missing tile itself;
							  * 0: the normal number, UINT32_MAX: never */
	uint32_t fail_alloc;	 /* the allocation after so many successful ones fails (0: none) */
	uint32_t fail_launch;	 /* likewise a launch, with a sticky error */
	uint32_t emu_seed;		 /* of the schedule */
	uint32_t emu_resident;	 /* blocks alive at a time (0: the normal number) */
	uint32_t
		emu_dispatch;	 /* order in which blocks start: 0 ascending, 1 reversed, 2 shuffled */
	uint32_t emu_favour; /* 0 none, 1 the youngest resident block, 2 the oldest */
	uint32_t emu_bug;	 /* plants one of the bugs of cuda/portable.cuh (0: none) */
	uint32_t copy_items; /* GPUSORT_PATH_ONESWEEP copies inputs of so many items and more as
						  * long as they are sorted (0: the normal number) */
} GsDebugSettings;

/* Sizes at which the code changes its way, for tests that aim at them. */
typedef struct GsDebugSizes {
	uint32_t warp_items;  /* largest n of GPUSORT_PATH_WARP */
	uint32_t block_items; /* of GPUSORT_PATH_BLOCK */
	uint32_t grid_items;  /* of GPUSORT_PATH_GRID */
	uint32_t tile_items;  /* items of a tile of GPUSORT_PATH_ONESWEEP */
	uint32_t bugs;		  /* number of plantable bugs; 0 where none can be planted */
	uint32_t auto_warp;	  /* largest n that GPUSORT_PATH_AUTO gives to a warp */
	uint32_t auto_block;  /* to a block, or less */
	uint32_t auto_grid;	  /* to a grid, or less */
	uint32_t rank_items;  /* largest n of GPUSORT_PATH_RANK */
	uint32_t auto_rank;	  /* largest n that GPUSORT_PATH_AUTO gives to it, or to a warp */
} GsDebugSizes;

typedef struct GsDeviceApi {
	uint32_t abi_version;
	uint32_t struct_size;
	const char *build; /* "cuda" or "emulator", for messages */

	/* A constant lower-case text for a status, without a period; never NULL. */
	const char *(*status_text)(GsStatus status);

	/*
	 * Number of devices, and facts about one of them.  Both work without device_open() and
	 * create no context.  message (may be NULL) receives at most message_size bytes with the
	 * reason. Errors: NO_DRIVER, NO_DEVICE, BAD_ARGUMENT, DEVICE_ERROR.
	 */
	GsStatus (*device_count)(int *count, char *message, size_t message_size);
	GsStatus (*device_info)(int ordinal, GsDeviceInfo *info, char *message,
							size_t message_size);

	/*
	 * Opens a device: creates its context (a third of a second, half a gigabyte of device
	 * memory) and the streams.  On failure *device is NULL.  Errors as above and DEVICE_MEMORY.
	 */
	GsStatus (*device_open)(const GsDeviceOptions *options, GsDevice **device, char *message,
							size_t message_size);

	/* Ends all sessions, frees all buffers.  NULL is allowed. */
	void (*device_close)(GsDevice *device);

	/* Message of the last failing call on this device; "" if there was none; never NULL. */
	const char *(*device_message)(const GsDevice *device);

	/* Any error but DEVICE_LOST is the query's own, and says nothing of the memory. */
	GsStatus (*device_memory)(GsDevice *device, GsDeviceMemory *memory);

	/*
	 * Gives back cached working space.  Waits for work in progress.
	 */
	GsStatus (*device_trim)(GsDevice *device);

	/*
	 * After DEVICE_LOST: resets the device for this process and opens it anew.  All sessions
	 * and buffers of this GsDevice are gone: sessions still have to be ended, buffers must not
	 * be freed.  Host registrations have to be made again.  Any other GsDevice of this ordinal
	 * is lost as well, and must not be in a call meanwhile; recovering it does not reset the
	 * device a second time.
	 *
	 * CUDA does not promise that a process can go on after a fault of a kernel.  Where it can
	 * not, this returns DEVICE_LOST with a message: the device is lost for this process, and a
	 * new process is needed.  DEVICE_MEMORY and HOST_MEMORY: try again later.
	 */
	GsStatus (*device_recover)(GsDevice *device);

	/*
	 * Pins host memory so that copies from and to it run by themselves.  address and size are
	 * multiples of the page size.  unregister waits for copies in progress.
	 */
	GsStatus (*host_register)(GsDevice *device, void *address, size_t size);
	GsStatus (*host_unregister)(GsDevice *device, void *address);

	/*
	 * Device memory of the caller's, for sorts of device arrays: aligned to 256 bytes,
	 * uninitialized.  write and read copy and wait.  free of NULL is allowed.
	 */
	GsStatus (*buffer_alloc)(GsDevice *device, size_t size, void **buffer);
	GsStatus (*buffer_free)(GsDevice *device, void *buffer);
	GsStatus (*buffer_write)(GsDevice *device, void *buffer, const void *source, size_t size);
	GsStatus (*buffer_read)(GsDevice *device, void *target, const void *buffer, size_t size);

	/* Sorts an array and waits for the end.  Any error leaves the outputs undefined. */
	GsStatus (*sort)(GsDevice *device, const GsSortRequest *request);

	/*
	 * Sort sessions: begin, put chunks, sort once, get sorted chunks by number in any order and
	 * as often as wanted, end.  Several sessions may be open at a time; their calls interleave
	 * freely.
	 *
	 * session_put copies a chunk to the device while the caller goes on, and gives a ticket;
	 * the chunk's memory may be used again when the ticket is done.  DEVICE_MEMORY leaves the
	 * session as it was before the call: chunks put before can still be sorted, or the caller
	 * ends it.  An empty chunk is allowed; its ticket is done at once.
	 *
	 * session_sort sorts what was put and waits.  DEVICE_MEMORY leaves the session as it was
	 * before the call.  No chunk can be put afterwards.
	 *
	 * session_get starts the delivery of sorted chunk number chunk (0 .. result.chunks - 1).
	 * Two deliveries are under way at the same time without waiting for each other; a third is
	 * queued behind the first.  target's rows, first_row and data_bytes are set at once, its
	 * arrays when the ticket is done; the struct itself need not be kept.
	 *
	 * session_poll says NOT_READY or OK (or the error) without waiting; session_wait waits.  A
	 * ticket is done when its own operation is, whatever the others do; asking again is
	 * allowed.
	 *
	 * session_end waits for copies in progress and frees everything.  NULL is allowed.  If the
	 * device turns out to be lost, the next call on it says so.
	 */
	GsStatus (*session_begin)(GsDevice *device, const GsSessionOptions *options,
							  GsSession **session);
	GsStatus (*session_put)(GsSession *session, const GsChunk *chunk, GsTicket *ticket);
	GsStatus (*session_sort)(GsSession *session, GsSessionResult *result);
	GsStatus (*session_get)(GsSession *session, uint64_t chunk, GsSortedChunk *target,
							GsTicket *ticket);
	GsStatus (*session_poll)(GsSession *session, GsTicket ticket);
	GsStatus (*session_wait)(GsSession *session, GsTicket ticket);
	GsStatus (*session_memory)(GsSession *session, uint64_t *device_bytes);
	void (*session_end)(GsSession *session);

	/* For tests.  settings NULL: back to normal. */
	GsStatus (*debug_set)(GsDevice *device, const GsDebugSettings *settings);
	GsStatus (*debug_sizes)(GsDevice *device, uint32_t key_width, uint32_t value_width,
							GsDebugSizes *sizes);
} GsDeviceApi;

/*
 * Returns the table for the version asked for, or NULL when the library does not speak it.  The
 * table is constant and valid until the library is unloaded.  This is the type of the one
 * exported symbol, GPUSORT_DEVICE_ENTRY.
 */
typedef const GsDeviceApi *(*GsDeviceApiFunction)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_H */
