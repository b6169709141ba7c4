/*
 * gpusort_device.h
 *		The C interface of the device library: sorts of arrays and sort sessions on a GPU.
 *
 * pg_gpusort_cuda.so and pg_gpusort_emu.so both export a single symbol, gpusort_device_api(),
 * which returns a table of functions.  The second library is for tests; it runs the same
 * kernels on the CPU.  The libraries know nothing about PostgreSQL.  Loading them needs no
 * driver and touches no device.
 *
 * Conventions
 *
 * - Pointers must not be NULL unless it says so.
 * - Every function that can fail returns a GsStatus.  Functions without an open device write a
 *   message to the caller's buffer.  Others keep it until the next failing call on the same
 *   device, and device_message() returns it.  The library prints nothing, raises no signals and
 *   throws no exceptions.
 * - Sizes are in bytes unless a name says rows, items or words.  A caller and the library must
 *   be compiled for the same version of this interface.
 * - A GsDevice and everything that belongs to it must be used by one thread at a time.
 *   Different threads may use different GsDevices at the same time.
 * - Host memory given to an asynchronous call must stay valid and unchanged until the ticket of
 *   that call is done.  Copies overlap with the caller only if the memory was registered with
 *   host_register().  Otherwise they work, but may be complete before the call returns.
 * - After GPUSORT_DEVICE_LOST, every call on that device returns the same status.  Ending
 *   sessions and closing the device remain allowed, and free all host memory.  CUDA does not
 *   guarantee that a process can use a device after a fault of a kernel, so a new process is
 *   needed.
 */
#ifndef GPUSORT_DEVICE_H
#define GPUSORT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSORT_DEVICE_ABI_VERSION 7
#define GPUSORT_DEVICE_ENTRY	   "gpusort_device_api"
#define GPUSORT_MAX_KEY_WORDS	   8

typedef enum GsStatus {
	GPUSORT_OK = 0,
	GPUSORT_NOT_READY,	  /* poll: still running; not an error */
	GPUSORT_BAD_ARGUMENT, /* NULL, misaligned, out of range, overflowing size */
	GPUSORT_BAD_VERSION,  /* the library does not support the requested version */
	GPUSORT_BAD_STATE,	  /* call not allowed now (put after sort, get before sort, ...) */
	GPUSORT_NO_DRIVER,	  /* no CUDA driver, or it is too old */
	GPUSORT_NO_DEVICE,	  /* no such device, or it cannot run the kernels; never returned for an
							 open device, which is lost if it disappears */
	GPUSORT_DEVICE_MEMORY, /* device memory, or the session's share of it, is exhausted */
	GPUSORT_HOST_MEMORY,   /* host memory is exhausted */
	GPUSORT_DEVICE_LOST,   /* a sticky error: everything on the device is gone */
	GPUSORT_DEVICE_ERROR,  /* any other error of the device; the call had no effect */
	GPUSORT_DEVICE_BUSY	   /* device_open: others use the device, and it allows no more users */
} GsStatus;

/* The order of keys.  Their bits are returned unchanged. */
typedef enum GsKeyOrder {
	GPUSORT_UNSIGNED = 0, /* as unsigned integers */
	GPUSORT_SIGNED,		  /* as two's complement integers */
	GPUSORT_FLOAT		  /* as IEEE numbers; -0 equals +0, all NaNs are equal and greatest */
} GsKeyOrder;

typedef enum GsArrayLocation { GPUSORT_HOST_ARRAYS = 0, GPUSORT_DEVICE_ARRAYS } GsArrayLocation;

typedef enum GsRowLayout {
	GPUSORT_ROWS_FIXED = 0, /* every row has row_width bytes */
	GPUSORT_ROWS_VARIABLE	/* each row has its own length */
} GsRowLayout;

typedef struct GsDevice GsDevice;
typedef struct GsSession GsSession;

/*
 * Identifies one asynchronous operation of a session.  Never 0; increases with each operation.
 */
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
	uint64_t free;	 /* of the device, regardless of who uses the rest; and unused of held */
	uint64_t in_use; /* allocated by this GsDevice: buffers, sessions, workspace */
	uint64_t held;	 /* by the pool of this GsDevice, for in_use and for later allocations */
	uint32_t sessions;
} GsDeviceMemory;

/* What the driver says of a device.  -1: it does not say. */
typedef struct GsDeviceHealth {
	int32_t temperature;   /* degrees Celsius */
	int64_t memory_errors; /* not corrected, since the driver was loaded */
} GsDeviceHealth;

