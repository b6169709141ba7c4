/*-------------------------------------------------------------------------
 *
 * gpu_rows.h
 *		The rows of a sort that are on a GPU: a session, and the order of its ties.
 *
 * The struct is public because get(), which is called for each row, is inline, and because a sort
 * calls functions of the session.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_ROWS_H
#define GPUSORT_GPU_ROWS_H

#include "sort/base/rows_in_place.h"
#include "sort/disk/cpu_sort.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/shared_ranges.h"

/* Breaks ties; see gpu_rows.c. */
typedef struct GsGpuTies GsGpuTies;

/* All NULL if there are no such rows. */
typedef struct GsGpuRows
{
	MemoryContext context;		/* for what follows */
	GsGpuSession *session;
	GsGpuTies  *ties;			/* after sorting, unless keys are exact */
} GsGpuRows;

/*
 * Open a session, or attach to spec->session, with a context below the current one.  Returns false
 * and sets *reason if no GPU is available.
 */
extern bool gpusort_gpu_rows_begin(GsGpuRows *rows, const GsSortSpec *spec, GsReason *reason);

/*
 * Have the rows sorted, unless another process has had them 'sorted', and prepare to read them.
 * Returns false if they are lost.
 */
extern bool gpusort_gpu_rows_sort(GsGpuRows *rows, const GsSortSpec *spec, bool sorted);

/* No row between the one read last and a position is wanted, at which no group of ties goes on. */
extern void gpusort_gpu_rows_seek(const GsGpuRows *rows, int64 position);

/*
 * After sorting: write the rows as the first run, since they arrived before those in other runs,
 * and those for which there was no device memory as further ones.  Returns false if rows are lost.
 */
extern bool gpusort_gpu_rows_write(const GsGpuRows *rows, GsCpuSort *sort);

/*
 * After sorting: can the rows from a position to the one read last be read again about as fast as
 * rows in memory?
 */
extern bool gpusort_gpu_rows_is_near(const GsGpuRows *rows, int64 position);

/*
 * See gpusort_gpu_session_in_place().  pass() tells that n of these are read, and after them the
 * next one.
 */
extern bool gpusort_gpu_rows_in_place(const GsGpuRows *rows, int64 position,
									  GsRowsInPlace *in_place);
extern void gpusort_gpu_rows_pass(const GsGpuRows *rows, uint32 n);

/* No more rows are read: close the files of this process. */
extern void gpusort_gpu_rows_close(const GsGpuRows *rows);

/* End the session, if there is one. */
extern void gpusort_gpu_rows_end(GsGpuRows *rows);

/*
 * Read a row as gpusort_gpu_session_get() does, but return ties in the order of the
 * comparators, and rows that these consider equal in the order of arrival.
 * Comparators may raise errors.
 */
extern bool gpusort_gpu_ties_get(GsGpuTies *ties, int64 position,
								 Datum *values, bool *isnull);

/*
 * After sorting: read the row at a position as gpusort_gpu_session_get() does, except that ties
 * are in the order of the comparators.  Returns false if the rows are lost.
 */
static inline bool
gpusort_gpu_rows_get(const GsGpuRows *rows, int64 position, Datum *values, bool *isnull)
{
	if (unlikely(rows->ties != NULL))
		return gpusort_gpu_ties_get(rows->ties, position, values, isnull);
	return gpusort_gpu_session_get(rows->session, position, values, isnull);
}

/*
 * ---- Ranges of the sorted rows, each of which one process reads: gpu_ranges.c ----
 *
 * For sorts with spec->group_keys.  Each process is a client of the session, and reads the ranges
 * that it takes (memory/shared_ranges.h).
 */

/*
 * Prepare to read ranges of 'rows', which are sorted, by that number of processes.  Must be
 * called with the same number in all of them.  All memory is that of 'rows'.  The result tells how
 * many rows come next, and at which position of the session, but not where they are in memory.
 */
extern GsRanges *gpusort_gpu_ranges_create(const GsGpuRows *rows, const GsSortSpec *spec,
										   GsSharedRanges *shared, int processes);

#endif							/* GPUSORT_GPU_ROWS_H */
