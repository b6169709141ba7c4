/*-------------------------------------------------------------------------
 *
 * setop_paths.c
 *		Adds paths over sorts at GpuSort's cost for set operations.
 *
 * The planner tells a hook of a set operation only which paths it has made.  These
 * say what the operation is and what its inputs are, so the paths that are added
 * here are made from them.
 *
 * UNION sorts the rows of all of its inputs together, in every version.  INTERSECT and
 * EXCEPT do so up to 17, with a column that says which input a row is from.  Since 18
 * they sort each input for itself.
 *
 * The planner itself never lets several processes add rows to the sorts of INTERSECT and
 * EXCEPT, and those of UNION get them through a Gather.  Here each sort can have the
 * inputs' partial paths below a Gather with a sink.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "port/pg_bitutils.h"
#include "utils/selfuncs.h"

#include "plan/key_values.h"
#include "plan/sort_cost.h"
#include "plan/sort_paths.h"
#include "settings.h"

/*
 * Returns the cheapest path of an input.  Up to 16 the paths of a nested UNION belong to a
 * relation that has none.
 */
static Path *
cheapest_path(Path *path)
{
	Path	   *cheapest = path->parent->cheapest_total_path;

	return cheapest != NULL ? cheapest : path;
}

/*
 * Returns the cheapest paths of the inputs whose rows a path appends, maybe below a Sort
 * and a Gather.  Returns NIL if it does not append the inputs of the set operation 'rel'.
 */
static List *
inputs_of(const RelOptInfo *rel, const Path *path)
{
	List	   *inputs = NIL;
	List	   *paths = NIL;
	ListCell   *lc;

	if (IsA(path, SortPath))
		path = ((const SortPath *) path)->subpath;
	if (IsA(path, GatherPath))
		path = ((const GatherPath *) path)->subpath;
	if (path->parent == rel && IsA(path, AppendPath))
		paths = ((const AppendPath *) path)->subpaths;
	else if (path->parent == rel && IsA(path, MergeAppendPath))
		paths = ((const MergeAppendPath *) path)->subpaths;
	foreach(lc, paths)
		inputs = lappend(inputs, cheapest_path(lfirst(lc)));
	return inputs;
}

/*
 * Append partial paths of the inputs, or return NULL if one has none.  The planner itself does not
 * say of INTERSECT and EXCEPT up to 17 that they are parallel safe.
 */
static Path *
partial_append_path(PlannerInfo *root, RelOptInfo *rel, const List *inputs)
{
	List	   *paths = NIL;
	int			workers = 0;
	Path	   *append;
	ListCell   *lc;

	foreach(lc, inputs)
	{
		Path	   *partial = gpusort_cost_partial_path(((Path *) lfirst(lc))->parent);

		if (partial == NULL)
			return NULL;
		paths = lappend(paths, partial);
		workers = Max(workers, partial->parallel_workers);
	}

	/* As the planner does it, so that workers spread out over the inputs. */
	if (enable_parallel_append)
		workers = Min(Max(workers,
						  pg_leftmost_one_pos32(list_length(paths)) + 1),
					  max_parallel_workers_per_gather);
	append = (Path *) GPUSORT_APPEND_PATH(root, rel, NIL, paths, workers,
										  enable_parallel_append);
	append->parallel_safe = true;
	return append;
}

/* Returns the order of a path's columns that 'clauses' describe. */
static List *
pathkeys_of(PlannerInfo *root, const Path *path, List *clauses)
{
	return make_pathkeys_for_sortclauses(root, clauses,
										 make_tlist_from_pathtarget(path->pathtarget));
}

/*
 * Returns the sort keys of a set operation in the best order, if no ORDER BY asks for one.  The
 * planner has not made its pathkeys yet.
 */
static List *
order_keys(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys, double rows)
{
	return root->parse->sortClause != NIL ? pathkeys :
		gpusort_key_values_order(root, rel, pathkeys, rows);
}

/*
 * Returns how many values a column of an input has.  The UNION returns at least as many
 * rows.  Returns 1 if that is not known.
 */
static double
distinct_values(PlannerInfo *root, const RelOptInfo *input, int column)
{
	const Query *query;
	const TargetEntry *entry;

	query = root->simple_rte_array[input->relid]->subquery;
	if (query->setOperations != NULL || query->groupClause != NIL ||
		query->groupingSets != NIL || query->distinctClause != NIL ||
		query->hasAggs || input->subroot->hasHavingQual)
		return 1;
	entry = list_nth_node(TargetEntry, query->targetList, column);
	return estimate_num_groups(input->subroot, list_make1(entry->expr),
							   input->rows, NULL, NULL);
}

/*
 * Returns how many rows of a UNION are certain: as many as its largest input has different ones.
 * The planner expects that all rows of its inputs are different, which is far too many for a hash
 * table that will be small.
 */
static double
certain_rows(PlannerInfo *root, const RelOptInfo *rel, int ncolumns)
{
	const RelOptInfo *input = gpusort_key_values_largest_input(root, rel);
	double		rows = 1;

	for (int column = 0; input != NULL && column < ncolumns; column++)
		rows = Max(rows, distinct_values(root, input, column));
	return rows;
}

/*
 * Add a path that sorts the rows of all inputs together: by 'clauses', or else by 'pathkeys'.
 */