/*
 * A sort of an array.
 *
 * keys_in and keys_out point to n keys of key_width bytes (4 or 8), aligned to key_width.
 * values_in and values_out point to n values of value_width bytes (4 or 8, or 0 for none),
 * aligned to value_width.
 *
 * If keys_out is NULL, keys are not returned.  If values_in is NULL and value_width is not 0,
 * the values are the row numbers 0 .. n-1; n may then be at most 2^32 for 4-byte values.  An
 * argsort is a sort with both set to NULL.  The sort is stable.  Keys are compared only by the
 * bits begin_bit <= b < end_bit of their ordered form: 0 and 8 * key_width select the whole
 * key; if both are equal, all keys are ties.
 *
 * Outputs must not overlap inputs or each other, with one exception: for host arrays, an output
 * may be the same array as its input.  Other inputs are left unchanged.  n = 0 is allowed with
 * NULL arrays.
 */
typedef struct GsSortRequest {
	uint32_t key_width;
	uint32_t value_width;
	uint32_t begin_bit;
	uint32_t end_bit;
	GsKeyOrder order;
	int32_t descending;
	GsArrayLocation location;
	uint64_t n;
	const void *keys_in;
	void *keys_out;
	const void *values_in;
	void *values_out;
} GsSortRequest;

/*
 * Which rows are ties.  Sorted rows whose keys agree in the first `bits` bits are a group. They
 * are ties if `always` is not 0, or if the next bit of the last row of the group is set.
 */
typedef struct GsTieLevel {
	uint32_t bits; /* up to those of key_words, or one less unless always */
	uint32_t always;
} GsTieLevel;

#define GPUSORT_MAX_TIE_LEVELS 8

/*
 * Options of a session.  The key of a row consists of key_words 64-bit words, which compare as
 * unsigned numbers, the first word first.  Ties keep the order in
 * which they were put.  A session takes up to 2^32 - 1 rows.
 *
 * Memory for sorting expected_rows rows is allocated by session_begin(), for more by
 * session_put().  Memory for rows is allocated in segments of an eighth to a quarter of
 * expected_rows, or, with device_memory_limit, of a 32nd to a 16th, so that less of it is
 * unused; and of up to 256 MB. Beyond expected_rows, an eighth, or a 32nd, of what there is
 * already is allocated at a time.
 */
typedef struct GsSessionOptions {
	uint32_t key_words; /* 1 .. GPUSORT_MAX_KEY_WORDS */
	GsRowLayout row_layout;
	uint32_t row_width;	 /* GPUSORT_ROWS_FIXED: bytes per row, > 0 */
	uint32_t tie_levels; /* number of them; not 0: sorted chunks tell which rows are ties */
	GsTieLevel tie_level[GPUSORT_MAX_TIE_LEVELS]; /* by their bits, ascending */
	uint32_t chunk_rows;						  /* maximum rows of a sorted chunk, > 0 */
	uint64_t chunk_bytes;		  /* maximum row bytes of a sorted chunk, and of a row */
	uint64_t device_memory_limit; /* of this session; 0: no limit */
	uint64_t expected_rows;		  /* hint for the size of allocations; 0: unknown */
} GsSessionOptions;

/*
 * A chunk of unsorted rows in host memory.
 *
 * keys[w] is the column of word w of the keys, of `rows` words.  data has the rows packed one
 * after another without padding: rows * row_width bytes, or the sum of lengths, which must be
 * less than 4 GiB.
 */
typedef struct GsChunk {
	uint32_t rows;
	const uint64_t *keys[GPUSORT_MAX_KEY_WORDS];
	const void *data;
	const uint32_t *lengths; /* GPUSORT_ROWS_VARIABLE: bytes of each row */
	uint64_t data_bytes;	 /* size of data */
} GsChunk;

/*
 * A sorted chunk.  The caller provides arrays that are large enough for chunk_rows rows and
 * chunk_bytes bytes.
 *
 * ties has a bit for each row, which is set if it and the next row of the sorted sequence are
 * ties on any level; that row may be in the next chunk.  The bit of row i is bit (first_row +
 * i) % 32 of ties[(first_row % 32 + i) / 32], counted from the lowest bit.  Other bits are
 * undefined. gpusort_ties_words() says how long the array has to be.
 */
typedef struct GsSortedChunk {
	uint32_t rows;
	uint64_t first_row; /* position of the chunk's first row in the sorted sequence */
	uint64_t data_bytes;
	void *data;
	uint32_t *lengths; /* GPUSORT_ROWS_VARIABLE */
	uint32_t *ties;	   /* with tie_levels */
} GsSortedChunk;

/* The length of the array ties of a sorted chunk with up to so many rows. */
static inline uint32_t gpusort_ties_words(uint32_t rows)
{
	return rows / 32 + 2;
}

