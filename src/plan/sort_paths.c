/*-------------------------------------------------------------------------
 *
 * sort_paths.c
 *		Adds paths over sorts at GpuSort's cost for the planner, above joins.
 *
 * Swapping Sorts in finished plans speeds up only those sorts that the planner
 * chose at stock PostgreSQL's cost.  This adds paths over sorts at GpuSort's
 * cost for the final ORDER BY, for groups and for DISTINCT; those for windows and
 * set operations are in window_paths.c and setop_paths.c.  A
 * sort can then win against an index scan, a hash table or a Gather Merge
 * where it is the faster way.  The paths have the same shape as those that the
 * planner makes itself, except that a sort can be over a Gather, if it is cheaper
 * for several processes to sort together.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_statistic_ext.h"
#include "foreign/fdwapi.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

#include "exec/limit_bound.h"
#include "loading.h"
#include "plan/key_values.h"
#include "plan/sort_cost.h"
#include "plan/sort_eligibility.h"
#include "plan/sort_paths.h"
#include "settings.h"
#include "sort/gpu/gpu_session.h"

static create_upper_paths_hook_type prev_create_upper_paths_hook = NULL;

static const Path *
without_projection(const Path *path)
{
	return IsA(path, ProjectionPath) ?
		((const ProjectionPath *) path)->subpath : path;
}

/*
 * Is this a foreign scan that can be asynchronous?  The planner looks at the same when it
 * makes the plan.
 */
static bool
is_async_scan(Path *path)
{
	const FdwRoutine *routine = path->parent->fdwroutine;

	return IsA(path, ForeignPath) && routine != NULL &&
		routine->IsForeignPathAsyncCapable != NULL &&
		routine->IsForeignPathAsyncCapable((ForeignPath *) path);
}

/*
 * Is this an Append that scans tables of several servers asynchronously?  Each server prepares
 * rows while those of another one are read.  A MergeAppend of rows that the servers have sorted
 * waits for the first row of each server, and so for the whole sort there, before it asks the
 * next one.
 */
static bool
is_async_append(const Path *path)
{
	const AppendPath *append = (const AppendPath *) without_projection(path);
	Oid			first = InvalidOid;
	ListCell   *lc;

	if (!enable_async_append || !IsA(append, AppendPath) ||
		append->path.parallel_safe || append->path.pathkeys != NIL)
		return false;
	foreach(lc, append->subpaths)
	{
		Path	   *input = unconstify(Path *, without_projection(lfirst(lc)));

		if (!is_async_scan(input))
			continue;
		/* Tables of one server are scanned one after the other. */
		if (OidIsValid(first) && input->parent->serverid != first)
			return true;
		first = input->parent->serverid;
	}
	return false;
}

/* Add a sort, or do nothing if it is NULL. */
static void
add_ordered_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *sort)
{
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];

	if (sort == NULL)
		return;
	if (sort->pathtarget != target)
		sort = apply_projection_to_path(root, ordered_rel, sort, target);
	add_path(ordered_rel, sort);
}

/*
 * Is the planner's best path a Gather Merge over sorts of each process?  These
 * sorts are swapped, too, which is better than one sort of all rows in one
 * process.  The costs say otherwise, because a Gather Merge is charged too
 * much for its queues.
 */
static bool
sorts_in_parallel(const RelOptInfo *ordered_rel)
{
	const Path *best = without_projection(linitial(ordered_rel->pathlist));

	return IsA(best, GatherMergePath);
}

/*
 * Does the planner's best path merge what foreign servers have sorted, one after the other,
 * where they could send all of their rows at the same time?  If the server does not tell what
 * its sort costs, the planner charges a fifth more for sorted rows, which is far too little.
 */
static bool
waits_for_servers(const PlannerInfo *root, const RelOptInfo *ordered_rel,
				  const Path *input)
{
	const Path *best = without_projection(linitial(ordered_rel->pathlist));

	return IsA(best, MergeAppendPath) && root->tuple_fraction <= 0 &&
		is_async_append(input);
}

