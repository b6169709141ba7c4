/*-------------------------------------------------------------------------
 *
 * host_sort.h
 *		Sorts rows on the host alone, in memory or, if they do not fit, on disk.
 *
 * This is for sorts that are part of another sort.  Such a sort never uses a GPU, is
 * not counted in the statistics, and does not involve other processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_SORT_H
#define GPUSORT_HOST_SORT_H

#include "sort/base/sort_spec.h"

typedef struct GsHostSort GsHostSort;

/*
 * Begin a sort in the current memory context.  It must be ended before that context
 * is deleted, except after an error, which ends the sort, too.  What 'spec' points
 * to must stay valid, but 'spec' itself is copied.  Its bound is ignored.
 */
extern GsHostSort *gpusort_host_sort_begin(const GsSortSpec *spec);

/* Add a row. */
extern void gpusort_host_sort_put(GsHostSort *sort, const Datum *values,
								  const bool *isnull);

/* Sort the rows after all have been added.  Stable.  Checks for interrupts. */
extern void gpusort_host_sort_perform(GsHostSort *sort);

/*
 * After that: can the row at a position, counted from 0, be read?  Rows on disk can
 * be read only once and forward, unless spec->random_access is set.
 */
extern bool gpusort_host_sort_can_get(const GsHostSort *sort, int64 position);

/* Read that row.  Values passed by reference are valid until the next call. */
extern void gpusort_host_sort_get(GsHostSort *sort, int64 position,
								  Datum *values, bool *isnull);

extern void gpusort_host_sort_end(GsHostSort *sort);

#endif							/* GPUSORT_HOST_SORT_H */