typedef struct GsSessionResult {
	uint64_t rows;
	uint64_t chunks;
	uint64_t device_bytes_peak;
	float sort_ms;		   /* time on the device */
	uint32_t digit_passes; /* sweeps over the data */
} GsSessionResult;

/* The kernels by which an array is sorted.  GPUSORT_PATH_AUTO chooses by size. */
typedef enum GsSortPath {
	GPUSORT_PATH_AUTO = 0,
	GPUSORT_PATH_WARP,	   /* one warp, up to 32 items */
	GPUSORT_PATH_BLOCK,	   /* one block */
	GPUSORT_PATH_GRID,	   /* one launch of cooperating blocks */
	GPUSORT_PATH_ONESWEEP, /* histogram and one sweep per digit, with large tiles if they fit */
	GPUSORT_PATH_RANK	   /* one launch; blocks count the ranks of their items */
} GsSortPath;

/*
 * Settings for tests.  If all are zero, operation is normal.  Fields emu_* only affect the
 * emulator.
 */
typedef struct GsDebugSettings {
	GsSortPath path;	  /* if the path cannot sort the input: BAD_ARGUMENT */
	uint64_t strip_items; /* items per strip, rounded up to whole tiles (0: the normal 2^30) */
	uint32_t delay_every; /* every delay_every-th tile publishes its counts late (0: none) */
	uint32_t delay_polls; /* by this number of waits of one microsecond */
	uint32_t fallback_polls; /* polls until a look-back counts the missing tile itself; 0: the
								normal number, UINT32_MAX: never */
	uint32_t fail_alloc;	 /* number of the allocation, from 1, that fails (0: none) */
	uint32_t fail_launch;	 /* number of the launch that fails, with a sticky error */
	uint32_t emu_seed;		 /* seed of the schedule */
	uint32_t emu_resident;	 /* blocks alive at the same time (0: the normal number) */
	uint32_t emu_dispatch; /* order in which blocks start: 0 ascending, 1 reversed, 2 random */
	uint32_t emu_favour;   /* favors 0 no block, 1 the youngest resident one, 2 the oldest */
	uint32_t emu_bug;	   /* plants a bug of enum GsPlantedBug (0: none) */
	uint32_t copy_items;   /* smallest input of the sorted copy (0: the normal number) */
	uint32_t free_steps;   /* maximum steps of the search for what is freed (0: no limit) */
} GsDebugSettings;

/* Sizes at which the library changes its algorithm, so that tests can use these sizes. */
typedef struct GsDebugSizes {
	uint32_t warp_items;  /* largest n of GPUSORT_PATH_WARP */
	uint32_t block_items; /* of GPUSORT_PATH_BLOCK */
	uint32_t grid_items;  /* of GPUSORT_PATH_GRID */
	uint32_t tile_items;  /* items of a tile of GPUSORT_PATH_ONESWEEP */
	uint32_t bugs;		  /* number of bugs that can be planted; 0 on a device */
	uint32_t auto_warp;	  /* largest n for which GPUSORT_PATH_AUTO chooses a warp */
	uint32_t auto_block;  /* ... a block, or a path for smaller inputs */
	uint32_t auto_grid;	  /* ... a grid, or a path for smaller inputs */
	uint32_t rank_items;  /* largest n of GPUSORT_PATH_RANK */
	uint32_t auto_rank;	  /* largest n for which GPUSORT_PATH_AUTO chooses ranks or a warp */
	uint32_t auto_small_tiles; /* largest n for which its sweeps have smaller tiles */
} GsDebugSizes;

