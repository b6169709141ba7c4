/*-------------------------------------------------------------------------
 *
 * key_comparison.c
 *		Compares sort keys with the comparators of their sort operators.
 *
 * Encoded keys decide most comparisons.  The comparators decide all of them,
 * but each pair of values costs a function call.  For strings of a locale of the C
 * library, that takes some hundred nanoseconds; most of them differ in their weights,
 * which we therefore compare first.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "key/distrust.h"
#include "key/key_comparison.h"
#include "settings.h"
#include "work.h"

/* The comparator of a sort key.  They are in an array. */
struct GsKeyComparison
{
	SortSupportData ssup;
	GsKeyEncoding encoding;
	bool		descending;
};

void
gpusort_key_comparison_prepare(const GsSortKeys *keys, int k, SortSupport ssup)
{
	ssup->ssup_cxt = CurrentMemoryContext;
	ssup->ssup_collation = keys->collations[k];
	ssup->ssup_nulls_first = keys->nulls_first[k];
	ssup->ssup_attno = keys->attnos[k];
	if (keys->functions != NULL && OidIsValid(keys->functions[k]))
		PrepareSortSupportComparisonShim(keys->functions[k], ssup);
	else
		PrepareSortSupportFromOrderingOp(keys->operators[k], ssup);
}

GsKeyComparison *
gpusort_key_comparison_create(const GsSortKeys *keys)
{
	GsKeyComparison *comparison = palloc0(keys->nkeys * sizeof(GsKeyComparison));

	for (int k = 0; k < keys->nkeys; k++)
	{
		GsKeyComparison *key = &comparison[k];

		gpusort_key_comparison_prepare(keys, k, &key->ssup);
		if (gpusort_distrust_has(keys->operators[k], keys->collations[k]))
			continue;
		key->encoding = gpusort_key_encoding_find(keys->operators[k],
												  keys->collations[k],
												  &key->descending);
	}
	return comparison;
}

/* Do two values consist of the same bytes?  Returns false if they are stored elsewhere. */
static inline bool
are_same_bytes(const void *a, const void *b)
{
	return !VARATT_IS_EXTERNAL(a) && VARSIZE_ANY(a) == VARSIZE_ANY(b) &&
		memcmp(a, b, VARSIZE_ANY(a)) == 0;
}

/* Compare two values of a sort key. */
static inline int
compare_key(const GsKeyComparison *key, Datum a, bool a_isnull, Datum b, bool b_isnull)
{
	if (gpusort_key_encoding_has_weights(&key->encoding) && !a_isnull && !b_isnull)
	{
		bool		same;
		int			cmp = gpusort_key_encoding_compare_weights(&key->encoding,
															   a, b, &same);

		if (cmp != 0 || same)
			return key->descending ? -cmp : cmp;
	}
	if (key->encoding.kind == GS_ENCODE_NESTED && !a_isnull && !b_isnull &&
		are_same_bytes(DatumGetPointer(a), DatumGetPointer(b)))
		return 0;
	return ApplySortComparator(a, a_isnull, b, b_isnull, (SortSupport) &key->ssup);
}

int
gpusort_key_comparison_compare(const GsKeyComparison *comparison, int first, int end,
							   const Datum *a, const bool *a_isnull,
							   const Datum *b, const bool *b_isnull)
{
	for (int k = first; k < end; k++)
	{
		int			cmp = compare_key(&comparison[k],
									  a[k], a_isnull[k], b[k], b_isnull[k]);

		if (GPUSORT_IS_WRONG(GS_WRONG_COMPARISON) &&
			gpusort_key_encoding_has_weights(&comparison[k].encoding))
			cmp = -cmp;
		gpusort_work_add(GPUSORT_WORK_ROW);
		if (cmp != 0)
			return cmp;
	}
	return 0;
}
