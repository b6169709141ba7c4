/*-------------------------------------------------------------------------
 *
 * limit_bound.c
 *		Determines how many of a sort's rows a Limit above it wants.
 *
 * The executor passes the bound of a Limit down through certain nodes to the
 * Sorts below (see ExecSetTupleBound()), but not to custom nodes.  At planning
 * time, the search for sorts follows the same path through the plan, with the
 * constants of LIMIT and OFFSET.  Other values are known only when the Limit
 * reads its first row, and may change each time it is rescanned.  So each
 * GpuSort is told of its Limit when the execution starts (see limit_hooks.c),
 * and asks here when it is about to read its input.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/limit_bound.h"

/*
 * The greatest part of the rows for which a sort stays stock, if it is known when
 * the query is planned.
 */
#define BOUND_PART_OF_ROWS	0.02

double
gpusort_limit_bound_estimate(const Node *count, const Node *offset,
							 LimitOption option)
{
	const Node *parts[] = {count, offset};
	double		bound = 0;

	if (count == NULL || option == LIMIT_OPTION_WITH_TIES)
		return GPUSORT_NO_BOUND;
	for (int i = 0; i < lengthof(parts); i++)
	{
		const		Const *part = (const Const *) parts[i];

		if (part == NULL)
			continue;
		if (!IsA(part, Const))
			return GPUSORT_UNKNOWN_BOUND;
		if (!part->constisnull)
			bound += (double) DatumGetInt64(part->constvalue);
		else if (i == 0)
			return GPUSORT_NO_BOUND;	/* LIMIT NULL is no limit */
	}
	return bound;
}

bool
gpusort_limit_bound_passes(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_MergeAppend:
		case T_Result:
		case T_Gather:
		case T_GatherMerge:
			return true;
		case T_SubqueryScan:
			return plan->qual == NIL;
		default:
			return false;
	}
}

int64
gpusort_limit_bound_now(const LimitState *limit)
{
	if (limit->noCount || limit->limitOption == LIMIT_OPTION_WITH_TIES ||
		limit->count > PG_INT64_MAX - limit->offset)
		return -1;
	return limit->count + limit->offset;
}

bool
gpusort_limit_bound_is_small(double bound, double rows)
{
	return bound >= 0 && bound < rows * BOUND_PART_OF_ROWS;
}
