/*-------------------------------------------------------------------------
 *
 * gpu_spread.h
 *		Spreads the rows of a sort over the memory of several GPUs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_SPREAD_H
#define GPUSORT_GPU_SPREAD_H

#include "sort/base/rows_in_place.h"
#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_sorted_rows.h"
#include "sort/gpu/gpu_ties.h"

typedef struct GsGpuSpread GsGpuSpread;

/*
 * Open the first session, in the current memory context, which closes all of them.
 * 'spec' and what it points to must stay valid.  Returns NULL and sets *reason if no
 * session is available.
 */
extern GsGpuSpread *gpusort_gpu_spread_create(const GsSortSpec *spec,
											  GsFallback *reason);

/*
 * Get the handle of the first session, so that other processes can put rows into it, and
 * into those that continue it.  They must be done before the rows are sorted.
 */
extern GsClientHandle gpusort_gpu_spread_handle(GsGpuSpread *spread);

/* The session to which this process adds rows. */
extern GsGpuSession *gpusort_gpu_spread_session(const GsGpuSpread *spread);

/*
 * Make it refuse further rows once it has about 'rows' of them.  Then a full device also
 * means that rows should be dropped, and no further session is opened.
 */
extern void gpusort_gpu_spread_set_capacity(GsGpuSpread *spread, double rows);

/*
 * After that session has refused a row because its device has no memory left: sort it,
 * and open another one on a device that has none of the rows yet.  It also gets the rows
 * that were refused.  If other processes put rows, one of all processes opens it, and the
 * full session is sorted later.
 *
 * Returns false if there is no such device, in which case the rows are still there and
 * gpusort_gpu_spread_failure() returns GS_FALLBACK_DEVICE_MEMORY, or if rows are lost.
 */
extern bool gpusort_gpu_spread_grow(GsGpuSpread *spread);

/*
 * Sort all rows, opening further sessions as grow() does.  Returns false if rows are lost.
 */
extern bool gpusort_gpu_spread_sort(GsGpuSpread *spread);

/*
 * Returns why the last row was refused, or rows are lost; and whether they are known to be
 * lost, since further sessions were opened or rows sorted.
 */
extern bool gpusort_gpu_spread_is_lost(const GsGpuSpread *spread);
extern GsFallback gpusort_gpu_spread_failure(const GsGpuSpread *spread);

/* The rows put into the sessions so far; those of other processes only after sorting. */
extern double gpusort_gpu_spread_rows_put(const GsGpuSpread *spread);

/*
 * After sorting: the number of sorted rows, and the row at a position, as
 * gpusort_gpu_session_get() returns it, except that ties are in the order of the
 * comparators.
 */
extern int64 gpusort_gpu_spread_count(const GsGpuSpread *spread);
extern bool gpusort_gpu_spread_get(GsGpuSpread *spread, int64 position,
								   Datum *values, bool *isnull);

/*
 * Can the rows from a position to the one read last be read again about as fast as rows in
 * memory?
 */
extern bool gpusort_gpu_spread_is_near(const GsGpuSpread *spread, int64 position);

/*
 * See gpusort_gpu_session_in_place() and gpusort_gpu_session_lend().  There are no rows in
 * place if they are on several devices.
 */
extern bool gpusort_gpu_spread_in_place(GsGpuSpread *spread, int64 position,
										GsRowsInPlace *rows);
extern void gpusort_gpu_spread_lend(GsGpuSpread *spread, GsRecallRows recall, void *arg);

/* See gpusort_gpu_session_has_rest() and gpusort_gpu_session_take_rest(). */
extern bool gpusort_gpu_spread_has_rest(const GsGpuSpread *spread);
extern bool gpusort_gpu_spread_take_rest(GsGpuSpread *spread, Datum *values,
										 bool *isnull);

/* The devices of all sessions: a bit for each, as gpusort_gpu_session_device() returns it. */
extern uint32 gpusort_gpu_spread_devices(const GsGpuSpread *spread);

/*
 * With other producers: have they found that no device has room for more rows?  If so, and
 * the rows that are there have been read after sorting, free their device memory while
 * others find that out.  Returns false if sessions are lost.
 */
extern bool gpusort_gpu_spread_has_no_room(const GsGpuSpread *spread);
extern bool gpusort_gpu_spread_release(GsGpuSpread *spread);

/* Report on all sessions together.  Returns how many there are. */
extern int	gpusort_gpu_spread_report(const GsGpuSpread *spread, GsGpuReport *report);

/* End reading.  The end of the memory context closes the sessions. */
extern void gpusort_gpu_spread_end(GsGpuSpread *spread);

#endif							/* GPUSORT_GPU_SPREAD_H */
