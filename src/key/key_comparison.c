/*-------------------------------------------------------------------------
 *
 * key_comparison.c
 *		Compares sort keys with the comparators of their sort operators.
 *
 * Encoded keys decide most comparisons.  The comparators decide all of them,
 * but each pair of values costs a function call.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/sortsupport.h"

#include "key/key_comparison.h"
#include "work.h"

struct GsKeyComparison
{
	int			nkeys;
	SortSupportData ssup[FLEXIBLE_ARRAY_MEMBER];
};

GsKeyComparison *
gpusort_key_comparison_create(const GsSortKeys *keys)
{
	GsKeyComparison *comparison =
		palloc0(offsetof(GsKeyComparison, ssup) +
				keys->nkeys * sizeof(SortSupportData));

	comparison->nkeys = keys->nkeys;
	for (int k = 0; k < keys->nkeys; k++)
	{
		SortSupport ssup = &comparison->ssup[k];

		ssup->ssup_cxt = CurrentMemoryContext;
		ssup->ssup_collation = keys->collations[k];
		ssup->ssup_nulls_first = keys->nulls_first[k];
		ssup->ssup_attno = keys->attnos[k];
		PrepareSortSupportFromOrderingOp(keys->operators[k], ssup);
	}
	return comparison;
}

int
gpusort_key_comparison_compare_some(const GsKeyComparison *comparison,
									int first, int end,
									const Datum *a, const bool *a_isnull,
									const Datum *b, const bool *b_isnull)
{
	for (int k = first; k < end; k++)
	{
		int			cmp = ApplySortComparator(a[k], a_isnull[k], b[k], b_isnull[k],
											  (SortSupport) &comparison->ssup[k]);

		gpusort_work_add(GPUSORT_WORK_ROW);
		if (cmp != 0)
			return cmp;
	}
	return 0;
}

int
gpusort_key_comparison_compare(const GsKeyComparison *comparison, int first,
							   const Datum *a, const bool *a_isnull,
							   const Datum *b, const bool *b_isnull)
{
	return gpusort_key_comparison_compare_some(comparison, first,
											   comparison->nkeys,
											   a, a_isnull, b, b_isnull);
}
