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
 * inputs' partial paths below a Gather with a sink.  Or the operation itself is below the Gather,
 * over a sort that is divided by all columns; since 18, only that of UNION is.
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

#include "plan/divided_paths.h"
#include "plan/sort_cost.h"
#include "plan/sort_paths.h"
#include "settings.h"

/* Paths of the rows of all inputs of a set operation. */
typedef struct GsAppendedInputs
{
	Path	   *all;			/* all rows, in one process */
	Path	   *partial;		/* those of each process, or NULL */
} GsAppendedInputs;

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

static Path *
append_path(PlannerInfo *root, RelOptInfo *rel, const List *inputs)
{
	return (Path *) GPUSORT_APPEND_PATH(root, rel, list_copy(inputs), NIL, 0,
										false);
}

/*
 * The same with partial paths of the inputs, or NULL if one has none.  The planner itself does not
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
 * Append the rows of all inputs.  There are no paths of workers if there are too few rows for a
 * sort.
 */
static GsAppendedInputs
append_inputs(PlannerInfo *root, RelOptInfo *rel, const List *inputs)
{
	GsAppendedInputs appended = {
		.all = append_path(root, rel, inputs)
	};

	if (appended.all->rows >= gpusort_settings_plan_rows())
		appended.partial = partial_append_path(root, rel, inputs);
	return appended;
}

/*
 * Sort the rows of all inputs in the cheapest way.  Returns NULL if the sort would not
 * be taken over.
 */
