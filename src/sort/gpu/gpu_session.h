/*-------------------------------------------------------------------------
 *
 * gpu_session.h
 *		Opens GPU sessions, and adds rows to them.
 *
 * A session has rows in the memory of one GPU.  What can be done with it is declared in one
 * header for each subject, whose .c file does it:
 *
 *		gpu_session.h		open a session, and add rows
 *		gpu_sorted_rows.h	sort the rows, and read them
 *		gpu_refused_rows.h	take the rows for which the device had no memory
 *		gpu_producers.h		several processes add rows
 *
 * Sorts read rows through gpu_rows.h, which has ties in the order of the comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SESSION_H
#define GPUSORT_GPU_SESSION_H

#include "service/service_client.h"
#include "sort/base/sort_spec.h"

/*
 * The number of words of a string in a key.  On a device, longer keys cost less than
 * breaking ties afterwards.
 */
#define GPUSORT_GPU_STRING_WORDS	2

typedef struct GsGpuSession GsGpuSession;

/*
 * Should a GPU be tried for 'rows' rows?  Returns GS_FALLBACK_NONE, or the reason against
 * it.  The planner calls this, too.
 */
extern GsFallback gpusort_gpu_session_check(double rows);

/*
 * Open an empty session in the current memory context.  It is closed and freed with
 * that context.  'spec' and what it points to must stay valid.  Returns NULL and sets
 * *reason if no session is available.
 */
extern GsGpuSession *gpusort_gpu_session_create(const GsSortSpec *spec,
												GsFallback *reason);

/* A bit for the session's device; and the rows that were put so far. */
extern uint32 gpusort_gpu_session_device(const GsGpuSession *session);
extern double gpusort_gpu_session_rows_put(const GsGpuSession *session);

/*
 * Add a row.  Returns false, and adds nothing, if that is not possible.
 * gpusort_gpu_session_failure() then returns the reason.  After
 * GS_FALLBACK_DEVICE_MEMORY the rows added so far can still be sorted.  After any
 * other reason they are lost.
 */
extern bool gpusort_gpu_session_put(GsGpuSession *session,
									const Datum *values, const bool *isnull);

/*
 * Hand over the rows that have been added.  Sorting does that, too.  Returns false as put()
 * does.
 */
extern bool gpusort_gpu_session_flush(GsGpuSession *session);

extern GsFallback gpusort_gpu_session_failure(const GsGpuSession *session);

#endif							/* GPUSORT_GPU_SESSION_H */
