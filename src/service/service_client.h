/*-------------------------------------------------------------------------
 *
 * service_client.h
 *		A backend's way to the GPU service.
 *
 * A client opens a session, fills chunks of the pool with rows and puts them,
 * asks for the sort, and gets sorted chunks by number, in any order and as
 * often as wanted.  All calls may wait and check for interrupts.  When one
 * fails, gpusort_client_failure() says why, and nothing but closing is left to
 * do, but for GS_FALLBACK_DEVICE_MEMORY after a put: see there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_CLIENT_H
#define GPUSORT_SERVICE_CLIENT_H

#include "fallback.h"
#include "service/service_shmem.h"

typedef struct GsClient GsClient;

typedef struct GsClientOptions
{
	unsigned	key_words;
	bool		variable;		/* rows of variable length, multiples of 8 */
	uint32		row_width;		/* bytes, unless variable */
	double		expected_rows;
	double		expected_bytes; /* of all rows, without keys */
} GsClientOptions;

/* GS_FALLBACK_NONE if sessions can be opened, or why not. */
extern GsFallback gpusort_client_availability(void);

/* Bytes of a chunk of the pool.  Only if there is a service. */
extern Size gpusort_client_chunk_bytes(void);

/*
 * Open a session in the current memory context, whose end closes it.  Returns
 * NULL and sets *reason if there is none to be had.
 */
extern GsClient *gpusort_client_open(const GsClientOptions *options,
									 GsFallback *reason);

/* Names a session to other processes of the same query. */
typedef struct GsClientHandle
{
	uint32		slot;
	uint32		epoch;
} GsClientHandle;

extern GsClientHandle gpusort_client_handle(const GsClient *client);

/*
 * Join a session, to put chunks alone.  Its owner must not close it before
 * this client is done.
 */
extern GsClient *gpusort_client_attach(GsClientHandle handle);

extern GsFallback gpusort_client_failure(const GsClient *client);

/*
 * A chunk to be filled; NULL after a failure, or if there is none at the moment
 * and 'wait' is false.  Who has chunks that are not put yet must not wait:
 * others might be waiting for them.
 */
extern GsPoolChunk *gpusort_client_new_chunk(GsClient *client, bool wait);

/*
 * Hand a chunk over: rows, part, offsets and data_bytes are set.  Chunks count
 * as having arrived in the sequence of the calls.  Returns false after a
 * failure; with GS_FALLBACK_DEVICE_MEMORY the chunk, and others that were put
 * before it, may have been refused for lack of memory.  What was taken can
 * still be sorted.
 */
extern bool gpusort_client_put(GsClient *client, GsPoolChunk *chunk);

/* After the sort: were chunks refused? */
extern bool gpusort_client_has_refused(const GsClient *client);

/*
 * After the sort: the first of the chunks refused, in the sequence in which they
 * were put; NULL if there are none.  It is the first until the caller frees it.
 */
extern GsPoolChunk *gpusort_client_first_refused(GsClient *client);

/* Sort what was put, and wait for it. */
extern bool gpusort_client_sort(GsClient *client);

/* After the sort. */
extern const GsPartResult *gpusort_client_result(const GsClient *client,
												 GsPart part);
extern double gpusort_client_sort_ms(const GsClient *client);
extern uint64 gpusort_client_device_bytes(const GsClient *client);

/*
 * Ask for a sorted chunk, and wait until a chunk asked for is there.  Asking
 * returns NULL if the pool has no chunk to spare at the moment and 'wait' is
 * false.
 */
extern GsPoolChunk *gpusort_client_ask(GsClient *client, GsPart part,
									   uint64 number, bool wait);
extern bool gpusort_client_await(GsClient *client, GsPoolChunk *chunk);

extern void gpusort_client_close(GsClient *client);

#endif							/* GPUSORT_SERVICE_CLIENT_H */