/* Returns how many rows a relation has, from one of its paths. */
static double
rows_of(const RelOptInfo *rel)
{
	return rel->pathlist == NIL ? 0 : ((const Path *) linitial(rel->pathlist))->rows;
}

static bool
has_gather_merge(const RelOptInfo *ordered_rel)
{
	ListCell   *lc;

	foreach(lc, ordered_rel->pathlist)
		if (IsA(without_projection(lfirst(lc)), GatherMergePath))
		return true;
	return false;
}

/* Has the planner put a Sort on a path?  That may have been freed. */
static bool
is_sorted_by_planner(const RelOptInfo *ordered_rel, const Path *input)
{
	ListCell   *lc;

	foreach(lc, ordered_rel->pathlist)
	{
		const Path *path = without_projection(lfirst(lc));

		if ((IsA(path, SortPath) || IsA(path, IncrementalSortPath)) &&
			((const SortPath *) path)->subpath == input)
			return true;
	}
	return false;
}

/*
 * Returns the cheapest path of the input if it is known not to be sorted, or else NULL.  A path
 * that is sorted has become one of 'ordered_rel'.  There, a Gather Merge that is better has it
 * freed.
 */
static Path *
unsorted_input(const PlannerInfo *root, const RelOptInfo *input_rel,
			   const RelOptInfo *ordered_rel)
{
	Path	   *input = input_rel->cheapest_total_path;

	if (has_gather_merge(ordered_rel))
		return is_sorted_by_planner(ordered_rel, input) ? input : NULL;
	return pathkeys_contained_in(root->sort_pathkeys, input->pathkeys) ? NULL : input;
}

/*
 * Returns how many sorted rows the query wants, as far as that is known.  The planner's
 * limit_tuples is for queries without groups, windows and DISTINCT.
 */
static double
rows_wanted(const PlannerInfo *root)
{
	const Query *query = root->parse;
	double		bound = gpusort_limit_bound_estimate(query->limitCount, query->limitOffset,
													 query->limitOption);

	return query->hasTargetSRFs || bound < 0 ? GPUSORT_NO_BOUND : bound;
}

/* Make a sort of the input in one process, or return NULL. */
static Path *
serial_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *input)
{
	Path	   *sort = gpusort_cost_sort_path(root, ordered_rel, input,
											  root->sort_pathkeys,
											  rows_wanted(root));
	Path	   *const sorts[2] = {sort, NULL};

	if (sort != NULL && waits_for_servers(root, ordered_rel, input))
		gpusort_cost_prefer_sort(sort, sorts, linitial(ordered_rel->pathlist));
	return sort;
}

static void
add_ordered_paths(PlannerInfo *root, RelOptInfo *input_rel,
				  RelOptInfo *ordered_rel)
{
	Path	   *input = unsorted_input(root, input_rel, ordered_rel);
	List	   *pathkeys = root->sort_pathkeys;
	Path	   *partial = gpusort_cost_partial_path(input_rel);
	Path	   *parallel = NULL;
	bool		gpu = gpusort_gpu_session_check(rows_of(ordered_rel), false) == GS_REASON_NONE;

	if (pathkeys == NIL || root->upper_targets[UPPERREL_ORDERED] == NULL ||
		(input == NULL && !has_gather_merge(ordered_rel)))
		return;
	if (ordered_rel->consider_parallel && partial != NULL &&
		!pathkeys_contained_in(pathkeys, partial->pathkeys))
		parallel = gpusort_cost_parallel_sort_path(root, ordered_rel, partial,
												   rows_of(ordered_rel), pathkeys,
												   rows_wanted(root));
	if (input != NULL && ((parallel != NULL && gpu) || !sorts_in_parallel(ordered_rel)))
		add_ordered_path(root, ordered_rel,
						 serial_path(root, ordered_rel, input));
	add_ordered_path(root, ordered_rel, parallel);
}

