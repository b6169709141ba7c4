/*-------------------------------------------------------------------------
 *
 * window_paths.c
 *		Adds paths for window functions over sorts at GpuSort's cost.
 *
 * The planner's own path says which windows there are and in which order.  They are copied, over
 * sorts in one process, or by several.  The lowest windows, or all, can be below a Gather, over
 * divided sorts.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"

#include "plan/sort_cost.h"
#include "plan/sort_paths.h"
#include "work.h"

/* Without statistics on what a run condition leaves, the planner's default for inequalities. */
#define RUN_CONDITION_FRACTION	0.3333

/*
 * Windows in more orders than this get no paths, which take longer than they gain: their sorts are
 * taken over where the planner has put them.
 */
#define MOST_ORDERS		32

/* A window of the planner's path. */
typedef struct GsWindowNode
{
	const WindowAggPath *path;
	List	   *pathkeys;		/* the order that it needs, */
	List	   *partition;		/* and what of that is its PARTITION BY */
} GsWindowNode;

/* Is a path a sort that the planner puts below a window? */
static bool
is_sort(const Path *path)
{
	return IsA(path, SortPath) || IsA(path, IncrementalSortPath);
}

static GsWindowNode *
make_window(PlannerInfo *root, const WindowAggPath *path)
{
	GsWindowNode *window = palloc(sizeof(GsWindowNode));
	const WindowClause *clause = path->winclause;

	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_PLANNING);
	window->path = path;
	window->partition = gpusort_partition_pathkeys(root, clause);
	if (is_sort(path->subpath))
		window->pathkeys = path->subpath->pathkeys;
	else if (clause->orderClause == NIL)
		window->pathkeys = window->partition;
	else
		window->pathkeys = make_pathkeys_for_sortclauses(root,
														 list_concat_copy(clause->partitionClause,
																		  clause->orderClause),
														 root->processed_tlist);
	return window;
}

/*
 * Returns the windows of a path, the lowest one first, without the sorts between them.  Returns NIL
 * if they have too many orders, or if there are other nodes above 'input_rel'.
 */
static List *
windows_of_path(PlannerInfo *root, Path *path, const RelOptInfo *input_rel)
{
	List	   *windows = NIL;
	int			norders = 0;

	while (path->parent != input_rel)
	{
		if (IsA(path, WindowAggPath))
		{
			windows = lcons(make_window(root, (WindowAggPath *) path), windows);
			path = ((WindowAggPath *) path)->subpath;
		}
		else if (is_sort(path) && ++norders <= MOST_ORDERS)
			path = ((SortPath *) path)->subpath;
		else
			return NIL;
	}
	return windows;
}

/* Copy a WindowAggPath to an input that has all rows, or a part of them in each process. */
static Path *
copy_window_to(const WindowAggPath *window, Path *input)
{
	WindowAggPath *copy = makeNode(WindowAggPath);
	const Path *old = &window->path;
	const Path *old_input = window->subpath;
	double		part = input->rows / Max(old_input->rows, 1);

	*copy = *window;
	copy->subpath = input;
	copy->path.parallel_aware = false;
	copy->path.parallel_workers = input->parallel_workers;
	copy->path.parallel_safe = input->parallel_workers > 0 ||
		(old->parent->consider_parallel && input->parallel_safe);
	copy->path.pathkeys = input->pathkeys;
	copy->path.rows = input->rows;
	copy->path.startup_cost = input->startup_cost +
		Max(old->startup_cost - old_input->startup_cost, 0) * part;
	copy->path.total_cost = input->total_cost +
		Max(old->total_cost - old_input->total_cost, 0) * part;
	GPUSORT_MOVE_DISABLED_NODES(&copy->path, old_input, input);
	return &copy->path;
}

/*
 * Put windows over a path, and sorts where they need another order.  'partial' has the rows of each
 * process, or is NULL.  *any_sort is set if a sort would be taken over.
 */
static Path *
windows_over(PlannerInfo *root, RelOptInfo *window_rel, const List *windows, Path *path,
			 Path *partial, bool *any_sort)
{
	ListCell   *lc;

	foreach(lc, windows)
	{
		const GsWindowNode *window = lfirst(lc);

		if (!pathkeys_contained_in(window->pathkeys, path->pathkeys))
		{
			Path	   *sort = gpusort_cost_cheapest_sort_path(root, window_rel, path, partial,
															   window->pathkeys);

			*any_sort |= sort != NULL;
			if (sort == NULL)
				sort = (Path *) create_sort_path(root, window_rel, path,
												 window->pathkeys, -1.0);
			path = sort;
		}
		path = copy_window_to(window->path, path);
		/* Above the first window, the rows are in one process. */
		partial = NULL;
	}
	return path;
}

