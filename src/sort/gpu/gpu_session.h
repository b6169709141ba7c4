/*-------------------------------------------------------------------------
 *
 * gpu_session.h
 *		A GPU session: rows in the memory of one GPU, which are added, sorted and read.
 *
 * gpu_rows.h declares how rows are read with ties in the order of the comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SESSION_H
#define GPUSORT_GPU_SESSION_H

#include "service/service_client.h"
#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"

typedef struct GsGpuSession GsGpuSession;

/*
 * Should a GPU be tried for 'rows' rows?  'ties' says whether most of them are expected to tie in
 * the words that it sorts by: then the host would have to order them, in one process.  Returns
 * GS_REASON_NONE, or the reason against it.  The planner calls this, too.
 */
extern GsReason gpusort_gpu_session_check(double rows, bool ties);

/*
 * Open an empty session in the current memory context, or attach to spec->session, that of another
 * process of the same query.  It is closed and freed with that context.  'spec' and what it points
 * to must stay valid.  Returns NULL and sets *reason if no session is available.
 */
extern GsGpuSession *gpusort_gpu_session_create(const GsSortSpec *spec,
												GsReason *reason);

/*
 * Add a row.  Returns false, and adds nothing, if that is not possible.
 * gpusort_gpu_session_failure() then returns the reason.  After
 * GS_REASON_DEVICE_MEMORY the rows added so far can still be sorted.  After any
 * other reason they are lost.
 */
extern bool gpusort_gpu_session_put(GsGpuSession *session,
									const Datum *values, const bool *isnull);

/*
 * Add rows of one column, numbers of 'length' bytes each that follow each other.  Returns false,
 * and adds nothing, if put() has to add them one by one: as gpusort_key_plan_encode_numbers() does,
 * and if the chunk has no room for all of them.
 */
extern bool gpusort_gpu_session_put_numbers(GsGpuSession *session, const char *values,
											Size length, uint32 count);

/* After the last row: hand over the rows that have been added.  Returns false as put() does. */
extern bool gpusort_gpu_session_flush(GsGpuSession *session);

extern GsReason gpusort_gpu_session_failure(const GsGpuSession *session);

/* ----------------------------------------------------------------
 *		rows for which the device had no memory
 * ----------------------------------------------------------------
 */

/* After sorting: are there any? */
extern bool gpusort_gpu_session_has_rest(const GsGpuSession *session);

/*
 * In each process that has put rows, when the session takes no more: take the rows that it has not
 * put, and those that the device has refused, one by one, until it returns false, also if the
 * session is lost.  The processes can do that at the same time.  Ties come in the order in which
 * they were added, and were added after those that the device has.
 */
extern bool gpusort_gpu_session_take_rest(GsGpuSession *session, Datum *values, bool *isnull);

/* ----------------------------------------------------------------
 *		several processes add rows
 * ----------------------------------------------------------------
 */

/*
 * Returns what others pass in spec->session.  Their rows must be of the same type.  An attached
 * process must flush the session after the last row that it adds.
 */
extern GsClientHandle gpusort_gpu_session_handle(GsGpuSession *session);

/*
 * In the process that has sorted it, after reading all sorted rows: free the device memory.
 * Others can still find out that it is full.  Returns false if the session is lost.
 */
extern bool gpusort_gpu_session_release(GsGpuSession *session);

/* ----------------------------------------------------------------
 *		sorting the rows, and reading them in sorted order: gpu_sorted_rows.c
 * ----------------------------------------------------------------
 */

/* Sort the rows.  Returns false if they are lost, also if host memory ran out. */
extern bool gpusort_gpu_session_sort(GsGpuSession *session);

/* In other processes, when one has sorted the rows: prepare to read them.  Returns as sort(). */
extern bool gpusort_gpu_session_join(GsGpuSession *session);

/* After sorting: the number of rows that can be read by position. */
extern int64 gpusort_gpu_session_count(const GsGpuSession *session);

/* Returns the first sort key that the words of a device do not encode exactly, or nkeys. */
extern int	gpusort_gpu_session_first_open(const GsGpuSession *session);

/* After sorting: are there ties, which are yet to be ordered? */
extern bool gpusort_gpu_session_has_ties(const GsGpuSession *session);

/*
 * Several processes will read the rows.  What one keeps in the pool while it does something else
 * could be what another one waits for, so each copies the chunk that it reads.
 */
extern void gpusort_gpu_session_copy_chunks(GsGpuSession *session);

/*
 * The rows are in this number of chunks.  seek() reads one of them, counted from 0, whose position
 * need not be known.  enter() does this with the one that has a position.  Both return the position
 * after its last row, or -1 if the rows are lost.
 */
extern int64 gpusort_gpu_session_chunks(const GsGpuSession *session);
extern int64 gpusort_gpu_session_seek(GsGpuSession *session, int64 chunk);
extern int64 gpusort_gpu_session_enter(GsGpuSession *session, int64 position);

/*
 * After sorting: read the row at a position in sorted order, counted from 0.  It must
 * be the next or the previous row, or one that was read before.  Values passed by
 * reference are valid until the next call.  Returns false if the rows are lost.  Ties
 * come in the order in which they were added.
 */
extern bool gpusort_gpu_session_get(GsGpuSession *session, int64 position,
									Datum *values, bool *isnull);

/*
 * After sorting, if the encoded keys are not exact: does the row after the one at a
 * position have an equal key?  The position must be one that could be read.  Returns 1
 * or 0, or -1 if the rows are lost.
 */
extern int	gpusort_gpu_session_is_tie(GsGpuSession *session, int64 position);

/*
 * Read a row as gpusort_gpu_session_get() does, unless the row after it has an equal key.
 * Returns 1 if it was read, 0 if it has such a tie, or -1 if the rows are lost.
 */
extern int	gpusort_gpu_session_get_untied(GsGpuSession *session, int64 position,
										   Datum *values, bool *isnull);

/*
 * Sets *rows to the rows from a position on, to the end of the chunk that was read last, or
 * to before the first one with a tie.  Returns false if there are none.
 *
 * They are valid until a row of another chunk is read.  If they were lent, chunks are used
 * again only after recall() has returned for a position behind their rows.
 */
extern bool gpusort_gpu_session_in_place(GsGpuSession *session, int64 position,
										 GsRowsInPlace *rows);
extern void gpusort_gpu_session_lend(GsGpuSession *session, GsRecallRows recall, void *arg);

/*
 * Can the rows from a position to the one read last be read again without fetching any
 * chunk?
 */
extern bool gpusort_gpu_session_is_near(const GsGpuSession *session, int64 position);

/*
 * The positions of the first row in the chunk of the row last read, and after its last one.  Values
 * of rows in that chunk stay valid as long as no row of another chunk is read.
 */
extern int64 gpusort_gpu_session_chunk_start(const GsGpuSession *session);
extern int64 gpusort_gpu_session_chunk_end(const GsGpuSession *session);

typedef struct GsGpuReport
{
	uint32		devices;		/* a bit for the session's device */
	double		rows_put;		/* by this process so far */
	uint64		device_bytes;	/* after sorting: peak of the device memory */
	double		sort_ms;		/* likewise: time on the device */
	double		fetch_ms;		/* time waited for sorted rows so far */
} GsGpuReport;

/* Report on the session. */
extern void gpusort_gpu_session_report(const GsGpuSession *session,
									   GsGpuReport *report);

#endif							/* GPUSORT_GPU_SESSION_H */