/* Returns how many groups the planner expects of GROUP BY in total. */
static double
number_of_groups(PlannerInfo *root, const Path *input, RelOptInfo *grouped_rel,
				 GroupPathExtraData *extra)
{
	ListCell   *lc;

	/* If there is a path already, it has the estimate. */
	foreach(lc, grouped_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (IsA(path, AggPath))
			return ((AggPath *) path)->numGroups;
	}
	return estimate_num_groups(root,
							   get_sortgrouplist_exprs(GPUSORT_GROUP_CLAUSE(root),
													   extra->targetList),
							   input->rows, NULL, NULL);
}

/*
 * Are there extended statistics (CREATE STATISTICS) on the number of groups by
 * these expressions?
 */
static bool
has_statistics_of_groups(PlannerInfo *root, const List *exprs)
{
	Bitmapset  *columns = NULL;
	int			relid = 0;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		const Var  *var = lfirst(lc);

		if (!IsA(var, Var) || var->varlevelsup > 0 || var->varattno <= 0 ||
			(relid != 0 && var->varno != relid))
			return false;
		relid = var->varno;
		columns = bms_add_member(columns, var->varattno);
	}
	if (relid <= 0 || relid >= root->simple_rel_array_size ||
		root->simple_rel_array[relid] == NULL)
		return false;
	foreach(lc, root->simple_rel_array[relid]->statlist)
	{
		StatisticExtInfo *info = lfirst_node(StatisticExtInfo, lc);

		if (info->kind == STATS_EXT_NDISTINCT &&
			bms_is_subset(columns, info->keys))
			return true;
	}
	return false;
}

/*
 * Returns how many of the groups that the planner expects are certain.  The
 * planner multiplies the numbers of distinct values of the columns, up to a
 * tenth of the table.  If the columns depend on each other, the result is far
 * too high.  There are at least as many groups as distinct values of any one
 * column.
 */
static double
certain_groups(PlannerInfo *root, const List *exprs, double rows,
			   double expected)
{
	double		groups = 1;
	ListCell   *lc;

	if (has_statistics_of_groups(root, exprs))
		return expected;
	foreach(lc, exprs)
	{
		List	   *single = list_make1(lfirst(lc));

		groups = Max(groups,
					 estimate_num_groups(root, single, rows, NULL, NULL));
	}
	return Min(groups, expected);
}

/*
 * Is a path over a sort worth adding, if 'best' is the planner's best path?  Its cost is
 * lowered if that is a hash table which costs more than the planner charges.
 */
static bool
prefer_to_hash_table(PlannerInfo *root, Path *path, Path *sort, Path *best,
					 const AggClauseCosts *costs)
{
	AggPath    *agg = (AggPath *) best;
	List	   *exprs;

	if (!IsA(best, AggPath) || agg->aggstrategy != AGG_HASHED ||
		agg->aggsplit != AGGSPLIT_SIMPLE)
		return true;
	exprs = get_sortgrouplist_exprs(agg->groupClause, root->processed_tlist);
	return gpusort_cost_prefer_to_agg(root, path, sort, agg, costs,
									  certain_groups(root, exprs,
													 agg->subpath->rows,
													 agg->numGroups));
}

/* Returns the keys of groups or of DISTINCT in the best order, if nobody asks for one. */
static List *
order_group_keys(PlannerInfo *root, const GsSortedNode *node)
{
	if (root->sort_pathkeys != NIL || root->window_pathkeys != NIL)
		return node->pathkeys;
	return gpusort_key_values_order(root, node->rel, node->pathkeys, node->input->rows);
}