/* ----------------------------------------------------------------
 *		windows that all processes compute
 * ----------------------------------------------------------------
 */

/* May workers compute a window function, if they may compute any? */
static bool
is_safe_function(PlannerInfo *root, const WindowFunc *function)
{
	return func_parallel(function->winfnoid) == PROPARALLEL_SAFE &&
		is_parallel_safe(root, (Node *) function->args) &&
		is_parallel_safe(root, (Node *) function->aggfilter);
}

/* Window functions that are replaced by constants, and what is known of them. */
typedef struct GsFunctionUse
{
	PlannerInfo *root;
	bool		all_safe;
} GsFunctionUse;

static Node *
replace_window_functions(Node *node, void *context)
{
	GsFunctionUse *use = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, WindowFunc))
	{
		if (!is_safe_function(use->root, (const WindowFunc *) node))
			use->all_safe = false;
		return (Node *) makeNullConst(exprType(node), -1, InvalidOid);
	}
	return expression_tree_mutator(node, replace_window_functions, context);
}

/* May workers compute an expression, if they may compute window functions at all? */
static bool
is_safe_in_workers(PlannerInfo *root, const void *expression)
{
	GsFunctionUse use = {root, true};
	Node	   *node = unconstify(void *, expression);

	/* As most columns of windows are.  Others are copied. */
	if (node == NULL || IsA(node, Var))
		return true;
	if (IsA(node, WindowFunc))
		return is_safe_function(root, (const WindowFunc *) node);
	node = replace_window_functions(node, &use);
	return use.all_safe && is_parallel_safe(root, node);
}

/* Likewise of a list, but for those that are in the same place of 'safe', which workers may. */
static bool
are_safe_in_workers(PlannerInfo *root, const List *expressions, const List *safe)
{
	ListCell   *lc;

	foreach(lc, expressions)
	{
		int			n = foreach_current_index(lc);

		if ((n >= list_length(safe) || list_nth(safe, n) != lfirst(lc)) &&
			!is_safe_in_workers(root, lfirst(lc)))
			return false;
	}
	return true;
}

/* Does an expression need a parameter of the executor, such as the result of a subquery? */
static bool
needs_parameter(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((const Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, needs_parameter, context);
}

/* May workers check the run condition of a window? */
static bool
is_safe_run_condition(PlannerInfo *root, const WindowAggPath *window)
{
	List	   *condition = GPUSORT_RUN_CONDITION(window);

	return are_safe_in_workers(root, condition, NIL) &&
		(GPUSORT_RUN_CONDITION_IS_SENT || !needs_parameter((Node *) condition, NULL));
}

/*
 * May workers compute a window over 'safe', the columns of the window below?  It mostly has these
 * and its own, so that those of many windows are not checked for each.
 */
static bool
is_safe_window(PlannerInfo *root, const WindowAggPath *window, const List *safe)
{
	return are_safe_in_workers(root, window->path.pathtarget->exprs, safe) &&
		are_safe_in_workers(root, window->qual, NIL) &&
		is_safe_run_condition(root, window) &&
		is_safe_in_workers(root, window->winclause->startOffset) &&
		is_safe_in_workers(root, window->winclause->endOffset);
}

/*
 * Returns how many of the windows, the lowest ones, can be computed in all processes: those that
 * are safe there, and have a PARTITION BY.
 */
static int
count_divisible(PlannerInfo *root, const List *windows)
{
	const List *safe = NIL;
	ListCell   *lc;

	foreach(lc, windows)
	{
		const GsWindowNode *window = lfirst(lc);

		if (window->partition == NIL || !is_safe_window(root, window->path, safe))
			return foreach_current_index(lc);
		safe = window->path->path.pathtarget->exprs;
	}
	return list_length(windows);
}

/*
 * Returns by how many columns the sort of a window, by number, can be divided: those that lead its
 * PARTITION BY, and that the windows above it partition by as well.  Those from the first one on
 * that has no such column need another divided sort.
 */
static int
count_common_columns(const List *windows, int first)
{
	List	   *columns = list_copy(((const GsWindowNode *) list_nth(windows, first))->partition);
	ListCell   *lc;

	for_each_from(lc, windows, first + 1)
	{
		const GsWindowNode *window = lfirst(lc);
		int			common = gpusort_count_columns_of(columns, window->partition);

		if (common == 0)
			break;
		columns = list_truncate(columns, common);
	}
	return list_length(columns);
}

/*
 * Make windows over the rows of each process.  Where these are not divided by columns of a window's
 * PARTITION BY, there is a divided sort.  Where they only need another order, there is a sort of
 * the rows that the process has.  Returns NULL if a divided sort would not be taken over.
 */
static Path *
partial_window_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *window_rel,
					const List *windows)
{
	double		rows = input_rel->cheapest_total_path->rows;
	Path	   *path = gpusort_cost_partial_path(input_rel);
	ListCell   *lc;

	foreach(lc, windows)
	{
		const GsWindowNode *window = lfirst(lc);

		if (gpusort_is_divided_by(root, path, window->partition))
			path = gpusort_sort_of_process(root, window_rel, path, window->pathkeys, true);
		else
			path = gpusort_divided_sort_path(root, window_rel, path, rows, window->pathkeys,
											 count_common_columns(windows,
																  foreach_current_index(lc)));
		if (path == NULL)
			return NULL;
		path = copy_window_to(window->path, path);
	}
	return path;
}

