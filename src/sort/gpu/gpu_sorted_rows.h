/*-------------------------------------------------------------------------
 *
 * gpu_sorted_rows.h
 *		Has a device sort the rows of a GPU session, and reads them in sorted order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SORTED_ROWS_H
#define GPUSORT_GPU_SORTED_ROWS_H

#include "sort/base/rows_in_place.h"
#include "sort/gpu/gpu_session.h"

/* Sort the rows.  Returns false if they are lost, also if host memory ran out. */
extern bool gpusort_gpu_session_sort(GsGpuSession *session);

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
 * The position after the last row in the chunk of the row last read.  Values of rows
 * in that chunk stay valid as long as no row of another chunk is read.
 */
extern int64 gpusort_gpu_session_chunk_end(const GsGpuSession *session);

typedef struct GsGpuReport
{
	uint64		device_bytes;	/* peak of the device memory in use */
	double		sort_ms;		/* time on the device */
	double		fetch_ms;		/* time waited for sorted rows so far */
} GsGpuReport;

/* After sorting: report on the session. */
extern void gpusort_gpu_session_report(const GsGpuSession *session,
									   GsGpuReport *report);

#endif							/* GPUSORT_GPU_SORTED_ROWS_H */
