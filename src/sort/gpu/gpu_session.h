/*-------------------------------------------------------------------------
 *
 * gpu_session.h
 *		Sorts rows in the memory of a GPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SESSION_H
#define GPUSORT_GPU_SESSION_H

#include "service/service_client.h"
#include "sort/base/sort_spec.h"
#include "sort/base/rows_in_place.h"
#include "sort/disk/row_copy.h"

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

/*
 * Open a session as one of several of a sort, whose rows are spread over devices.  'used'
 * has a bit for each device that has rows of the sort already, and is not to be chosen
 * again.  'rows' is how many rows are still expected.  There may be more than fit into the
 * memory of one device, but for the first session of processes with backend = auto.
 */
extern GsGpuSession *gpusort_gpu_session_create_one(const GsSortSpec *spec, uint32 used,
													double rows, GsFallback *reason);

/*
 * Open a session for as many rows of a sort as fit, whose other rows follow in further
 * sessions.  So many processes do that at the same time.
 */
extern GsGpuSession *gpusort_gpu_session_create_batch(const GsSortSpec *spec, int processes,
													  GsFallback *reason);

/* The bit of the session's device, for 'used'; and the rows that were put so far. */
extern uint32 gpusort_gpu_session_device(const GsGpuSession *session);
extern double gpusort_gpu_session_rows_put(const GsGpuSession *session);

/*
 * Attach to the session of another process of the same query, given its handle.  The
 * rows must be of the same type.  An attached process can only add rows, and must
 * flush the session after its last one.
 */
extern GsClientHandle gpusort_gpu_session_handle(GsGpuSession *session);
extern GsGpuSession *gpusort_gpu_session_attach(const GsSortSpec *spec,
												GsClientHandle handle);
extern bool gpusort_gpu_session_flush(GsGpuSession *session);

/*
 * Add the rows that are put from now on to a copy as well.  After a failure,
 * gpusort_gpu_session_copy_rest() adds those that have not been handed over, so that the
 * copy has all rows.
 */
extern void gpusort_gpu_session_keep_copy(GsGpuSession *session, GsRowCopy *copy);
extern void gpusort_gpu_session_copy_rest(GsGpuSession *session);

/* Memory is needed for something else: move the copy, if there is one, to its file. */
extern void gpusort_gpu_session_make_room(GsGpuSession *session);

/*
 * The session refused a row, or a flush, with GS_FALLBACK_DEVICE_MEMORY, and several
 * processes put rows into it: attach to the session that continues it, on another device.
 * One of the processes opens that.  It gets the rows that have been refused, and those that
 * this process has not put yet.  Returns NULL if no device has room or after a failure; the
 * reason is that of 'full'.  Otherwise rows are added only to the session returned.
 */
extern GsGpuSession *gpusort_gpu_session_follow(GsGpuSession *full);

/*
 * The same in a loop around put() and flush(): *session becomes the session that has room.
 * Return false if there is none or after a failure, which is that of *session then.
 */
extern bool gpusort_gpu_session_put_shared(GsGpuSession **session, const Datum *values,
										   const bool *isnull);
extern bool gpusort_gpu_session_flush_shared(GsGpuSession **session);

/*
 * Is a session full, and no device has room for one that continues it?  If so, in each
 * process that has put rows: take_left() takes the rows that it has not put, and those that
 * the device has refused, one by one, until it returns false, also if the session is lost.
 * The processes can do that at the same time.
 */
extern bool gpusort_gpu_session_has_no_room(const GsGpuSession *session);
extern bool gpusort_gpu_session_take_left(GsGpuSession *session, Datum *values, bool *isnull);

/*
 * In the process that has opened it, after reading all sorted rows: free the device memory.
 * Others can still find out that there is no room.  Returns false if the session is lost.
 */
extern bool gpusort_gpu_session_release(GsGpuSession *session);

/*
 * In the process that has opened the first session, when all others have put their rows:
 * returns the session that continues this one, or NULL.
 */
extern GsGpuSession *gpusort_gpu_session_own_next(GsGpuSession *session);

/* Make the session refuse further rows once it has about 'rows' of them. */
extern void gpusort_gpu_session_set_capacity(GsGpuSession *session, double rows);

/*
 * Add a row.  Returns false, and adds nothing, if that is not possible.
 * gpusort_gpu_session_failure() then returns the reason.  After
 * GS_FALLBACK_DEVICE_MEMORY, and after GS_FALLBACK_LIMIT, which means that the
 * capacity is reached, the rows added so far can still be sorted.  After any other
 * reason they are lost.
 */
extern bool gpusort_gpu_session_put(GsGpuSession *session,
									const Datum *values, const bool *isnull);

/* Sort the rows.  Returns false if they are lost, also if host memory ran out. */
extern bool gpusort_gpu_session_sort(GsGpuSession *session);

extern GsFallback gpusort_gpu_session_failure(const GsGpuSession *session);

/* After sorting: the number of rows that can be read by position. */
extern int64 gpusort_gpu_session_count(const GsGpuSession *session);

/*
 * After sorting: read the row at a position in sorted order, counted from 0.  It must
 * be the next or the previous row, or one that was read before.  Values passed by
 * reference are valid until the next call.  Returns false if the rows are lost.  Ties
 * come in the order in which they were added.
 */
extern bool gpusort_gpu_session_get(GsGpuSession *session, int64 position,
									Datum *values, bool *isnull);

/* The same, but returns the row as it is packed, or NULL if the rows are lost. */
extern char *gpusort_gpu_session_get_packed(GsGpuSession *session, int64 position);

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
 * The position after the last row in the chunk of the row last read.  Values of rows
 * in that chunk stay valid as long as no row of another chunk is read.
 */
extern int64 gpusort_gpu_session_chunk_end(const GsGpuSession *session);

/*
 * After sorting: are there rows for which there was no device memory?  If so, take
 * them out one by one, until false is returned.  Ties come in the order in which they
 * were added, and were added after those that have been sorted.
 */
extern bool gpusort_gpu_session_has_rest(const GsGpuSession *session);
extern bool gpusort_gpu_session_take_rest(GsGpuSession *session,
										  Datum *values, bool *isnull);

/*
 * Instead of taking them out: move such rows of one session to another one, of the same
 * sort.  Returns false if the latter cannot have all of them, for its failure's reason.
 * After GS_FALLBACK_DEVICE_MEMORY, the others have not moved.  The second session keeps the
 * copy that the first one keeps.
 */
extern bool gpusort_gpu_session_move_rest(GsGpuSession *from, GsGpuSession *to);

typedef struct GsGpuReport
{
	uint64		device_bytes;	/* peak of the device memory in use */
	double		sort_ms;		/* time on the device */
	double		fetch_ms;		/* time waited for sorted rows so far */
} GsGpuReport;

/* After sorting: report on the session. */
extern void gpusort_gpu_session_report(const GsGpuSession *session,
									   GsGpuReport *report);

#endif							/* GPUSORT_GPU_SESSION_H */