static Path *
make_group(const GsSortedNode *node, Path *sort, double part)
{
	PlannerInfo *root = node->root;
	double		groups = clamp_row_est(node->groups * part);
	List	   *clause = GPUSORT_GROUP_CLAUSE(root);
	List	   *having = (List *) ((const GroupPathExtraData *) node->extra)->havingQual;
	AggClauseCosts costs = {0};
	Path	   *path;

	if (!root->parse->hasAggs)
		return (Path *) create_group_path(root, node->rel, sort, clause, having, groups);
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	costs.transCost.per_tuple -= node->computed;

	/*
	 * If all columns of GROUP BY are constant, 16 and later have none left in
	 * the list of those to compare.  Without rows there is no group even so.
	 */
	path = (Path *) create_agg_path(root, node->rel, sort, node->rel->reltarget,
									root->parse->groupClause != NIL ? AGG_SORTED : AGG_PLAIN,
									AGGSPLIT_SIMPLE, clause, having, &costs, groups);

	/* The order within a group is not that of the groups. */
	if (path->pathkeys != NIL)
		path->pathkeys = list_truncate(list_copy(path->pathkeys), GPUSORT_GROUPBY_PATHKEYS(root));
	return path;
}

/* May a path sort the rows of GROUP BY?  Only if it is for all rows and not for a partition. */
static bool
may_sort_groups(const RelOptInfo *grouped_rel, const GroupPathExtraData *extra)
{
	return (extra->flags & GROUPING_CAN_USE_SORT) != 0 &&
		grouped_rel->reloptkind == RELOPT_UPPER_REL && grouped_rel->pathlist != NIL;
}

/* Do all grouping sets of a path have a column? */
static bool
is_in_all_sets(const GroupingSetsPath * sets, Index ref)
{
	ListCell   *lc;
	ListCell   *set;
	ListCell   *column;

	foreach(lc, sets->rollups)
	{
		const		RollupData *rollup = lfirst_node(RollupData, lc);

		foreach(set, rollup->gsets)
		{
			bool		found = false;

			foreach(column, (List *) lfirst(set))
				found |= list_nth_node(SortGroupClause, rollup->groupClause,
									   lfirst_int(column))->tleSortGroupRef == ref;
			if (!found)
				return false;
		}
	}
	return true;
}

/*
 * Returns by how many columns the sort of the rows of grouping sets can be divided: those that
 * lead it, and that all sets have.  It is the sort of the first rollup.
 */
static int
count_common_columns(const GroupingSetsPath * sets)
{
	const		RollupData *first = linitial_node(RollupData, sets->rollups);
	int			common = 0;
	ListCell   *lc;

	foreach(lc, first->groupClause)
	{
		if (!is_in_all_sets(sets, lfirst_node(SortGroupClause, lc)->tleSortGroupRef))
			break;
		common++;
	}
	return common;
}

/* Returns the planner's path that computes grouping sets of sorted rows, or NULL. */
static const GroupingSetsPath *
sorted_sets(const RelOptInfo *grouped_rel)
{
	ListCell   *lc;

	foreach(lc, grouped_rel->pathlist)
	{
		const		GroupingSetsPath *path = lfirst(lc);

		if (IsA(path, GroupingSetsPath) && path->aggstrategy == AGG_SORTED)
			return path;
	}
	return NULL;
}

/* Copy such a path to all rows, or to those of one process. */
static Path *
make_sets(const GsSortedNode *node, Path *sort, double part)
{
	const		GroupingSetsPath *sets = node->extra;
	GroupingSetsPath *copy = makeNode(GroupingSetsPath);

	*copy = *sets;
	copy->subpath = sort;
	copy->path.parallel_safe = sort->parallel_safe;
	copy->path.parallel_workers = sort->parallel_workers;
	copy->path.rows = clamp_row_est(sets->path.rows * part);
	copy->path.startup_cost = sort->startup_cost;
	copy->path.total_cost = sort->total_cost +
		(sets->path.total_cost - sets->subpath->total_cost) * part;
	GPUSORT_MOVE_DISABLED_NODES(&copy->path, sets->subpath, sort);
	return &copy->path;
}

