/*
 * session_state.h
 *		The state of a session, for the files that implement it: session.cu, session_sort.cu and
 *		session_deliver.cu.
 */
#ifndef GPUSORT_SESSION_STATE_H
#define GPUSORT_SESSION_STATE_H

#include "gather.cuh"
#include "session.h"

namespace gpusort_session
{

constexpr uint64_t MAX_ROWS = UINT32_MAX;
constexpr uint64_t DEFAULT_SEGMENT_BYTES = 16 << 20; /* if expected_rows is not given */
constexpr uint64_t SEGMENTS = 8;					 /* at most, for expected_rows */
constexpr uint64_t LIMITED_SEGMENTS = 32;			 /* likewise with device_memory_limit */
constexpr uint64_t MIN_SEGMENT_BYTES = 256 << 10;
constexpr uint64_t LIMITED_MIN_SEGMENT_BYTES = 16 << 10; /* with a low limit */
constexpr uint64_t MIN_SEGMENT_PART = 256;				 /* of a limit between these */
constexpr uint64_t EXPECTED_ROW_BYTES = 64;				 /* of variable width */
constexpr int DELIVERIES = 2;							 /* concurrent deliveries */

enum State { LOADING, SORTED };

struct Pending {
	GsTicket ticket;
	cudaEvent_t event;
};

/* A stream for deliveries, and the buffer that their rows are gathered into. */
struct Delivery {
	cudaStream_t stream;
	unsigned char *staging;
};

/* Memory for the sort and for its result; see session_memory.cu. */
struct SortMemory {
	uint64_t rows;		   /* for which there is room */
	uint64_t bytes;		   /* variable width: of a chunk for which there is room */
	unsigned char *space;  /* SpaceLayout; freed after the sort */
	unsigned char *result; /* ResultLayout */
};

} // namespace gpusort_session

struct GsSession {
	GsOwner owner;
	GsSessionOptions options;
	gpusort_session::State state;
	GsSession *next; /* in the list of the device's sessions */
	cudaStream_t upload;
	gpusort_session::Delivery deliveries[gpusort_session::DELIVERIES];
	uint32_t next_delivery;

	/* Input, indexed by row number. */
	uint64_t rows;
	uint64_t data_bytes; /* of all rows */
	GsSegmentedArray keys[GPUSORT_MAX_KEY_WORDS];
	GsSegmentedArray data;	  /* fixed width */
	GsArena bytes;			  /* variable width */
	GsSegmentedArray lengths; /* variable width */
	GsSegmentedArray starts;  /* variable width: address of each row */

	gpusort_session::SortMemory memory;

	/* Result.  Arrays on the device are parts of memory.result. */
	uint32_t *sorted; /* row numbers */
	uint32_t *ties;	  /* with tie_levels: a bit for each sorted row; see GsSortedChunk */
	uint64_t chunks;
	uint64_t rows_per_chunk; /* at most rows, so that the staging buffer is not too large */
	uint64_t chunk_bytes;	 /* variable width: maximum of a chunk, at most that of all rows */
	uint64_t *offsets;		 /* variable width: of each sorted row, on the device */
	uint64_t *chunk_firsts;	 /* variable width: first row of each chunk, on the host */
	uint64_t *chunk_offsets; /* variable width: offset of each chunk */
	GsSessionResult result;

	GsTicket last_ticket;
	GsList<gpusort_session::Pending> pending;
	GsList<cudaEvent_t> idle_events;
};

