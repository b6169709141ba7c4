/*-------------------------------------------------------------------------
 *
 * key_comparison.h
 *		Compares sort keys with the comparators of their sort operators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COMPARISON_H
#define GPUSORT_KEY_COMPARISON_H

#include "utils/sortsupport.h"

#include "key/key_plan.h"

/* The comparators of sort keys. */
typedef struct GsKeyComparison GsKeyComparison;

/*
 * Prepare the comparator of sort key k, counted from 0, in the current memory context.
 * All members of 'ssup' are 0, except that the caller may have set 'abbreviate'.  This may
 * raise errors, as below.
 */
extern void gpusort_key_comparison_prepare(const GsSortKeys *keys, int k,
										   SortSupport ssup);

/*
 * Prepare the comparators in the current memory context.  This may raise
 * errors that belong to the execution of a query, such as for an indeterminate
 * collation.
 */
extern GsKeyComparison *gpusort_key_comparison_create(const GsSortKeys *keys);

/*
 * Compare two rows by their sort keys 'first' to 'end' - 1.  Returns less than 0
 * if 'a' comes first, more than 0 if 'b' comes first, and 0 if the rows are ties.
 * a[k] and a_isnull[k] are the value of sort key k, counted from 0.
 */
extern int	gpusort_key_comparison_compare(const GsKeyComparison *comparison,
										   int first, int end,
										   const Datum *a, const bool *a_isnull,
										   const Datum *b, const bool *b_isnull);

#endif							/* GPUSORT_KEY_COMPARISON_H */
