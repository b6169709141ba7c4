/*-------------------------------------------------------------------------
 *
 * range_sorter.h
 *		Sorts the rows of one range of a shared sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_SORTER_H
#define GPUSORT_RANGE_SORTER_H

#include "sort/memory/shared_view.h"

typedef struct GsRangeSorter GsRangeSorter;

/*
 * Create a sorter in the current memory context, after all processes have placed their
 * rows.
 */
extern GsRangeSorter *gpusort_range_sorter_create(const GsSharedView *view);

/*
 * Sort the rows of a range.  Returns their entries, whose low 32 bits are row numbers of the
 * view, and sets *count to the number of rows.  They are valid until the next call.  Ties
 * are in the order of row numbers.  Calls comparators, which may raise errors, and checks
 * for interrupts.
 */
extern const uint64 *gpusort_range_sorter_sort(GsRangeSorter *sorter, int range,
											   uint32 *count);

/*
 * Keep the sorted entries of a range, right after sorting it, in place of those from which it
 * was sorted.  A range must not be sorted twice, as sorting may change its keys.
 */
extern void gpusort_range_sorter_keep(GsRangeSorter *sorter, int range);

/*
 * Returns the entries of a range that were kept, by the sorter of any process, as they were
 * sorted.  They are valid until the next call.
 */
extern const uint64 *gpusort_range_sorter_get(GsRangeSorter *sorter, int range,
											  uint32 *count);

#endif							/* GPUSORT_RANGE_SORTER_H */