namespace gpusort_session
{

inline GsDevice *device_of(const GsSession *session)
{
	return session->owner.device;
}

inline GsStatus select_device(GsSession *session)
{
	return gpusort_device_select(device_of(session));
}

inline bool is_variable(const GsSession *session)
{
	return session->options.row_layout == GPUSORT_ROWS_VARIABLE;
}

inline GsStatus allocate(GsSession *session, size_t size, void **pointer)
{
	return gpusort_device_alloc(device_of(session), &session->owner.account, size, pointer);
}

inline void release(GsSession *session, void *pointer)
{
	gpusort_device_free(device_of(session), &session->owner.account, pointer);
}

template <class... Parameters, class... Arguments>
GsStatus launch_rows(GsSession *session, cudaStream_t stream, uint64_t threads,
					 void (*kernel)(Parameters...), Arguments... arguments)
{
	uint64_t blocks = (threads + GPUSORT_GATHER_THREADS - 1) / GPUSORT_GATHER_THREADS;
	uint64_t most = (uint64_t)device_of(session)->sorter.multiprocessors * 16;
	GsLaunch launch = {(unsigned)(blocks == 0	  ? 1
								  : blocks < most ? blocks
												  : most),
					   GPUSORT_GATHER_THREADS, 0, false, stream};
	return gpusort_device_check(
		device_of(session), gpusort_launch(launch, kernel, arguments...), "launch a kernel");
}

template <class... Parameters, class... Arguments>
GsStatus launch_sums(GsSession *session, cudaStream_t stream, uint64_t blocks,
					 void (*kernel)(Parameters...), Arguments... arguments)
{
	GsLaunch launch = {(unsigned)blocks, GPUSORT_RADIX, sizeof(GsSumShared), false, stream};
	return gpusort_device_check(
		device_of(session), gpusort_launch(launch, kernel, arguments...), "launch a kernel");
}

template <class... Parameters, class... Arguments>
GsStatus launch_warp(GsSession *session, cudaStream_t stream, void (*kernel)(Parameters...),
					 Arguments... arguments)
{
	GsLaunch launch = {1, 32, 0, false, stream};
	return gpusort_device_check(
		device_of(session), gpusort_launch(launch, kernel, arguments...), "launch a kernel");
}

inline GsStatus copy_async(GsSession *session, void *target, const void *source, size_t size,
						   cudaMemcpyKind kind, cudaStream_t stream)
{
	if (size == 0)
		return GPUSORT_OK;
	return gpusort_device_check(
		device_of(session), cudaMemcpyAsync(target, source, size, kind, stream), "copy rows");
}

inline GsStatus synchronize(GsSession *session, cudaStream_t stream)
{
	return gpusort_device_check(device_of(session), cudaStreamSynchronize(stream),
								"wait for the device");
}

/*
 * Makes sure that issue_ticket() has an event and list space.  Must be called before work is
 * queued.
 */
GsStatus reserve_ticket(GsSession *session);

/* Issues a ticket for all work that was queued on stream so far. */
GsStatus issue_ticket(GsSession *session, cudaStream_t stream, GsTicket *ticket);

/* Where the arrays of the sort begin in SortMemory.space. */
struct SpaceLayout {
	size_t keys[2];
	size_t values; /* those that are not ResultLayout.sorted */
	size_t workspace;
	size_t total;
};
SpaceLayout space_layout(const GsSession *session, uint64_t rows);

/* Where the arrays of the result begin in SortMemory.result, and the tables of segments. */
struct ResultLayout {
	size_t sorted;
	size_t ties;
	size_t offsets;
	size_t key_tables[GPUSORT_MAX_KEY_WORDS];
	size_t data_table;
	size_t lengths_table;
	size_t starts_table;
	size_t staging[DELIVERIES];
	size_t total;
};
ResultLayout result_layout(const GsSession *session, uint64_t rows, uint64_t bytes);

/* Where in a staging buffer the data of rows begins, after their lengths, and where it ends. */
struct StagingLayout {
	size_t data;
	size_t total;
};
StagingLayout staging_layout(const GsSession *session, uint64_t rows, uint64_t bytes);

/* Returns a job that sorts this number of rows by one word.  Its arrays are not set. */
GsSortJob sort_job(uint64_t rows);

/* Returns the most rows of a sorted chunk. */
uint64_t rows_per_chunk(const GsSession *session, uint64_t rows);

/* Allocates the sort memory of the rows expected. */
GsStatus reserve_expected(GsSession *session);

/*
 * Makes the sort memory large enough for the rows put and a chunk.  On failure it stays as it
 * was.
 */
GsStatus reserve_for_chunk(GsSession *session, const GsChunk *chunk);

/* Returns how many bytes reserve_for_chunk() would allocate more. */
uint64_t sort_memory_growth(const GsSession *session, const GsChunk *chunk);

/* Frees what only the sort needs; or all of it. */
void release_sort_space(GsSession *session);
void release_sort_memory(GsSession *session);

/* Prepares delivery of the sorted rows.  On failure the caller must call free_result(). */
GsStatus prepare_result(GsSession *session);
void free_result(GsSession *session);

} // namespace gpusort_session

#endif /* GPUSORT_SESSION_STATE_H */