/* Returns about how many rows come out of the top window. */
static double
rows_out(const WindowAggPath *top, double rows)
{
	return GPUSORT_RUN_CONDITION(top) != NIL || top->qual != NIL ?
		rows * RUN_CONDITION_FRACTION : rows;
}

/*
 * Add a path whose lowest windows, 'count' of them, are below a Gather in 'partial', and the others
 * above it.  Returns whether it is better than 'best'.
 */
static bool
add_windows_above(PlannerInfo *root, RelOptInfo *window_rel, const List *windows,
				  Path *partial, int count, Path *best)
{
	double		rows = best->rows;
	Cost		row = cpu_operator_cost * GPUSORT_WINDOW_ROW_COST;
	int			all = list_length(windows);
	bool		any_sort = false;
	Path	   *gather = (Path *) create_gather_path(root, window_rel, partial,
													 partial->pathtarget, NULL, &rows);
	Path	   *path;
	Cost		time = gpusort_divided_time(root, partial, row * count * partial->rows, rows);

	gather->total_cost = gpusort_divided_time(root, partial, 0, rows);
	path = windows_over(root, window_rel, list_copy_tail(windows, count), gather, partial,
						&any_sort);
	time += path->total_cost - gather->total_cost + row * (all - count) * rows;
	if (!gpusort_divided_is_better(time, best->total_cost + row * all * rows))
		return false;
	gpusort_cost_prefer_gather(path, partial, window_rel, best, 0);
	add_path(window_rel, path);
	return true;
}

/* Add a path whose windows, or the lowest ones, all processes compute.  Returns likewise. */
static bool
add_divided_windows(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *window_rel,
					const List *windows, Path *best)
{
	Cost		row = cpu_operator_cost * GPUSORT_WINDOW_ROW_COST;
	Path	   *path;
	int			count;

	if (gpusort_cost_partial_path(input_rel) == NULL || root->parse->hasTargetSRFs)
		return false;
	count = count_divisible(root, windows);
	if (count == 0)
		return false;
	path = partial_window_path(root, input_rel, window_rel, list_copy_head(windows, count));
	if (path == NULL)
		return false;
	if (count < list_length(windows))
		return add_windows_above(root, window_rel, windows, path, count, best);

	/*
	 * The planner has made its complete paths, which remain unsafe for
	 * workers.
	 */
	window_rel->consider_parallel = true;
	return gpusort_divided_path_add(root, window_rel, path, NULL, row * count * path->rows,
									rows_out((WindowAggPath *) path, best->rows),
									best->total_cost + row * count * best->rows, best);
}

/*
 * Which sorts the windows need has to be determined anew, because the planner's path may have
 * started with rows in some order.
 */
void
gpusort_window_paths_add(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *window_rel)
{
	List	   *windows = windows_of_path(root, linitial(window_rel->pathlist), input_rel);
	bool		any_sort = false;
	Path	   *path = windows_over(root, window_rel, windows, input_rel->cheapest_total_path,
									gpusort_cost_partial_path(input_rel), &any_sort);
	Path	   *best = linitial(window_rel->pathlist);

	/* Adding a path may free the planner's, which have the windows. */
	if (any_sort && path->total_cost < best->total_cost)
		best = path;
	if ((!add_divided_windows(root, input_rel, window_rel, windows, best) ||
		 gpusort_sorted_for_query(root, path)) && any_sort)
		add_path(window_rel, path);
}
