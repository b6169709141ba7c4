/*-------------------------------------------------------------------------
 *
 * service_client.h
 *		A backend's interface to the GPU service.
 *
 * A client opens a session, fills pool chunks with rows and puts them, has
 * them sorted, and gets sorted chunks by number, in any order and any number
 * of times.  All functions may wait and check for interrupts.  When one fails,
 * gpusort_client_failure() returns the reason, and the client can only close
 * the session, except after GS_REASON_DEVICE_MEMORY from
 * gpusort_client_put(): see there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_CLIENT_H
#define GPUSORT_SERVICE_CLIENT_H

#include "reason.h"
#include "service/service_shmem.h"

typedef struct GsClient GsClient;

typedef struct GsClientOptions
{
	unsigned	key_words;
	bool		variable;		/* rows of variable length, a multiple of 8 */
	uint32		row_width;		/* bytes, unless variable */
	uint32		tie_levels;		/* see GsSessionOptions */
	GsTieLevel	tie_level[GPUSORT_MAX_TIE_LEVELS];
	double		expected_rows;
	double		expected_row_bytes; /* without the key */
} GsClientOptions;

/* Returns GS_REASON_NONE if sessions can be opened, otherwise the reason. */
extern GsReason gpusort_client_availability(void);

/*
 * Sets *min_rows to from how many rows on a sort takes less time on one of the devices than on
 * the CPU, as measured when they were opened, or infinity.  Returns the measurements of that
 * device, or NULL if no device is in use.  Call this only if there is a service.
 */
extern const GsDeviceSpeed *gpusort_client_speed(double *min_rows);

/* Returns the size of a pool chunk.  Call it only if there is a service. */
extern Size gpusort_client_chunk_bytes(void);

/*
 * Open a session.  The end of the current memory context closes it.  Returns
 * NULL and sets *reason if no session is available.
 */
extern GsClient *gpusort_client_open(const GsClientOptions *options,
									 GsReason *reason);

/* The number of the session's device. */
extern int	gpusort_client_device(const GsClient *client);

/* Identifies a session to other processes of the same query. */
typedef struct GsClientHandle
{
	uint32		slot;
	uint32		epoch;
} GsClientHandle;

extern GsClientHandle gpusort_client_handle(const GsClient *client);

/*
 * Join a session, to put chunks and to get sorted ones.  Any one of its clients
 * can sort it when all have put their chunks.  The owner must not close the
 * session before this client is done.
 */
extern GsClient *gpusort_client_attach(GsClientHandle handle);

/*
 * In one client, after it has got the sorted rows of a session that was full: free their
 * device memory, and wait for that.  Other producers can still find out that the session is
 * full.
 */
extern bool gpusort_client_release(GsClient *client);

/*
 * Wait until the device process has taken or refused all chunks that were put.  Returns
 * false if the session is lost.
 */
extern bool gpusort_client_settle(GsClient *client);

extern GsReason gpusort_client_failure(const GsClient *client);

/*
 * Returns a chunk to fill.  Returns NULL after a failure, or if no chunk is
 * free at the moment and 'wait' is false.  A process that has chunks that it
 * has not put yet must not wait, because others might be waiting for these.
 */
extern GsPoolChunk *gpusort_client_new_chunk(GsClient *client, bool wait);

/*
 * Hand over a chunk, in which rows, part, offsets and data_bytes are set.  The
 * order of the calls is the order of arrival of the chunks.  Returns false after
 * a failure.  After GS_REASON_DEVICE_MEMORY, this chunk and some put
 * before it may have been refused for lack of memory; the others can still be
 * sorted.
 */
extern bool gpusort_client_put(GsClient *client, GsPoolChunk *chunk);

/*
 * After the sort: returns the refused chunk that was put first, or NULL if
 * there is none.  It stays the first until the caller frees it.
 */
extern GsPoolChunk *gpusort_client_first_refused(GsClient *client);

/*
 * Take that chunk, which several producers may try.  Returns NULL if there is none any more.
 * The caller frees it.
 */
extern GsPoolChunk *gpusort_client_take_refused(GsClient *client);

/* Sort the rows that were put, and wait for the end of the sort. */
extern bool gpusort_client_sort(GsClient *client);

/* In the other clients, after that: has the session not failed? */
extern bool gpusort_client_is_sorted(GsClient *client);

/* To be called after the sort. */
extern const GsSlotResult *gpusort_client_result(const GsClient *client);

/*
 * Note that the words of a row, which is not put yet, do not tell all of its sort keys.  After the
 * sort: has any client done so?
 */
extern void gpusort_client_note_ties(GsClient *client);
extern bool gpusort_client_has_ties(const GsClient *client);

/*
 * gpusort_client_ask() requests a sorted chunk, and gpusort_client_await()
 * waits until it has arrived.  The former returns NULL after a failure, or if
 * no pool chunk is free at the moment and 'wait' is false.
 */
extern GsPoolChunk *gpusort_client_ask(GsClient *client, GsNullPart part,
									   uint64 number, bool wait);
extern bool gpusort_client_await(GsClient *client, GsPoolChunk *chunk);

#endif							/* GPUSORT_SERVICE_CLIENT_H */