/* Describe the node for GROUP BY, or for aggregates without it. */
static GsSortedNode
group_node(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
		   GroupPathExtraData *extra)
{
	GsSortedNode node = gpusort_sorted_node(root, grouped_rel, input_rel,
											root->group_pathkeys, 0, 0);

	/* Not those of aggregates with an order, nor those of grouping sets. */
	if (root->distinct_pathkeys == NIL && root->parse->groupingSets == NIL &&
		list_length(node.pathkeys) == GPUSORT_GROUPBY_PATHKEYS(root))
		node.pathkeys = order_group_keys(root, &node);
	node.row_cost = GPUSORT_GROUP_ROW_COST;
	node.groups = GPUSORT_GROUP_CLAUSE(root) == NIL ? 1 :
		number_of_groups(root, node.input, grouped_rel, extra);
	node.make = make_group;
	node.extra = extra;
	if (node.partial != NULL && node.may_divide)
		node.columns = gpusort_divided_group_columns(root, grouped_rel, node.partial,
													 node.pathkeys);
	return node;
}

/*
 * Add a path that groups rows which are sorted in one process, or by several together.  If it is
 * the best one, returns how much more it takes than it is charged.
 */
static Cost
add_group_path(const GsSortedNode *node)
{
	PlannerInfo *root = node->root;
	AggClauseCosts costs = {0};
	Path	   *best = linitial(node->rel->pathlist);
	Path	   *sort;
	Path	   *path;
	Cost		more;

	if (node->pathkeys == NIL || GPUSORT_GROUP_CLAUSE(root) == NIL ||
		pathkeys_contained_in(node->pathkeys, node->input->pathkeys))
		return 0;
	path = gpusort_sorted_node_path(node, &sort);
	if (path == NULL)
		return 0;
	if (root->parse->hasAggs)
		get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	more = path->total_cost;
	if (!prefer_to_hash_table(root, path, sort, best, &costs))
		return 0;
	more = path->total_cost < best->total_cost ? more - path->total_cost : 0;
	add_path(node->rel, path);
	return more;
}

/*
 * Add a path for grouping sets, as the planner has one of sorted rows, over a sort of several
 * processes, or over a divided one.
 */
static void
add_path_of_sets(GsSortedNode *node, const GroupingSetsPath * sets)
{
	Path	   *sort;

	/* Without a column that equals another one or a constant. */
	if (sets == NULL ||
		list_length(linitial_node(RollupData, sets->rollups)->groupClause) !=
		list_length(node->pathkeys))
		return;
	node->columns = count_common_columns(sets);
	node->groups = sets->path.rows;
	node->make = make_sets;
	node->extra = unconstify(GroupingSetsPath *, sets);
	gpusort_sorted_node_add(node, gpusort_sorted_node_path(node, &sort), 0,
							linitial(node->rel->pathlist));
}

static void
add_group_paths(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *grouped_rel,
				GroupPathExtraData *extra)
{
	GsSortedNode node;
	Cost		more;

	if (!may_sort_groups(grouped_rel, extra))
		return;
	node = group_node(root, input_rel, grouped_rel, extra);
	if (root->parse->groupingSets != NIL)
	{
		add_path_of_sets(&node, sorted_sets(grouped_rel));
		return;
	}
	more = add_group_path(&node);
	if (!gpusort_agg_paths_add(&node))
		gpusort_sorted_node_divide(&node, linitial(grouped_rel->pathlist), more);
}

