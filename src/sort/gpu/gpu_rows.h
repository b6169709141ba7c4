/*-------------------------------------------------------------------------
 *
 * gpu_rows.h
 *		The rows of a sort in a GPU session, with ties in the order of the comparators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_ROWS_H
#define GPUSORT_GPU_ROWS_H

#include "sort/base/rows_in_place.h"
#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_sorted_rows.h"
#include "sort/gpu/gpu_ties.h"

typedef struct GsGpuRows GsGpuRows;

/*
 * Open a session, in the current memory context, which closes it.  'spec' and what it points
 * to must stay valid.  Returns NULL and sets *reason if no session is available.
 */
extern GsGpuRows *gpusort_gpu_rows_create(const GsSortSpec *spec, GsFallback *reason);

/*
 * Get the handle of the session, so that other processes can put rows into it.  They must be
 * done before the rows are sorted.
 */
extern GsClientHandle gpusort_gpu_rows_handle(GsGpuRows *rows);

/* The session, to which rows are added. */
extern GsGpuSession *gpusort_gpu_rows_session(const GsGpuRows *rows);

/* Sort all rows.  Returns false if they are lost. */
extern bool gpusort_gpu_rows_sort(GsGpuRows *rows);

/* Returns why the last row was refused, or rows are lost. */
extern GsFallback gpusort_gpu_rows_failure(const GsGpuRows *rows);

/*
 * After sorting: the number of sorted rows, and the row at a position, as
 * gpusort_gpu_session_get() returns it, except that ties are in the order of the
 * comparators.
 */
extern int64 gpusort_gpu_rows_count(const GsGpuRows *rows);
extern bool gpusort_gpu_rows_get(GsGpuRows *rows, int64 position,
								 Datum *values, bool *isnull);

/*
 * Can the rows from a position to the one read last be read again about as fast as rows in
 * memory?
 */
extern bool gpusort_gpu_rows_is_near(const GsGpuRows *rows, int64 position);

/* See gpusort_gpu_session_in_place(). */
extern bool gpusort_gpu_rows_in_place(GsGpuRows *rows, int64 position,
									  GsRowsInPlace *in_place);

/* End reading.  The end of the memory context closes the session. */
extern void gpusort_gpu_rows_end(GsGpuRows *rows);

#endif							/* GPUSORT_GPU_ROWS_H */
