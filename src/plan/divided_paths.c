/*-------------------------------------------------------------------------
 *
 * divided_paths.c
 *		Adds partial paths over sorts that are divided among processes.
 *
 * In a divided sort, all processes below a Gather sort their rows together, and each of them
 * returns all rows that agree in the first sort keys, or none of them (exec/divided_sort.c).  So
 * what is computed for each group of such rows can be computed there:
 *
 *		Gather -> WindowAgg -> GpuSort -> Parallel Seq Scan
 *
 * PostgreSQL does not let workers compute window functions, since ties may come in another order in
 * each copy of a complete path.  The paths made here are partial: each row is computed once.
 * Complete paths remain unsafe for workers.
 *
 * The sort is not a SortPath whose Sort is replaced later, because one that stays would sort the
 * rows of each process alone.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/extensible.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"

#include "exec/limit_bound.h"
#include "plan/divided_paths.h"
#include "plan/key_values.h"
#include "plan/plan_swap.h"
#include "plan/sort_cost.h"
#include "settings.h"

/*
 * What it takes to send a row through a Gather, among others in a message, in the units of
 * sort_eligibility.h.  The planner charges 40.
 */
#define QUEUE_ROW_COST		3.0
#define QUEUE_BYTE_COST		0.06

/* A divided sort is used if it takes at most this part of the time of the planner's best path. */
#define MOST_TIME			0.8

/*
 * More computed columns than this get no Gather.  The planner looks for each of those of a Gather
 * among all below it, which takes it 13 ms for 1000 window functions that are alike.
 */
#define MOST_COMPUTED		100

/* ----------------------------------------------------------------
 *		the sort
 * ----------------------------------------------------------------
 */

/* PlanCustomPath: make a GpuSort from the Sort of the path's only child. */
static Plan *
plan_divided_sort(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
				  List *clauses, List *custom_plans)
{
	return gpusort_plan_divided_sort(linitial_node(Sort, custom_plans),
									 intVal(linitial(path->custom_private)),
									 intVal(lsecond(path->custom_private)) != 0);
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpuSort",
	.PlanCustomPath = plan_divided_sort,
};

/*
 * Make the sort of the rows of each process, 'rows' of all, which may be 'paired' with the other
 * input of a merge join.  Returns NULL if there are no such rows, if 'divided' is
 * 0, or if it would not be taken over.
 */
static Path *
make_sort(PlannerInfo *root, RelOptInfo *rel, Path *partial, double rows, List *pathkeys,
		  int divided, bool paired)
{
	CustomPath *path;
	Path	   *sort;

	if (partial == NULL || divided == 0 || gpusort_debug_divide == GS_OFF ||
		gpusort_debug_stock_ties)
		return NULL;
	sort = gpusort_cost_divided_sort_path(root, rel, partial, rows, pathkeys);
	if (sort == NULL)
		return NULL;
	path = makeNode(CustomPath);
	path->path = *sort;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.parallel_aware = true;
	path->path.parallel_safe = true;
	path->path.parallel_workers = partial->parallel_workers;
	path->custom_paths = list_make1(sort);
	path->custom_private = list_make2(makeInteger(divided), makeInteger(paired));
	path->methods = &path_methods;
	return &path->path;
}

static bool
is_divided_sort(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

static int
divided_keys(const Path *sort)
{
	return intVal(linitial(((const CustomPath *) sort)->custom_private));
}

Path *
gpusort_path_input(const Path *path)
{
	if (GPUSORT_IS_UNIQUE_PATH(path))
		return ((const GsUniquePath *) path)->subpath;
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return ((const ProjectionPath *) path)->subpath;
		case T_SubqueryScanPath:
			return ((const SubqueryScanPath *) path)->subpath;
		case T_SortPath:
		case T_IncrementalSortPath:
			return ((const SortPath *) path)->subpath;
		case T_GroupPath:
			return ((const GroupPath *) path)->subpath;
		case T_AggPath:
			return ((const AggPath *) path)->subpath;
		case T_GroupingSetsPath:
			return ((const GroupingSetsPath *) path)->subpath;
		case T_WindowAggPath:
			return ((const WindowAggPath *) path)->subpath;
		case T_SetOpPath:
			return linitial(GPUSORT_SETOP_INPUTS((const SetOpPath *) path));
		case T_MergePath:
			return ((const JoinPath *) path)->outerjoinpath;
		default:
			return NULL;
	}
}