typedef struct GsDeviceApi {
	uint32_t abi_version;
	const char *build; /* "cuda" or "emulator", for messages */

	/* Returns a constant lower-case text for a status, without a period; never NULL. */
	const char *(*status_text)(GsStatus status);

	/*
	 * The number of devices, and properties of one device.  Both functions work without
	 * device_open() and create no context.  message may be NULL; on failure it receives the
	 * reason, in at most message_size bytes.  Errors: NO_DRIVER, NO_DEVICE, BAD_ARGUMENT,
	 * DEVICE_ERROR.
	 */
	GsStatus (*device_count)(int *count, char *message, size_t message_size);
	GsStatus (*device_info)(int ordinal, GsDeviceInfo *info, char *message,
							size_t message_size);

	/*
	 * Opens a device: creates its context, which takes a third of a second and half a gigabyte
	 * of device memory, and its stream.  On failure *device is NULL.  Errors are those above,
	 * DEVICE_MEMORY and DEVICE_BUSY.
	 */
	GsStatus (*device_open)(int ordinal, GsDevice **device, char *message, size_t message_size);

	/* Ends all sessions and frees all buffers.  device may be NULL. */
	void (*device_close)(GsDevice *device);

	/*
	 * Returns the message of the last failing call on this device, or "" if there was none;
	 * never NULL.
	 */
	const char *(*device_message)(const GsDevice *device);

	/*
	 * Any error except DEVICE_LOST means only that the query failed.
	 */
	GsStatus (*device_memory)(GsDevice *device, GsDeviceMemory *memory);

	/* Does not fail, and needs no stream: a device that works is not disturbed. */
	void (*device_health)(GsDevice *device, GsDeviceHealth *health);

	/* Frees the cached workspace, and gives memory that is held but not in use to the system.
	 */
	GsStatus (*device_trim)(GsDevice *device);

	/*
	 * Pins host memory, so that copies from and to it are asynchronous.  address and size must
	 * be multiples of the page size.  host_unregister waits for copies in progress.
	 */
	GsStatus (*host_register)(GsDevice *device, void *address, size_t size);
	GsStatus (*host_unregister)(GsDevice *device, void *address);

	/*
	 * Device memory for the caller, for sorts of device arrays.  It is aligned to 256 bytes and
	 * not initialized.  buffer_write and buffer_read copy and wait.  buffer may be NULL in
	 * buffer_free.
	 */
	GsStatus (*buffer_alloc)(GsDevice *device, size_t size, void **buffer);
	GsStatus (*buffer_free)(GsDevice *device, void *buffer);
	GsStatus (*buffer_write)(GsDevice *device, void *buffer, const void *source, size_t size);
	GsStatus (*buffer_read)(GsDevice *device, void *target, const void *buffer, size_t size);

	/* Sorts an array and waits for the end.  After an error the outputs are undefined. */
	GsStatus (*sort)(GsDevice *device, const GsSortRequest *request);

	/*
	 * Sort sessions: begin, put chunks, sort once, get sorted chunks by number, in any order
	 * and as often as wanted, end.  Several sessions may be open at the same time; their calls
	 * may interleave freely.
	 *
	 * session_begin allocates the memory that sorting expected_rows rows takes.
	 *
	 * session_put starts the copy of a chunk to the device and returns a ticket.  The chunk's
	 * memory may be reused when the ticket is done.  It also reserves the memory for sorting
	 * the rows and returning them.  DEVICE_MEMORY leaves the session as it was before the call:
	 * the caller can sort the chunks that were put before, or end the session. An empty chunk
	 * is allowed; its ticket is done at once.
	 *
	 * session_sort sorts all rows and waits.  It does not fail for lack of device memory: on a
	 * device with memory pools it takes no more than was reserved.  After success no chunk can
	 * be put.
	 *
	 * session_get starts the delivery of sorted chunk number chunk (0 .. result.chunks - 1).
	 * Two deliveries can be in progress at the same time without waiting for each other; a
	 * third one is queued after the first.  rows, first_row and data_bytes of target are set at
	 * once, its arrays when the ticket is done.  The struct itself need not be kept.
	 *
	 * session_poll returns NOT_READY, OK or an error without waiting; session_wait waits.  A
	 * ticket is done when its own operation is, regardless of other operations.  Both may be
	 * called again for a ticket that is done.
	 *
	 * session_memory returns the device memory that the session holds; or, if chunk is not
	 * NULL, that it would hold after session_put of this chunk, of which only the numbers
	 * matter.
	 *
	 * session_end waits for copies in progress and frees everything.  session may be NULL.  If
	 * the device turns out to be lost, the next call on it reports that.
	 */
	GsStatus (*session_begin)(GsDevice *device, const GsSessionOptions *options,
							  GsSession **session);
	GsStatus (*session_put)(GsSession *session, const GsChunk *chunk, GsTicket *ticket);
	GsStatus (*session_sort)(GsSession *session, GsSessionResult *result);
	GsStatus (*session_get)(GsSession *session, uint64_t chunk, GsSortedChunk *target,
							GsTicket *ticket);
	GsStatus (*session_poll)(GsSession *session, GsTicket ticket);
	GsStatus (*session_wait)(GsSession *session, GsTicket ticket);
	uint64_t (*session_memory)(const GsSession *session, const GsChunk *chunk);
	void (*session_end)(GsSession *session);

	/* For tests.  If settings is NULL, normal operation is restored. */
	GsStatus (*debug_set)(GsDevice *device, const GsDebugSettings *settings);
	GsStatus (*debug_sizes)(GsDevice *device, uint32_t key_width, uint32_t value_width,
							GsDebugSizes *sizes);
} GsDeviceApi;

/*
 * Returns the function table for a version, or NULL if the library does not support that
 * version.  The table is constant and valid until the library is unloaded.  This is the type of
 * the only exported symbol, GPUSORT_DEVICE_ENTRY.
 */
typedef const GsDeviceApi *(*GsDeviceApiFunction)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_H */
