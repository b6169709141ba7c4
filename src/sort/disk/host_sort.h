/*-------------------------------------------------------------------------
 *
 * host_sort.h
 *		A sort on the host alone: rows in memory, and in runs if they outgrow it.
 *
 * This is for sorts that are a part of another one.  They never use a GPU, are not
 * counted, and know no other processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_SORT_H
#define GPUSORT_HOST_SORT_H

#include "sort/base/sort_spec.h"

typedef struct GsHostSort GsHostSort;

/*
 * Begin in the current memory context, to be ended before that is; an error ends
 * the sort as well.  What 'spec' points to must stay, but not 'spec' itself.  Its
 * input is not read, and its target is ignored.  With a bound, rows beyond it may
 * be dropped.
 */
extern GsHostSort *gpusort_host_sort_begin(const GsSortSpec *spec);

/* Add a row. */
extern void gpusort_host_sort_put(GsHostSort *sort, const Datum *values,
								  const bool *isnull);

/* All rows are in: sort them, stably.  Checks for interrupts. */
extern void gpusort_host_sort_perform(GsHostSort *sort);

/*
 * After that: can the row at a position, from 0, be read?  Rows on disk are read
 * once and forward, unless spec->random_access.
 */
extern bool gpusort_host_sort_can_get(const GsHostSort *sort, int64 position);

/* Read it.  What is passed by reference is valid until the next call. */
extern void gpusort_host_sort_get(GsHostSort *sort, int64 position,
								  Datum *values, bool *isnull);

extern void gpusort_host_sort_end(GsHostSort *sort);

#endif							/* GPUSORT_HOST_SORT_H */
