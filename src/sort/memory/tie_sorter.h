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
#include "sort/memory/key_sort.h"
#include "sort/memory/row_store.h"

typedef struct GsTieSorter GsTieSorter;

/*
 * Create a tie sorter in the current memory context.  The rows are in 'store',
 * under the same numbers as in the key sort.  Returns NULL if the encoded keys are
 * exact, so that there are no ties to break.
 */
extern GsTieSorter *gpusort_tie_sorter_create(const GsSortSpec *spec,
											  const GsRowStore *store);

/*
 * GsTiesCallback, with the tie sorter as 'arg'.  The sort is stable.  Calls
 * comparators, which may raise errors, and checks for interrupts.
 */
extern void gpusort_tie_sorter_sort(GsKeySort *key_sort, uint64 *entries,
									uint32 count, void *arg);

/* ---- Sorting by the comparators of the sort keys: tie_comparisons.c ---- */

typedef struct GsTieComparisons GsTieComparisons;

/* Create in the current memory context, for rows in 'store'. */
extern GsTieComparisons *gpusort_tie_comparisons_create(const GsSortSpec *spec,
														const GsRowStore *store);

/*
 * Sort entries, whose low 32 bits are row numbers, by the sort keys number 'first'
 * to 'end' - 1.  The sort is stable.  'scratch' must have space for half of the
 * entries.  Calls comparators, which may raise errors, and checks for interrupts.
 */
extern void gpusort_tie_comparisons_sort(GsTieComparisons *comparisons,
										 uint64 *entries, uint32 count,
										 uint64 *scratch, int first, int end);

/*
 * After that, given the first entry of a group of rows that compared as equal:
 * the number of rows in the group.
 */
static inline uint32
gpusort_tie_comparisons_equal(uint64 entry)
{
	return (uint32) (entry >> 32);
}

/* Are the entries in order by the sort keys from number 'first' on? */
extern bool gpusort_tie_comparisons_in_order(GsTieComparisons *comparisons,
											 const uint64 *entries,
											 uint32 count, int first);

#endif							/* GPUSORT_TIE_SORTER_H */
