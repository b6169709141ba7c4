/*-------------------------------------------------------------------------
 *
 * join_paths.c
 *		Adds merge joins over sorts at GpuSort's cost for the planner.
 *
 * The planner itself considers sorting the inputs of a merge join at stock
 * PostgreSQL's cost.  This adds a path in which each input is put into order
 * in the cheapest way, at least one of them by a sort at GpuSort's cost.
 *
 * Joins of partitions, parameterized paths and partial paths are left alone.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

#include "key/key_encoding.h"
#include "loading.h"
#include "plan/join_floor.h"
#include "plan/join_paths.h"
#include "plan/sort_cost.h"
#include "settings.h"

static set_join_pathlist_hook_type prev_set_join_pathlist_hook = NULL;

/*
 * Can the join be done as a merge join?  One that also returns inner rows
 * without a match must have all clauses of the join as merge clauses.
 */
static bool
can_merge(const GsJoin *join)
{
	ListCell   *lc;

	switch (join->jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_SEMI:
		case JOIN_ANTI:
			return true;
		case JOIN_FULL:
		case JOIN_RIGHT:
			break;
		default:
			return false;
	}
	foreach(lc, join->extra->restrictlist)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, lc);

		if (!RINFO_IS_PUSHED_DOWN(clause, join->joinrel->relids) &&
			!list_member_ptr(join->extra->mergeclause_list, clause))
			return false;
	}
	return true;
}

/*
 * Returns the cheapest path that returns the rows of 'rel' in an order.  If
 * that is a sort that would be taken over, *sort is set to it, and otherwise
 * to NULL.
 */
static Path *
ordered_input(const GsJoin *join, RelOptInfo *rel, List *pathkeys, Path **sort)
{
	Path	   *input = rel->cheapest_total_path;
	Path	   *partial = gpusort_cost_partial_path(rel);
	Path	   *ordered = get_cheapest_path_for_pathkeys(rel->pathlist, pathkeys,
														 NULL, TOTAL_COST, false);

	Path		floor;

	*sort = NULL;
	if (ordered == input)
		return ordered;
	if (ordered != NULL)
	{
		gpusort_cost_sort_floor(input, partial, true, &floor);
		if (ordered->total_cost <= floor.total_cost)
			return ordered;
	}
	*sort = gpusort_cost_cheapest_sort_path(join->root, rel, rel, input, partial,
											pathkeys);
	if (*sort != NULL &&
		(ordered == NULL || (*sort)->total_cost < ordered->total_cost))
		return *sort;
	*sort = NULL;
	if (ordered != NULL)
		return ordered;
	return (Path *) create_sort_path(join->root, rel, input, pathkeys, -1.0);
}

/* Make a path that merges by the given clauses. */
static Path *
merge_path(const GsJoin *join, Path *outer, Path *inner, List *pathkeys,
		   List *clauses)
{
	PlannerInfo *root = join->root;
	JoinCostWorkspace cost;
	MergePath  *path;

	GPUSORT_MERGEJOIN_COST(root, &cost, join->jointype, clauses, outer, inner,
						   join->extra);
	path = GPUSORT_MERGEJOIN_PATH(root, join->joinrel, join->jointype, &cost,
								  join->extra, outer, inner, pathkeys,
								  clauses);

	/*
	 * A sort in memory rereads rows as cheaply as a Material node does.  A
	 * sort on disk would have to merge all runs before it returns a row.
	 */
	if (IsA(inner, SortPath) && !path->skip_mark_restore)
		path->materialize_inner = enable_material &&
			!gpusort_cost_in_memory(inner);
	return (Path *) path;
}

/*
 * Add a path that merges in the order that serves the query best.  The planner
 * considers as many orders as there are keys, with a different key first in
 * each.  Doing so here took too much time.
 */
