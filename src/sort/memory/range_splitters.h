/*-------------------------------------------------------------------------
 *
 * range_splitters.h
 *		Divides sorted rows into ranges of about the same length before they are sorted.
 *
 * Splitters are rows of a sample.  Range r has the rows that sort before splitter r, and
 * not before splitter r - 1.  No two rows are equal, since row numbers decide in the end.
 * So the ranges have about the same length whatever the keys are, even if all are equal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGE_SPLITTERS_H
#define GPUSORT_RANGE_SPLITTERS_H

#include "sort/base/sort_spec.h"
#include "sort/memory/ordering.h"
#include "sort/memory/row_store.h"

typedef struct GsRangeSplitters GsRangeSplitters;

/* How many rows of a sample each range should have. */
#define GPUSORT_SAMPLE_PER_RANGE	24

/*
 * Choose the splitters of 'nranges' ranges, at least 1, in the current memory context.
 * 'sample' has the numbers of 'count' rows, at least nranges, in ascending order; it is
 * overwritten.  'ordering' and 'store' have the keys and the rows.  The values of 'window'
 * are compared first: it has the most significant bits in which keys differ.
 */
extern GsRangeSplitters *gpusort_range_splitters_create(const GsSortSpec *spec,
														GsOrdering *ordering,
														const GsRowStore *store,
														const GsKeyWindow *window,
														uint64 *sample,
														uint32 count,
														int nranges);

/*
 * Do nearly all of 'rows' rows have different values of the window, as far as the sample
 * tells?
 */
extern bool gpusort_range_splitters_separate(const GsRangeSplitters *splitters,
											 uint32 rows);

/* Returns the range of a row with this value of the window, from 0. */
extern int	gpusort_range_splitters_find(GsRangeSplitters *splitters,
										 uint32 value, uint32 row);

#endif							/* GPUSORT_RANGE_SPLITTERS_H */
