/*-------------------------------------------------------------------------
 *
 * sort_eligibility.c
 *		Determines which sorts of a plan are taken over.
 *
 * No sort may become slower than in stock PostgreSQL.  So small sorts, and
 * sorts of which a LIMIT wants few rows, stay as they are.  Sorts that
 * will not fit in memory are taken over, because writing sorted runs and
 * merging them is also faster here, whatever the size of memory.  Sorts of
 * rows that come in order already, however, cost stock PostgreSQL little more
 * than copying them.  These are taken over only if that is expected to gain.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "optimizer/optimizer.h"

#include "exec/gpusort_private.h"
#include "exec/limit_bound.h"
#include "plan/pathkey_encoding.h"
#include "plan/row_cost.h"
#include "plan/row_order.h"
#include "plan/sort_eligibility.h"
#include "settings.h"

/* An IncrementalSort of groups with fewer rows stays stock. */
#define FEWEST_GROUP_ROWS	50

/* The questions that need no catalogs. */
static GsFallback
reason_of_rows(double rows, double bound)
{
	if (!gpusort_enable)
		return GS_FALLBACK_DISABLED;
	if (rows < gpusort_min_rows)
		return GS_FALLBACK_FEW_ROWS;
	if (gpusort_limit_bound_is_small(bound, rows))
		return GS_FALLBACK_LIMIT;
	return GS_FALLBACK_NONE;
}

GsFallback
gpusort_eligibility_of_path(const Path *input, List *pathkeys, double bound,
							GsKeyShape *shape)
{
	GsFallback	reason = reason_of_rows(input->rows, bound);

	if (reason == GS_FALLBACK_NONE &&
		!gpusort_pathkey_encoding_find(pathkeys, input->parent->relids, shape))
		reason = GS_FALLBACK_TYPE;
	return reason;
}

/* Sets *shape if the keys have one.  Otherwise returns the reason. */
static GsFallback
reason_of_keys(const GsSortKeys *keys, GsKeyShape *shape)
{
	GsFallback	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(keys, 1, &reason);

	*shape = gpusort_key_plan_shape(plan);
	gpusort_key_plan_free(plan);
	return reason;
}

/*
 * Is a GpuSort faster?  The statistics are looked up only if it would not be
 * for rows in order.  With pg_gpusort.min_rows = 0, sorts are not taken over
 * for their speed, and neither are those for which PostgreSQL's own sort may give another
 * order than its comparisons.
 */
static bool
gains(const Sort *sort, const PlannedStmt *statement,
	  const GsSortCandidate *candidate, const GsKeyShape *shape)
{
	if (gpusort_min_rows == 0 || shape->compared ||
		(gpusort_row_cost_gains(candidate, shape, GS_ROWS_IN_ORDER) &&
		 gpusort_row_cost_gains(candidate, shape, GS_ROWS_REVERSED)))
		return true;
	return gpusort_row_cost_gains(candidate, shape,
								  gpusort_row_order(sort, statement));
}

GsFallback
gpusort_eligibility_of_sort(const Sort *sort, double bound,
							const PlannedStmt *statement,
							GsSortCandidate *candidate)
{
	GsFallback	reason = reason_of_rows(sort->plan.plan_rows, bound);
	GsSortKeys	keys = gpusort_private_keys_of_sort(sort);
	GsKeyShape	shape;

	if (reason == GS_FALLBACK_NONE)
		reason = reason_of_keys(&keys, &shape);
	if (reason != GS_FALLBACK_NONE)
		return reason;
	*candidate = gpusort_sort_candidate_of_plan(sort, bound, statement);
	return gains(sort, statement, candidate, &shape) ?
		GS_FALLBACK_NONE : GS_FALLBACK_NO_GAIN;
}

/*
 * Returns how many rows the planner expects in a group of an IncrementalSort.  The
 * plan does not have that number.  It follows from the costs that PostgreSQL's
 * cost_incremental_sort() has computed of it: without a LIMIT, the total cost is
 * the startup cost once per group, and some costs per row and per group.
 */
static double
rows_of_group(const IncrementalSort * sort)
{
	const Plan *plan = &sort->sort.plan;
	Cost		input_startup = plan->lefttree->startup_cost;
	double		rows = plan->plan_rows;
	Cost		per_group = plan->startup_cost - input_startup +
		2 * cpu_tuple_cost;
	Cost		groups = plan->total_cost - input_startup -
		rows * (1.5 * cpu_operator_cost + cpu_tuple_cost);

	return groups > per_group ? rows * per_group / groups : rows;
}

/*
 * Small groups stay stock: PostgreSQL sorts a few of them at a time with all keys,
 * which are nearly in order then, and that is as fast.
 */
GsFallback
gpusort_eligibility_of_incremental_sort(const IncrementalSort * sort,
										double bound)
{
	GsFallback	reason = reason_of_rows(sort->sort.plan.plan_rows, bound);
	GsSortKeys	keys = gpusort_private_keys_of_sort(&sort->sort);
	GsKeyShape	shape;

	if (reason == GS_FALLBACK_NONE)
		reason = reason_of_keys(&keys, &shape);
	if (reason != GS_FALLBACK_NONE || gpusort_min_rows == 0)
		return reason;

	/* A LIMIT whose value is not known yet is probably small. */
	if (bound == GPUSORT_UNKNOWN_BOUND)
		return GS_FALLBACK_LIMIT;
	return rows_of_group(sort) < FEWEST_GROUP_ROWS ?
		GS_FALLBACK_NO_GAIN : GS_FALLBACK_NONE;
}