static Path *
sort_appended(PlannerInfo *root, RelOptInfo *rel, const GsAppendedInputs *inputs, List *pathkeys)
{
	if (inputs->all->rows < gpusort_settings_plan_rows())
		return NULL;
	return gpusort_cost_cheapest_sort_path(root, rel, rel, inputs->all, inputs->partial, pathkeys);
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

	if (input->rtekind != RTE_SUBQUERY || input->subroot == NULL)
		return 1;
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
 * Returns how many rows of a UNION are certain.  The planner expects that all rows of its
 * inputs are different, which is far too many for a hash table that will be small.
 */
static double
certain_rows(PlannerInfo *root, const List *inputs, int ncolumns)
{
	double		rows = 1;
	ListCell   *lc;

	foreach(lc, inputs)
		for (int column = 0; column < ncolumns; column++)
		rows = Max(rows, distinct_values(root, ((Path *) lfirst(lc))->parent,
										 column));
	return rows;
}

/*
 * Sort the rows of all inputs, divided by all columns.  Returns NULL if that is not possible, or if
 * the sort would not be taken over.  The planner has made its complete paths, which remain unsafe
 * for workers.
 */
static Path *
sort_divided(PlannerInfo *root, RelOptInfo *rel, const GsAppendedInputs *inputs, List *pathkeys)
{
	Path	   *sort;

	if (inputs->partial == NULL)
		return NULL;
	sort = gpusort_divided_sort_path(root, rel, inputs->partial, inputs->all->rows, pathkeys,
									 list_length(pathkeys));
	if (sort != NULL)
		rel->consider_parallel = true;
	return sort;
}

/*
 * Add 'path' over such a sort, which returns a part of 'rows' rows.  'best' is the best path so
 * far.  Returns whether it is better.
 */
static bool
add_divided_path(PlannerInfo *root, RelOptInfo *rel, Path *path, const Path *sort,
				 const GsAppendedInputs *inputs, double rows, Path *best, PathTarget *target)
{
	Cost		other = gpusort_divided_cost_of_groups(best, inputs->all->rows, sort->rows,
													   GPUSORT_UNIQUE_ROW_COST);

	return gpusort_divided_path_add(root, rel, apply_projection_to_path(root, rel, path, target),
									sort, cpu_operator_cost * GPUSORT_UNIQUE_ROW_COST * sort->rows,
									rows, other, best);
}

/* Add a path for a UNION that is computed by all processes.  Returns likewise. */
static bool
add_divided_union_path(PlannerInfo *root, RelOptInfo *rel, const GsAppendedInputs *inputs,
					   List *pathkeys, Path *best, PathTarget *target)
{
	Path	   *sort = sort_divided(root, rel, inputs, pathkeys);
	Path	   *path;

	if (sort == NULL)
		return false;
	path = (Path *) GPUSORT_UNIQUE_PATH(root, rel, sort, list_length(pathkeys),
										clamp_row_est(best->rows * sort->rows /
													  inputs->all->rows));
	return add_divided_path(root, rel, path, sort, inputs, best->rows, best, target);
}

/* Add a path for a UNION whose best path is an Agg or a Unique over 'below'. */
static void
add_union_path(PlannerInfo *root, RelOptInfo *rel, Path *best, Path *below,
			   PathTarget *target)
{
	List	   *clauses = IsA(best, AggPath) ? ((AggPath *) best)->groupClause : NIL;
	List	   *inputs = inputs_of(rel, below);
	GsAppendedInputs appended;
	List	   *pathkeys = below->pathkeys;
	Path	   *sort;
	Path	   *path;

	if (inputs == NIL || !grouping_is_sortable(clauses))
		return;
	appended = append_inputs(root, rel, inputs);
	if (IsA(best, AggPath))
		pathkeys = pathkeys_of(root, appended.all, clauses);
	if (pathkeys == NIL)
		return;
	sort = sort_appended(root, rel, &appended, pathkeys);
	if (sort == NULL)
		return;
	path = (Path *) GPUSORT_UNIQUE_PATH(root, rel, sort, list_length(pathkeys),
										best->rows);
	if (IsA(best, AggPath) &&
		!gpusort_cost_prefer_to_agg(root, path, sort, (AggPath *) best, NULL,
									certain_rows(root, inputs, list_length(clauses))))
		path = NULL;
	if (add_divided_union_path(root, rel, &appended, pathkeys,
							   path != NULL && path->total_cost < best->total_cost ? path : best,
							   target))
		return;
	if (path != NULL)
		add_path(rel, apply_projection_to_path(root, rel, path, target));
}

/* Sort the rows of a single input.  Returns NULL likewise. */
static Path *
sort_input(PlannerInfo *root, Path *input, List *pathkeys)
{
	RelOptInfo *rel = input->parent;

	if (input->rows < gpusort_settings_plan_rows())
		return NULL;
	return gpusort_cost_cheapest_sort_path(root, rel, rel, input,
										   gpusort_cost_partial_path(rel),
										   pathkeys);
}

/*
 * Put an input of an INTERSECT or EXCEPT into order: the rows of both relations, or since
 * 18 those of one.  *taken_over is set if that is a sort that would be taken over.
 */
static Path *
ordered_input(PlannerInfo *root, RelOptInfo *rel, Path *input, List *clauses,
			  bool *taken_over)
{
	List	   *inputs = inputs_of(rel, input);
	GsAppendedInputs appended = {0};
	Path	   *cheapest = cheapest_path(input);
	List	   *pathkeys;
	Path	   *sort;

	if (inputs != NIL)
	{
		appended = append_inputs(root, rel, inputs);
		cheapest = appended.all;
	}
	pathkeys = pathkeys_of(root, cheapest, clauses);

	/* Since 18, all columns of an input may be constants. */
	if (pathkeys == NIL)
		return cheapest;
	if (inputs != NIL)
		sort = sort_appended(root, rel, &appended, pathkeys);
	else
		sort = sort_input(root, cheapest, pathkeys);
	if (sort == NULL)
		return (Path *) create_sort_path(root, cheapest->parent, cheapest, pathkeys, -1.0);
	*taken_over = true;
	return sort;
}

/*
 * Add a path for an INTERSECT or EXCEPT whose sort of the rows of both relations is divided.
 * 'other' is the best path so far.  Returns whether it is better.
 */
static bool
add_divided_setop_path(PlannerInfo *root, RelOptInfo *rel, SetOpPath *best, List *clauses,
					   Path *other, PathTarget *target)
{
	List	   *inputs = inputs_of(rel, linitial(GPUSORT_SETOP_INPUTS(best)));
	GsAppendedInputs appended;
	Path	   *sort;
	SetOpPath  *path;

	/* Since 18, two sorts would have to be divided alike. */
	if (inputs == NIL)
		return false;
	appended = append_inputs(root, rel, inputs);
	sort = sort_divided(root, rel, &appended, pathkeys_of(root, appended.all, clauses));
	if (sort == NULL)
		return false;
	path = GPUSORT_SORTED_SETOP_PATH(root, rel, best, list_make1(sort));
	path->path.pathkeys = sort->pathkeys;
	path->path.rows = clamp_row_est(best->path.rows * sort->rows / appended.all->rows);
	return add_divided_path(root, rel, &path->path, sort, &appended, best->path.rows, other,
							target);
}

/* Add a path for an INTERSECT or EXCEPT. */
static void
add_setop_path(PlannerInfo *root, RelOptInfo *rel, SetOpPath *best,
			   PathTarget *target)
{
	List	   *clauses = GPUSORT_SETOP_CLAUSES(best);
	List	   *inputs = NIL;
	bool		taken_over = false;
	ListCell   *lc;
	Path	   *path;

	if (clauses == NIL || !grouping_is_sortable(clauses))
		return;
	foreach(lc, GPUSORT_SETOP_INPUTS(best))
		inputs = lappend(inputs, ordered_input(root, rel, lfirst(lc), clauses,
											   &taken_over));
	if (!taken_over)
		return;
	path = (Path *) GPUSORT_SORTED_SETOP_PATH(root, rel, best, inputs);

	/* The order of the inputs' columns is that of its own columns. */
	path->pathkeys = pathkeys_of(root, &best->path, clauses);
	if (!add_divided_setop_path(root, rel, best, clauses,
								path->total_cost < best->path.total_cost ? path : &best->path,
								target))
		add_path(rel, apply_projection_to_path(root, rel, path, target));
}

void
gpusort_setop_paths_add(PlannerInfo *root, RelOptInfo *rel)
{
	Path	   *best;
	PathTarget *target;

	if (rel->pathlist == NIL)
		return;
	best = linitial(rel->pathlist);
	target = best->pathtarget;

	/* Another set operation above may want other columns. */
	if (IsA(best, ProjectionPath))
		best = ((ProjectionPath *) best)->subpath;
	if (IsA(best, SetOpPath))
		add_setop_path(root, rel, (SetOpPath *) best, target);
	else if (IsA(best, AggPath))
		add_union_path(root, rel, best, ((AggPath *) best)->subpath, target);
	else if (GPUSORT_IS_UNIQUE_PATH(best))
		add_union_path(root, rel, best, ((GsUniquePath *) best)->subpath, target);
}