static void
add_merge_path(const GsJoin *join)
{
	PlannerInfo *root = join->root;
	List	   *outer_keys =
		select_outer_pathkeys_for_merge(root, join->extra->mergeclause_list,
										join->joinrel);
	List	   *clauses =
		find_mergeclauses_for_outer_pathkeys(root, outer_keys,
											 join->extra->mergeclause_list);
	List	   *inner_keys = make_inner_pathkeys_for_merge(root, clauses,
														   outer_keys);
	List	   *pathkeys = build_join_pathkeys(root, join->joinrel,
											   join->jointype, outer_keys);
	Path	   *sorts[2];
	Path	   *outer = ordered_input(join, join->outerrel, outer_keys,
									  &sorts[0]);
	Path	   *inner = ordered_input(join, join->innerrel, inner_keys,
									  &sorts[1]);
	Path	   *path;

	if (sorts[0] == NULL && sorts[1] == NULL)
		return;
	path = merge_path(join, outer, inner, pathkeys, clauses);
	gpusort_cost_prefer(path, sorts, linitial(join->joinrel->pathlist));
	add_path(join->joinrel, path);
}

/*
 * Add a path to compete with a right anti hash join, which returns unmatched
 * rows of the input that it has hashed.  A merge path for the join as it is
 * written has been made earlier, but was not compared with that hash join.
 */
static void
add_path_of_right_anti(const GsJoin *right)
{
	GsJoin		join = *right;
	JoinPathExtraData extra = *right->extra;
	ListCell   *lc;

	join.jointype = JOIN_ANTI;
	join.outerrel = right->innerrel;
	join.innerrel = right->outerrel;
	join.extra = &extra;
	extra.inner_unique = false;
	foreach(lc, extra.mergeclause_list)
		lfirst_node(RestrictInfo, lc)->outer_is_left ^= true;
	add_merge_path(&join);
	foreach(lc, extra.mergeclause_list)
		lfirst_node(RestrictInfo, lc)->outer_is_left ^= true;
}

/*
 * Could a sort below a merge join be taken over?  The planner considers an
 * inner join with each input as the outer one.  Here the larger input must be
 * the outer one, for two reasons: a merge join rereads rows of its inner
 * input, and the hash join to compare with is the one that hashes the smaller
 * input.
 */
static bool
has_sortable_input(const RelOptInfo *joinrel, const RelOptInfo *outerrel,
				   const RelOptInfo *innerrel, JoinType jointype,
				   const JoinPathExtraData *extra)
{
	const Path *outer = outerrel->cheapest_total_path;
	const Path *inner = innerrel->cheapest_total_path;

	return extra->mergeclause_list != NIL &&
		Max(outer->rows, inner->rows) >= gpusort_min_rows &&
		(jointype != JOIN_INNER || outer->rows >= inner->rows) &&
		outer->param_info == NULL && inner->param_info == NULL &&
		joinrel->pathlist != NIL && !IS_OTHER_REL(joinrel);
}

/*
 * Does a merge join compare strings by the rules of a language?  It compares each row with
 * others, which then takes longer than to look it up in a hash table.
 */
static bool
compares_language(const GsJoin *join)
{
	ListCell   *lc;

	foreach(lc, join->extra->mergeclause_list)
	{
		const RestrictInfo *clause = lfirst_node(RestrictInfo, lc);
		Oid			collation = exprInputCollation((Node *) clause->clause);

		if (OidIsValid(collation) &&
			!gpusort_key_encoding_compares_bytes(collation))
			return true;
	}
	return false;
}

static void
add_paths_of_join(const GsJoin *join)
{
	if (gpusort_join_floor_rules_out(join) || compares_language(join))
		return;
	if (GPUSORT_IS_RIGHT_ANTI(join->jointype))
		add_path_of_right_anti(join);
	else if (can_merge(join))
		add_merge_path(join);
}

static void
add_join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			   RelOptInfo *innerrel, JoinType jointype,
			   JoinPathExtraData *extra)
{
	if (prev_set_join_pathlist_hook)
		prev_set_join_pathlist_hook(root, joinrel, outerrel, innerrel,
									jointype, extra);
	if (gpusort_loading_is_wanted() && gpusort_enable &&
		!gpusort_debug_hide && enable_sort &&
		enable_mergejoin &&
		has_sortable_input(joinrel, outerrel, innerrel, jointype, extra))
	{
		GsJoin		join = {
			.root = root,
			.joinrel = joinrel,
			.outerrel = outerrel,
			.innerrel = innerrel,
			.jointype = jointype,
			.extra = extra
		};

		add_paths_of_join(&join);
	}
}

void
gpusort_join_paths_init(void)
{
	prev_set_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = add_join_paths;
}
