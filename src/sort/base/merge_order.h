/*-------------------------------------------------------------------------
 *
 * merge_order.h
 *		The order of the rows that a merge compares.
 *
 * A loser tree compares the first words of keys by itself.  This is what decides when they
 * are equal: the other words, and then, if these are not exact, the comparators of the sort
 * operators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MERGE_ORDER_H
#define GPUSORT_MERGE_ORDER_H

#include "key/key_comparison.h"
#include "sort/base/sort_spec.h"

typedef struct GsMergeOrder
{
	unsigned	words;			/* of the keys */
	bool		exact;			/* is the encoding of all keys exact? */
	int			first_inexact;	/* number of the sort key */
	GsKeyComparison *comparison;	/* unless exact */
	MemoryContext scratch;		/* for what comparators leak; unless exact */
} GsMergeOrder;

/* Prepare the order of a sort whose keys are encoded by 'plan', in the current context. */
extern void gpusort_merge_order_init(GsMergeOrder *order, const GsSortSpec *spec,
									 const GsKeyPlan *plan);

/*
 * Compare the sort keys of two rows by the comparators.  What these leak stays until
 * gpusort_merge_order_free().
 */
extern int	gpusort_merge_order_compare_values(const GsMergeOrder *order,
											   const Datum *left, const bool *left_isnull,
											   const Datum *right, const bool *right_isnull);
extern void gpusort_merge_order_free(const GsMergeOrder *order);

/*
 * Compare two keys that have equal first words by the others.  If that does not decide,
 * returns 0.
 */
static inline int
gpusort_merge_order_compare_words(const GsMergeOrder *order, const uint64 *left,
								  const uint64 *right)
{
	for (unsigned w = 1; w < order->words; w++)
		if (left[w] != right[w])
			return left[w] < right[w] ? -1 : 1;
	return 0;
}

#endif							/* GPUSORT_MERGE_ORDER_H */
