/*-------------------------------------------------------------------------
 *
 * merge_order.c
 *		The order of the rows that a merge compares.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/merge_order.h"

void
gpusort_merge_order_init(GsMergeOrder *order, const GsSortSpec *spec,
						 const GsKeyPlan *plan)
{
	memset(order, 0, sizeof(GsMergeOrder));
	order->words = gpusort_key_plan_words(plan);
	order->exact = gpusort_key_plan_is_exact(plan, &order->first_inexact);
	if (order->exact)
		return;
	order->comparison = gpusort_key_comparison_create(&spec->keys);
	order->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort comparisons",
										   ALLOCSET_SMALL_SIZES);
}

int
gpusort_merge_order_compare_values(const GsMergeOrder *order,
								   const Datum *left, const bool *left_isnull,
								   const Datum *right, const bool *right_isnull)
{
	MemoryContext caller = MemoryContextSwitchTo(order->scratch);
	int			cmp = gpusort_key_comparison_compare(order->comparison,
													 order->first_inexact,
													 left, left_isnull,
													 right, right_isnull);

	MemoryContextSwitchTo(caller);
	return cmp;
}

void
gpusort_merge_order_free(const GsMergeOrder *order)
{
	if (order->scratch != NULL)
		MemoryContextReset(order->scratch);
}
