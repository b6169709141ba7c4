/*-------------------------------------------------------------------------
 *
 * tie_comparisons.h
 *		Sorts rows of a row store by the comparators of their sort keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIE_COMPARISONS_H
#define GPUSORT_TIE_COMPARISONS_H

#include "sort/base/sort_spec.h"
#include "sort/memory/row_store.h"

typedef struct GsTieComparisons GsTieComparisons;

/* Make it in the current memory context. */
extern GsTieComparisons *gpusort_tie_comparisons_create(const GsSortSpec *spec,
														const GsRowStore *store);

/*
 * Sort entries, whose low 32 bits are numbers of rows, by sort keys from number
 * 'first' to 'end' - 1.  Stable.  'scratch' has room for half of them.  Calls
 * comparators, which may raise errors, and checks for interrupts.
 */
extern void gpusort_tie_comparisons_sort(GsTieComparisons *comparisons,
										 uint64 *entries, uint32 count,
										 uint64 *scratch, int first, int end);

/* After that: how many are equal by these keys, of the first of them. */
static inline uint32
gpusort_tie_comparisons_equal(uint64 entry)
{
	return (uint32) (entry >> 32);
}

/* Are entries in the order of sort keys from number 'first' on? */
extern bool gpusort_tie_comparisons_in_order(GsTieComparisons *comparisons,
											 const uint64 *entries,
											 uint32 count, int first);

#endif							/* GPUSORT_TIE_COMPARISONS_H */