/* Returns the inner path of a merge join, or NULL. */
static const Path *
inner_input_of(const Path *path)
{
	return IsA(path, MergePath) ? ((const JoinPath *) path)->innerjoinpath : NULL;
}

static List *division_of(PlannerInfo *root, const Path *path);

/* Returns by which columns a scan of a subquery is divided. */
static List *
division_of_subquery(PlannerInfo *root, const SubqueryScanPath * scan)
{
	RelOptInfo *rel = scan->path.parent;
	List	   *inner = division_of(rel->subroot, scan->subpath);
	List	   *outer =
		convert_subquery_pathkeys(root, rel, inner,
								  make_tlist_from_pathtarget(scan->subpath->pathtarget));

	return list_length(outer) == list_length(inner) ? outer : NIL;
}

/*
 * Does a merge join also return rows that have no outer row?  The keys of the outer input do not
 * say in which process these are.
 */
static bool
adds_rows(const JoinPath * merge)
{
	return merge->jointype == JOIN_FULL || merge->jointype == JOIN_RIGHT;
}

/*
 * Returns the sort keys by which the rows of a partial path are divided: each process has all rows
 * that agree in these keys, or none of them.  NIL if they are not.
 */
static List *
division_of(PlannerInfo *root, const Path *path)
{
	while (path != NULL && !is_divided_sort(path))
	{
		if (IsA(path, SubqueryScanPath))
			return division_of_subquery(root, (const SubqueryScanPath *) path);
		if (IsA(path, MergePath) && adds_rows((const JoinPath *) path))
			return NIL;
		path = gpusort_path_input(path);
	}
	return path != NULL ? list_copy_head(path->pathkeys, divided_keys(path)) : NIL;
}

/* Does a list of pathkeys have one of the same column, in whatever direction? */
static bool
has_column_of(const List *pathkeys, const PathKey *pathkey)
{
	ListCell   *lc;

	foreach(lc, pathkeys)
		if (lfirst_node(PathKey, lc)->pk_eclass == pathkey->pk_eclass)
		return true;
	return false;
}

int
gpusort_count_columns_of(const List *pathkeys, const List *others)
{
	ListCell   *lc;

	foreach(lc, pathkeys)
		if (!has_column_of(others, lfirst_node(PathKey, lc)))
		return foreach_current_index(lc);
	return list_length(pathkeys);
}

bool
gpusort_is_divided_by(PlannerInfo *root, const Path *path, List *pathkeys)
{
	List	   *division = division_of(root, path);

	return division != NIL &&
		gpusort_count_columns_of(division, pathkeys) == list_length(division);
}

/* Returns the path that computes the rows of which another one may compute expressions. */
static const Path *
below_projection(const Path *path)
{
	return IsA(path, ProjectionPath) ? ((const ProjectionPath *) path)->subpath : path;
}

/* Returns what the planner does not charge of a hash join that is the input of a sort. */
static Cost
misses_of(const Path *input)
{
	return gpusort_cost_hash_misses(below_projection(input));
}

Path *
gpusort_divided_sort_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, double rows,
						  List *pathkeys, int divided)
{
	Path	   *best = make_sort(root, rel, partial, rows, pathkeys, divided, false);
	Cost		cost = best != NULL ? best->total_cost + misses_of(partial) : 0;
	ListCell   *lc;

	foreach(lc, partial->parent->partial_pathlist)
	{
		Path	   *input = lfirst(lc);
		Path	   *path;

		if (!gpusort_is_divided_by(root, input, list_copy_head(pathkeys, divided)))
			continue;

		/* Aggregates recognize only a sort that is not incremental. */
		path = gpusort_sort_of_process(root, rel, input, pathkeys,
									   list_length(pathkeys) == divided);
		if (best == NULL || path->total_cost + misses_of(input) < cost)
		{
			best = path;
			cost = path->total_cost + misses_of(input);
		}
	}
	return best;
}