static void
add_path_of_all(PlannerInfo *root, RelOptInfo *rel, Path *best, const List *inputs, List *clauses,
				List *pathkeys, PathTarget *target)
{
	Path	   *input = (Path *) GPUSORT_APPEND_PATH(root, rel, list_copy(inputs), NIL, 0, false);
	Path	   *sorts[2] = {NULL, NULL};
	Path	   *path;

	if (clauses != NIL)
		pathkeys = pathkeys_of(root, input, clauses);
	if (pathkeys == NIL || input->rows < gpusort_settings_plan_rows())
		return;
	pathkeys = order_keys(root, rel, pathkeys, input->rows);
	sorts[0] = gpusort_cost_cheapest_sort_path(root, rel, input,
											   partial_append_path(root, rel, inputs), pathkeys);
	if (sorts[0] == NULL)
		return;
	if (IsA(best, SetOpPath))
	{
		path = (Path *) GPUSORT_SORTED_SETOP_PATH(root, rel, (SetOpPath *) best,
												  list_make1(sorts[0]), best->rows);
		path->pathkeys = pathkeys;
		gpusort_cost_prefer(path, sorts, best);
	}
	else
	{
		path = (Path *) GPUSORT_UNIQUE_PATH(root, rel, sorts[0], list_length(pathkeys),
											best->rows);
		if (IsA(best, AggPath) &&
			!gpusort_cost_prefer_to_agg(root, path, sorts[0], (AggPath *) best, NULL,
										certain_rows(root, rel, list_length(clauses))))
			return;
	}
	add_path(rel, apply_projection_to_path(root, rel, path, target));
}

/*
 * Put an input of an INTERSECT or EXCEPT since 18 into order.  *taken_over is set if that is a
 * sort that would be taken over.
 */
static Path *
ordered_input(PlannerInfo *root, Path *input, List *clauses, bool *taken_over)
{
	RelOptInfo *rel = input->parent;
	List	   *pathkeys = pathkeys_of(root, input, clauses);
	Path	   *sort;

	/* All columns of an input may be constants. */
	if (pathkeys == NIL)
		return input;
	sort = gpusort_cost_cheapest_sort_path(root, rel, input, gpusort_cost_partial_path(rel),
										   pathkeys);
	if (sort == NULL)
		return (Path *) create_sort_path(root, rel, input, pathkeys, -1.0);
	*taken_over = true;
	return sort;
}

/*
 * Copy an INTERSECT or EXCEPT since 18, so that it compares columns in the best order, in which its
 * inputs have to be sorted.
 */
static SetOpPath *
order_columns(PlannerInfo *root, RelOptInfo *rel, const SetOpPath *setop)
{
	SetOpPath  *copy = makeNode(SetOpPath);
	List	   *clauses = GPUSORT_SETOP_CLAUSES(setop);
	List	   *pathkeys = pathkeys_of(root, &setop->path, clauses);
	List	   *ordered = NIL;
	double		rows = 0;
	ListCell   *lc;

	*copy = *setop;
	foreach(lc, GPUSORT_SETOP_INPUTS(setop))
		rows += ((Path *) lfirst(lc))->rows;
	foreach(lc, order_keys(root, rel, pathkeys, rows))
	{
		Index		column = lfirst_node(PathKey, lc)->pk_eclass->ec_sortref;

		ordered = lappend(ordered, get_sortgroupref_clause(column, clauses));
	}
	Assert(list_length(ordered) == list_length(clauses));
	GPUSORT_SETOP_CLAUSES(copy) = ordered;
	return copy;
}

/* Add a path that sorts each input for itself. */
static void
add_path_of_each(PlannerInfo *root, RelOptInfo *rel, SetOpPath *best, PathTarget *target)
{
	SetOpPath  *setop = order_columns(root, rel, best);
	List	   *clauses = GPUSORT_SETOP_CLAUSES(setop);
	List	   *inputs = NIL;
	Path	   *sorts[2] = {NULL, NULL};
	int			nsorts = 0;
	bool		taken_over = false;
	ListCell   *lc;
	Path	   *path;

	foreach(lc, GPUSORT_SETOP_INPUTS(best))
	{
		Path	   *input = ordered_input(root, cheapest_path(lfirst(lc)), clauses, &taken_over);

		inputs = lappend(inputs, input);
		if (IsA(input, SortPath))
			sorts[nsorts++] = input;
	}
	if (!taken_over)
		return;
	path = (Path *) GPUSORT_SORTED_SETOP_PATH(root, rel, setop, inputs, setop->path.rows);

	/* The order of the inputs' columns is that of its own columns. */
	path->pathkeys = pathkeys_of(root, &setop->path, clauses);
	gpusort_cost_prefer(path, sorts, &best->path);
	add_path(rel, apply_projection_to_path(root, rel, path, target));
}

/*
 * Returns the columns by which a set operation compares rows, or NIL if it needs the order of its
 * input.
 */
static List *
clauses_of(const Path *path)
{
	if (IsA(path, SetOpPath))
		return GPUSORT_SETOP_CLAUSES((const SetOpPath *) path);
	return IsA(path, AggPath) ? ((const AggPath *) path)->groupClause : NIL;
}

void
gpusort_setop_paths_add(PlannerInfo *root, RelOptInfo *rel)
{
	Path	   *best = rel->pathlist != NIL ? linitial(rel->pathlist) : NULL;
	PathTarget *target;
	Path	   *below;
	List	   *clauses;
	List	   *inputs;

	if (best == NULL)
		return;
	target = best->pathtarget;

	/* Another set operation above may want other columns. */
	if (IsA(best, ProjectionPath))
		best = ((ProjectionPath *) best)->subpath;
	below = gpusort_path_input(best);
	clauses = clauses_of(best);
	if (below == NULL || !grouping_is_sortable(clauses))
		return;
	inputs = inputs_of(rel, below);
	if (inputs != NIL)
		add_path_of_all(root, rel, best, inputs, clauses, below->pathkeys, target);
	else if (IsA(best, SetOpPath) && clauses != NIL)
		add_path_of_each(root, rel, (SetOpPath *) best, target);
}
