/*-------------------------------------------------------------------------
 *
 * key_comparison.h
 *		Compares sort keys by the comparators of their sort operators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COMPARISON_H
#define GPUSORT_KEY_COMPARISON_H

#include "key/key_plan.h"

typedef struct GsKeyComparison GsKeyComparison;

/*
 * Prepare the comparators in the current memory context.  May raise errors
 * that belong to the execution of a query, as that of a collation that could
 * not be determined.
 */
extern GsKeyComparison *gpusort_key_comparison_create(const GsSortKeys *keys);

/*
 * Compare two rows by their sort keys from number 'first' on, from 0: less than
 * 0 if 'a' goes first, 0 if either may, more than 0 if 'b' goes first.  a[k] and
 * a_isnull[k] are the value of sort key k.
 */
extern int	gpusort_key_comparison_compare(const GsKeyComparison *comparison,
										   int first,
										   const Datum *a, const bool *a_isnull,
										   const Datum *b, const bool *b_isnull);

/* The same by sort keys 'first' to 'end' - 1. */
extern int	gpusort_key_comparison_compare_some(const GsKeyComparison *comparison,
												int first, int end,
												const Datum *a,
												const bool *a_isnull,
												const Datum *b,
												const bool *b_isnull);

#endif							/* GPUSORT_KEY_COMPARISON_H */