Path *
gpusort_sort_of_process(PlannerInfo *root, RelOptInfo *rel, Path *path, List *pathkeys,
						bool incremental)
{
	Path	   *sort;
	Path	   *other = NULL;
	int			common;

	if (pathkeys_count_contained_in(pathkeys, path->pathkeys, &common))
		return path;
	if (incremental && enable_incremental_sort && common > 0)
		other = (Path *) create_incremental_sort_path(root, rel, path, pathkeys, common, -1);
	sort = gpusort_cost_sort_path(root, rel, path, pathkeys, GPUSORT_NO_BOUND);
	if (sort == NULL)
		sort = (Path *) create_sort_path(root, rel, path, pathkeys, -1);
	return other != NULL && other->total_cost < sort->total_cost ? other : sort;
}

/* Returns the type of all expressions of a column, or InvalidOid if they have several. */
static Oid
type_of_column(const PathKey *pathkey)
{
	const EquivalenceMember *first = linitial(pathkey->pk_eclass->ec_members);
	ListCell   *lc;

	foreach(lc, pathkey->pk_eclass->ec_members)
		if (lfirst_node(EquivalenceMember, lc)->em_datatype != first->em_datatype)
		return InvalidOid;
	return first->em_datatype;
}

/* Are the keys of both inputs encoded alike? */
static bool
have_same_types(const List *outer, const List *inner)
{
	ListCell   *lc1;
	ListCell   *lc2;

	forboth(lc1, outer, lc2, inner)
	{
		const PathKey *a = lfirst_node(PathKey, lc1);
		const PathKey *b = lfirst_node(PathKey, lc2);

		if (!OidIsValid(type_of_column(a)) || type_of_column(a) != type_of_column(b) ||
			a->pk_eclass->ec_collation != b->pk_eclass->ec_collation)
			return false;
	}
	return list_length(outer) == list_length(inner);
}

bool
gpusort_divided_pair_paths(PlannerInfo *root, RelOptInfo *const rels[2],
						   List *const pathkeys[2], Path *sorts[2])
{
	if (!have_same_types(pathkeys[0], pathkeys[1]))
		return false;
	for (int i = 0; i < 2; i++)
	{
		sorts[i] = make_sort(root, rels[i], gpusort_cost_partial_path(rels[i]),
							 rels[i]->cheapest_total_path->rows, pathkeys[i],
							 list_length(pathkeys[i]), true);
		if (sorts[i] == NULL)
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------
 *		costs
 * ----------------------------------------------------------------
 */

/*
 * Returns how many times more rows the process has that returns the largest group of a sort that
 * is divided by the first keys than all would have if groups were small.
 */
static double
share_of_keys(PlannerInfo *root, const RelOptInfo *rel, const List *pathkeys, int divided,
			  int processes)
{
	double		group = 1;

	for (int k = 0; k < divided; k++)
		group = Min(group, gpusort_key_values_common_part(root, rel,
														  list_nth_node(PathKey, pathkeys, k)));
	return Max(group * processes, 1);
}

double
gpusort_divided_share(PlannerInfo *root, const Path *path)
{
	double		share = 1;

	for (; path != NULL; path = gpusort_path_input(path))
	{
		if (is_divided_sort(path))
			share = Max(share, share_of_keys(root, path->parent, path->pathkeys,
											 divided_keys(path), 1 + path->parallel_workers));
		if (inner_input_of(path) != NULL)
			share = Max(share, gpusort_divided_share(root, inner_input_of(path)));
		if (IsA(path, SubqueryScanPath))
			root = path->parent->subroot;
	}
	return share;
}

List *
gpusort_partition_pathkeys(PlannerInfo *root, const WindowClause *window)
{
	return make_pathkeys_for_sortclauses(root, window->partitionClause, root->processed_tlist);
}

/*
 * Returns how many columns of GROUP BY, the first ones, all windows partition by that have a
 * PARTITION BY.  Returns 0 if there is no window.
 */
static int
count_window_columns(PlannerInfo *root, List *columns)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, root->parse->windowClause)
	{
		List	   *partition = gpusort_partition_pathkeys(root, lfirst_node(WindowClause, lc));

		if (partition == NIL)
			continue;
		columns = list_truncate(columns, gpusort_count_columns_of(columns, partition));
		any = true;
	}
	return any ? list_length(columns) : 0;
}

