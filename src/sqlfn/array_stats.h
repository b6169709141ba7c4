/*-------------------------------------------------------------------------
 *
 * array_stats.h
 *		Counts sorts of arrays, for pg_stat_gpusort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_STATS_H
#define GPUSORT_ARRAY_STATS_H

#include "sort/base/sort_stats.h"

typedef struct GsArraySortTimer GsArraySortTimer;

/*
 * Begin to measure a sort of so many elements, in the current memory
 * context.  If that context ends before one of the functions below is called, an
 * error is counted.
 */
extern GsArraySortTimer *gpusort_array_stats_begin(uint64 elements);

/* They are sorted: count the sort.  'bytes' are those that it took. */
extern void gpusort_array_stats_count(GsArraySortTimer *timer, GsSortKind kind,
									  uint64 bytes);

/* They have to be sorted in another way: count nothing. */
extern void gpusort_array_stats_cancel(GsArraySortTimer *timer);

#endif							/* GPUSORT_ARRAY_STATS_H */
