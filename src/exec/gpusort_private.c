/*-------------------------------------------------------------------------
 *
 * gpusort_private.c
 *		What the plan nodes GpuSort and GpuSortSink keep in custom_private.
 *
 * That is the Sort, without children: it has all there is to know, and can be
 * copied and sent to parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/value.h"

#include "exec/gpusort_private.h"

/* What custom_private holds, by position. */
enum
{
	GS_PRIVATE_SORT,			/* the Sort, without children */
	GS_PRIVATE_REPEAT,			/* GsInputRepeat, as an Integer */
	GS_PRIVATE_COUNT
};

static Sort *
copy_childless(const Sort *sort)
{
	Sort	   *copy = makeNode(Sort);

	memcpy(copy, sort, sizeof(Sort));
	copy->plan.targetlist = NIL;
	copy->plan.lefttree = NULL;
	copy->plan.initPlan = NIL;
	return copy;
}

List *
gpusort_private_make(const Sort *sort, GsInputRepeat repeat)
{
	return list_make2(copy_childless(sort), makeInteger(repeat));
}

GsSortKeys
gpusort_private_keys_of_sort(const Sort *sort)
{
	return (GsSortKeys)
	{
		.nkeys = sort->numCols,
			.attnos = sort->sortColIdx,
			.operators = sort->sortOperators,
			.collations = sort->collations,
			.nulls_first = sort->nullsFirst
	};
}

GsSortKeys
gpusort_private_keys(const CustomScan *gpusort)
{
	Assert(list_length(gpusort->custom_private) == GS_PRIVATE_COUNT);
	return gpusort_private_keys_of_sort(list_nth_node(Sort,
													  gpusort->custom_private,
													  GS_PRIVATE_SORT));
}

GsInputRepeat
gpusort_private_repeat(const CustomScan *gpusort)
{
	return (GsInputRepeat) intVal(list_nth(gpusort->custom_private,
										   GS_PRIVATE_REPEAT));
}
