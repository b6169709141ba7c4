/*-------------------------------------------------------------------------
 *
 * tie_sorter.h
 *		Puts rows in order whose encoded keys are equal but do not say all.
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
 * Make a sorter, in the current memory context, for rows that are in 'store' by
 * the numbers that an ordering has for them; NULL if the keys say all.
 */
extern GsTieSorter *gpusort_tie_sorter_create(const GsSortSpec *spec,
											  const GsRowStore *store);

/*
 * GsTiesCallback, with the sorter as 'arg'.  Stable.  Calls comparators, which
 * may raise errors, and checks for interrupts.
 */
extern void gpusort_tie_sorter_sort(GsOrdering *ordering, uint64 *entries,
									uint32 count, void *arg);

#endif							/* GPUSORT_TIE_SORTER_H */
