/*-------------------------------------------------------------------------
 *
 * gpu_session.h
 *		A sort session in the memory of a GPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SESSION_H
#define GPUSORT_GPU_SESSION_H

#include "service/service_client.h"
#include "sort/base/sort_spec.h"

/*
 * Words of a string that are part of the key: on a device a longer key costs less
 * than rows with equal keys do afterwards.
 */
#define GPUSORT_GPU_STRING_WORDS	2

typedef struct GsGpuSession GsGpuSession;

/*
 * Is a GPU to be tried for so many rows, which can be read again or not?
 * Returns GS_FALLBACK_NONE or why not; serves planning as well.
 */
extern GsFallback gpusort_gpu_session_check(double rows, GsInputRepeat repeat);

/*
 * Make an empty session in the current memory context, which is also what
 * frees it.  What 'spec' points to must stay.  Returns NULL and sets *reason
 * if there is none to be had.
 */
extern GsGpuSession *gpusort_gpu_session_create(const GsSortSpec *spec,
												GsFallback *reason);

/*
 * Join a session of another process of the same query, with the same kind of
 * rows, to add rows alone, and to flush them at the end.
 */
extern GsClientHandle gpusort_gpu_session_handle(GsGpuSession *session);
extern GsGpuSession *gpusort_gpu_session_attach(const GsSortSpec *spec,
												GsClientHandle handle);
extern bool gpusort_gpu_session_flush(GsGpuSession *session);

/* Have the session refuse rows when there are about as many as 'rows'. */
extern void gpusort_gpu_session_set_capacity(GsGpuSession *session, double rows);

/*
 * Add a row.  Returns false, and adds nothing, if that is not possible:
 * gpusort_gpu_session_failure() says why.  After GS_FALLBACK_DEVICE_MEMORY, and
 * GS_FALLBACK_LIMIT if there are as many rows as there are to be, the rows added
 * so far can be sorted; after anything else they are lost.
 */
extern bool gpusort_gpu_session_put(GsGpuSession *session,
									const Datum *values, const bool *isnull);

/* Sort.  Returns false if the rows are lost, for lack of host memory as well. */
extern bool gpusort_gpu_session_sort(GsGpuSession *session);

extern GsFallback gpusort_gpu_session_failure(const GsGpuSession *session);

/* After sorting: how many rows can be read by their positions. */
extern int64 gpusort_gpu_session_count(const GsGpuSession *session);

/*
 * After sorting: read the row at a position in sorted order, from 0: the next
 * or the previous one, or one that was read before.  What is passed by
 * reference is valid until the next call.  Returns false if the rows are lost.
 * Rows with equal keys come in the order in which they were added.
 */
extern bool gpusort_gpu_session_get(GsGpuSession *session, int64 position,
									Datum *values, bool *isnull);

/*
 * The end of the positions that are in one chunk with the one last read: what
 * their rows point to is valid as long as no other position is read.
 */
extern int64 gpusort_gpu_session_chunk_end(const GsGpuSession *session);

/*
 * After sorting: take the rows for which there was no device memory.  Those that
 * can have equal keys come in the order in which they were added, and were added
 * after those that were sorted.  Returns false when all are taken.
 */
extern bool gpusort_gpu_session_has_rest(const GsGpuSession *session);
extern bool gpusort_gpu_session_take_rest(GsGpuSession *session,
										  Datum *values, bool *isnull);

typedef struct GsGpuReport
{
	uint64		device_bytes;	/* most that was in use */
	double		sort_ms;		/* on the device */
	double		fetch_ms;		/* waiting for sorted rows so far */
} GsGpuReport;

/* After sorting. */
extern void gpusort_gpu_session_report(const GsGpuSession *session,
									   GsGpuReport *report);

#endif							/* GPUSORT_GPU_SESSION_H */
