/*-------------------------------------------------------------------------
 *
 * tie_sorter.h
 *		Sorts ties whose encoded keys are not exact.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIE_SORTER_H
#define GPUSORT_TIE_SORTER_H

#include "sort/base/sort_spec.h"
#include "sort/memory/ordering.h"
#include "sort/memory/row_store.h"

typedef struct GsTieSorter GsTieSorter;

/*
 * Create a tie sorter in the current memory context.  The rows are in 'store',
 * under the same numbers as in the ordering.  Returns NULL if the encoded keys are
 * exact, so that there are no ties to break.
 */
extern GsTieSorter *gpusort_tie_sorter_create(const GsSortSpec *spec,
											  const GsRowStore *store);

/*
 * GsTiesCallback, with the tie sorter as 'arg'.  The sort is stable.  Calls
 * comparators, which may raise errors, and checks for interrupts.
 */
extern void gpusort_tie_sorter_sort(GsOrdering *ordering, uint64 *entries,
									uint32 count, void *arg);

#endif							/* GPUSORT_TIE_SORTER_H */