int
gpusort_divided_group_columns(PlannerInfo *root, const RelOptInfo *rel, const Path *partial,
							  List *pathkeys)
{
	int			all = GPUSORT_GROUPBY_PATHKEYS(root);
	int			few = count_window_columns(root, list_copy_head(pathkeys, all));

	return few > 0 &&
		share_of_keys(root, rel, pathkeys, few, 1 + partial->parallel_workers) <= 1 ? few : all;
}

/* Returns the lowest of the divided sorts of a path. */
static const Path *
lowest_sort(const Path *path)
{
	const Path *lowest = NULL;

	for (; path != NULL; path = gpusort_path_input(path))
		if (is_divided_sort(path))
			lowest = path;
	return lowest;
}

/* As gpusort_divided_time() does, with the path's gpusort_divided_share(). */
static Cost
time_of_share(const Path *partial, const Path *sort, Cost node, double rows, double share)
{
	double		queue = QUEUE_ROW_COST + QUEUE_BYTE_COST * partial->pathtarget->width;

	if (sort == NULL)
		sort = lowest_sort(partial);
	return sort->startup_cost +
		(partial->total_cost - sort->startup_cost + node) * share +
		parallel_setup_cost + cpu_operator_cost * rows * queue;
}

Cost
gpusort_divided_time(PlannerInfo *root, const Path *partial, Cost node, double rows)
{
	return time_of_share(partial, NULL, node, rows, gpusort_divided_share(root, partial));
}

bool
gpusort_divided_is_better(Cost time, Cost other)
{
	return time <= other * MOST_TIME || gpusort_debug_divide == GS_ON;
}

/* Does ORDER BY get the rows of a relation as they are, and all of them? */
static bool
is_input_of_order(const PlannerInfo *root, RelOptInfo *rel)
{
	const Query *query = root->parse;

	if (root->tuple_fraction > 0)
		return false;
	if (list_member_ptr(root->upper_rels[UPPERREL_GROUP_AGG], rel))
		return !query->hasWindowFuncs && query->distinctClause == NIL;
	return list_member_ptr(root->upper_rels[UPPERREL_WINDOW], rel) ?
		query->distinctClause == NIL :
		list_member_ptr(root->upper_rels[UPPERREL_DISTINCT], rel);
}

/* Returns what it takes to sort the rows of a Gather for the query, if 'best' is in that order. */
static Cost
cost_of_order(PlannerInfo *root, RelOptInfo *rel, Path *gather, const Path *best)
{
	if (!gpusort_sorted_for_query(root, best) || !is_input_of_order(root, rel))
		return 0;
	return gpusort_sort_of_process(root, rel, gather, root->sort_pathkeys, true)->total_cost -
		gather->total_cost;
}

/* Would it take the planner long to finish a Gather of these columns? */
static bool
computes_many(const PathTarget *target)
{
	int			computed = 0;
	ListCell   *lc;

	foreach(lc, target->exprs)
		if (!IsA(lfirst(lc), Var))
		computed++;
	return computed > MOST_COMPUTED;
}

bool
gpusort_divided_path_add(PlannerInfo *root, RelOptInfo *rel, Path *partial, const Path *sort,
						 Cost node, double rows, Cost other, Path *best)
{
	double		share = gpusort_divided_share(root, partial);
	Path	   *gather = (Path *) create_gather_path(root, rel, partial, partial->pathtarget,
													 NULL, &rows);
	Cost		order = cost_of_order(root, rel, gather, best);
	Cost		time = time_of_share(partial, sort, node, rows, share) + order;

	/* There is nothing in the place of a join below that has been chosen. */
	bool		better = gpusort_divided_is_better(time, other) ||
		(sort != NULL && IsA(sort, MergePath) && sort->parent != rel && time <= other);

	better = better && !computes_many(partial->pathtarget);
	if (better)
	{
		gpusort_cost_prefer_gather(gather, partial, rel, best, order);
		add_path(rel, gather);
	}

	/* Another partial path could have it freed, but the Gather refers to it. */
	if (rel->partial_pathlist == NIL &&
		(share <= 2 || gpusort_debug_divide == GS_ON))
		add_partial_path(rel, partial);
	return better;
}

