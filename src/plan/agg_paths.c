/*-------------------------------------------------------------------------
 *
 * agg_paths.c
 *		Adds paths over sorts in the order that aggregates want.
 *
 * PostgreSQL 15 lets aggregates with DISTINCT or ORDER BY sort by themselves,
 * and all versions do for ordered-set aggregates.  The planner does not charge
 * for these sorts, so a path that makes them superfluous would never win.  The
 * comparison with the planner's best path therefore adds what they cost.  A
 * path that wins is charged a little less than the planner's best.  Nothing is added to
 * a path whose aggregates do not sort here, such as one of a foreign server.
 *
 * Several processes put their rows into the sort if that is cheaper, as for the
 * final ORDER BY.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"

#include "plan/agg_order.h"
#include "plan/agg_paths.h"
#include "plan/sort_cost.h"

/*
 * Make a path compute the expressions that aggregates sort by, if it does not
 * yet.  Otherwise the planner would compute them above a Gather, and sinks
 * could not take the rows.
 */
static Path *
compute_exprs(PlannerInfo *root, RelOptInfo *input_rel, Path *input,
			  const List *exprs)
{
	PathTarget *target = copy_pathtarget(input->pathtarget);
	ListCell   *lc;

	foreach(lc, exprs)
		if (!IsA(lfirst(lc), Const))
		add_new_column_to_pathtarget(target, lfirst(lc));
	if (list_length(target->exprs) == list_length(input->pathtarget->exprs))
		return input;
	set_pathtarget_cost_width(root, target);
	return (Path *) create_projection_path(root, input_rel, input, target);
}

/* Make a sort of the input in one process, or by several if that is cheaper. */
static Path *
cheapest_sort(PlannerInfo *root, RelOptInfo *input_rel,
			  RelOptInfo *grouped_rel, const GsAggOrder *order)
{
	Path	   *input = compute_exprs(root, input_rel,
									  input_rel->cheapest_total_path,
									  order->exprs);
	Path	   *partial = gpusort_cost_partial_path(input_rel);

	if (partial != NULL && is_parallel_safe(root, (Node *) order->exprs))
		partial = compute_exprs(root, input_rel, partial, order->exprs);
	else
		partial = NULL;
	return gpusort_cost_cheapest_sort_path(root, grouped_rel, input_rel, input,
										   partial, order->pathkeys);
}

/* Make an Agg over a sort. */
static Path *
agg_path(PlannerInfo *root, RelOptInfo *grouped_rel, Path *sort,
		 GroupPathExtraData *extra, double groups)
{
	AggClauseCosts costs = {0};
	Path	   *path;

	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);

	/*
	 * If all columns of GROUP BY are constant, 16 and later have none left in
	 * the list of those to compare.  Without rows there is no group even so.
	 */
	path = (Path *) create_agg_path(root, grouped_rel, sort,
									grouped_rel->reltarget,
									root->parse->groupClause != NIL ?
									AGG_SORTED : AGG_PLAIN,
									AGGSPLIT_SIMPLE,
									GPUSORT_GROUP_CLAUSE(root),
									(List *) extra->havingQual, &costs,
									groups);

	/* The order within a group is not that of the groups. */
	if (path->pathkeys != NIL)
		path->pathkeys = list_truncate(list_copy(path->pathkeys),
									   GPUSORT_GROUPBY_PATHKEYS(root));
	return path;
}

/*
 * Do the aggregates of a path sort here?  Those that a foreign server or another extension
 * computes do not, as far as we know.  Of an Append, such as one of partitions, all inputs
 * have to.
 */
static bool
sorts_by_itself(const Path *path)
{
	const List *inputs = NIL;
	ListCell   *lc;

	check_stack_depth();

	switch (nodeTag(path))
	{
		case T_AggPath:
			return true;
		case T_ProjectionPath:
			return sorts_by_itself(((const ProjectionPath *) path)->subpath);
		case T_GatherPath:
			return sorts_by_itself(((const GatherPath *) path)->subpath);
		case T_AppendPath:
			inputs = ((const AppendPath *) path)->subpaths;
			break;
		case T_MergeAppendPath:
			inputs = ((const MergeAppendPath *) path)->subpaths;
			break;
		default:
			return false;
	}
	foreach(lc, inputs)
		if (!sorts_by_itself(lfirst(lc)))
		return false;
	return inputs != NIL;
}

void
gpusort_agg_paths_add(PlannerInfo *root, RelOptInfo *input_rel,
					  RelOptInfo *grouped_rel, GroupPathExtraData *extra,
					  double groups)
{
	Path	   *input = input_rel->cheapest_total_path;
	Path	   *sort;
	Path	   *path;
	Path	   *best;
	GsAggOrder	order;

	if (!root->parse->hasAggs || root->parse->groupingSets != NIL ||
		(extra->flags & GROUPING_CAN_USE_SORT) == 0 ||
		grouped_rel->reloptkind != RELOPT_UPPER_REL ||
		grouped_rel->pathlist == NIL ||
		!gpusort_agg_order_find(root, input->rows, groups, &order) ||
		pathkeys_contained_in(order.pathkeys, input->pathkeys))
		return;
	best = linitial(grouped_rel->pathlist);
	if (!sorts_by_itself(best))
		order.own_sorts = 0;
	sort = cheapest_sort(root, input_rel, grouped_rel, &order);
	if (sort == NULL)
		return;
	path = agg_path(root, grouped_rel, sort, extra, groups);
	if (path->total_cost >= best->total_cost + order.own_sorts)
		return;
	if (order.own_sorts > 0)
		gpusort_cost_prefer_sort(path, sort, best->total_cost);
	add_path(grouped_rel, path);
}