static void
add_distinct_path(PlannerInfo *root, RelOptInfo *input_rel,
				  RelOptInfo *distinct_rel)
{
	Path	   *best = linitial(distinct_rel->pathlist);
	List	   *pathkeys = root->distinct_pathkeys;
	GsSortedNode node = gpusort_sorted_node(root, distinct_rel, input_rel, pathkeys,
											list_length(pathkeys), best->rows);
	Path	   *path = NULL;
	Path	   *sort;
	Cost		more = 0;

	if (pathkeys == NIL ||
		!grouping_is_sortable(root->parse->distinctClause))
		return;
	/* For DISTINCT ON, which returns the first row by ORDER BY. */
	if (pathkeys_contained_in(pathkeys, root->sort_pathkeys))
		node.pathkeys = root->sort_pathkeys;
	else if (!root->parse->hasDistinctOn)
		node.pathkeys = order_group_keys(root, &node);
	if (!pathkeys_contained_in(node.pathkeys, node.input->pathkeys))
	{
		path = gpusort_sorted_node_path(&node, &sort);
		if (path == NULL)
			return;
		more = path->total_cost;
		if (!prefer_to_hash_table(root, path, sort, best, NULL))
			path = NULL;
		else
			more -= path->total_cost;
	}
	gpusort_sorted_node_add(&node, path, more, best);
}

/*
 * Charge a path above a table, or a scan of it, what the scan of a whole index and an Incremental
 * Sort above it take.  Returns how much more that is than the planner charges.
 */
static Cost
correct_cost(const PlannerInfo *root, Path *path)
{
	Cost		more;

	if (path == NULL || IsA(path, SubqueryScanPath))
		return 0;
	if (IsA(path, IndexPath))
		more = gpusort_cost_index_scan(root, path) - path->total_cost;
	else
	{
		Cost		sort = 0;

		if (IsA(path, IncrementalSortPath))
			sort = gpusort_incremental_sort_cost(path) -
				(path->total_cost - gpusort_path_input(path)->total_cost);
		more = correct_cost(root, gpusort_path_input(path)) + Max(sort, 0);
	}
	path->total_cost += more;
	path->startup_cost = Min(path->startup_cost, path->total_cost);
	return more;
}

static int
compare_costs(const ListCell *a, const ListCell *b)
{
	return compare_path_costs(lfirst(a), lfirst(b), TOTAL_COST);
}

/* Correct the cost of the cheapest path of a relation above a table, and of its partial path. */
static void
correct_costs(const PlannerInfo *root, const RelOptInfo *input_rel, RelOptInfo *rel)
{
	if (!IS_SIMPLE_REL(input_rel) || input_rel->rtekind != RTE_RELATION || rel->pathlist == NIL)
		return;
	if (correct_cost(root, linitial(rel->pathlist)) > 0)
		list_sort(rel->pathlist, compare_costs);
	(void) correct_cost(root, gpusort_cost_partial_path(input_rel));
}

static void
add_upper_paths(PlannerInfo *root, UpperRelationKind stage,
				RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	if (prev_create_upper_paths_hook)
		prev_create_upper_paths_hook(root, stage, input_rel, output_rel,
									 extra);
	if (!gpusort_loading_is_wanted() || !gpusort_enable ||
		gpusort_debug_hide || !enable_sort)
		return;
	if (stage == UPPERREL_SETOP)
		gpusort_setop_paths_add(root, output_rel);
	if (input_rel == NULL || input_rel->cheapest_total_path == NULL ||
		(stage == UPPERREL_ORDERED ? rows_of(output_rel) :
		 input_rel->cheapest_total_path->rows) < gpusort_settings_plan_rows())
		return;
	correct_costs(root, input_rel, output_rel);
	switch (stage)
	{
		case UPPERREL_GROUP_AGG:
			add_group_paths(root, input_rel, output_rel, extra);
			break;
		case UPPERREL_WINDOW:
			gpusort_window_paths_add(root, input_rel, output_rel);
			break;
		case UPPERREL_DISTINCT:
			add_distinct_path(root, input_rel, output_rel);
			break;
		case UPPERREL_ORDERED:
			add_ordered_paths(root, input_rel, output_rel);
			break;
		default:
			break;
	}
}

void
gpusort_sort_paths_init(void)
{
	prev_create_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = add_upper_paths;
}