/* ----------------------------------------------------------------
 *		nodes that need rows in order
 * ----------------------------------------------------------------
 */

static Path *
make_unique(const GsSortedNode *node, Path *sort, double part)
{
	return (Path *) GPUSORT_UNIQUE_PATH(node->root, node->rel, sort, node->columns,
										clamp_row_est(node->rows * part));
}

GsSortedNode
gpusort_sorted_node(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel, List *pathkeys,
					int columns, double rows)
{
	return (GsSortedNode)
	{
		.root = root,
			.rel = rel,
			.input_rel = input_rel,
			.input = input_rel->cheapest_total_path,
			.partial = gpusort_cost_partial_path(input_rel),
			.pathkeys = pathkeys,
			.columns = columns,
			.may_divide = rel->consider_parallel,
			.row_cost = GPUSORT_UNIQUE_ROW_COST,
			.rows = rows,
			.make = make_unique
	};
}

Path *
gpusort_sorted_node_path(const GsSortedNode *node, Path **sort)
{
	*sort = gpusort_cost_cheapest_sort_path(node->root, node->rel, node->input, node->partial,
											node->pathkeys);
	return *sort == NULL ? NULL : node->make(node, *sort, 1);
}

/*
 * Returns what 'best' takes for the rows of the node, at 'row_cost' each.  If it groups them in
 * parallel, each process has 'process_rows' of them.
 */
static Cost
cost_of_best(const GsSortedNode *node, const Path *best, double process_rows)
{
	const Path *path = below_projection(best);
	bool		parallel = IsA(path, AggPath) &&
		((const AggPath *) path)->aggsplit != AGGSPLIT_SIMPLE;

	return best->total_cost + gpusort_cost_hash_misses(path) +
		cpu_operator_cost * node->row_cost * (parallel ? process_rows : node->input->rows);
}

bool
gpusort_sorted_node_divide(const GsSortedNode *node, Path *best, Cost more)
{
	double		rows = node->input->rows;
	Cost		groups = cpu_operator_cost * GPUSORT_GROUP_COST * node->groups;
	Path	   *sort = NULL;
	Path	   *path;
	double		part;			/* of each process */

	if (node->partial != NULL && node->may_divide)
		sort = gpusort_divided_sort_path(node->root, node->rel, node->partial, rows,
										 node->pathkeys, node->columns);
	if (sort == NULL)
		return false;

	/*
	 * The planner has made its complete paths, which remain unsafe for
	 * workers.
	 */
	node->rel->consider_parallel = true;
	part = sort->rows / rows;
	path = node->make(node, sort, part);
	return gpusort_divided_path_add(node->root, node->rel, path, sort,
									(cpu_operator_cost * node->row_cost * rows + groups) * part,
									node->rows > 0 ? node->rows : path->rows / part,
									cost_of_best(node, best, sort->rows) + groups + more, best);
}

bool
gpusort_sorted_for_query(const PlannerInfo *root, const Path *path)
{
	return root->sort_pathkeys != NIL && pathkeys_contained_in(root->sort_pathkeys, path->pathkeys);
}

void
gpusort_sorted_node_add(const GsSortedNode *node, Path *path, Cost more, Path *best)
{
	bool		cheaper = path != NULL && path->total_cost < best->total_cost;
	bool		divided = gpusort_sorted_node_divide(node, cheaper ? path : best,
													 cheaper ? more : 0);

	if (path != NULL && (!divided || gpusort_sorted_for_query(node->root, path)))
		add_path(node->rel, path);
}
