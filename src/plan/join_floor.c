/*-------------------------------------------------------------------------
 *
 * join_floor.c
 *		Rules out joins for which a merge at GpuSort's cost cannot win.
 *
 * The planner considers thousands of joins for a query of many tables.  Making
 * a merge path for each of them takes a sixth of the time that planning takes
 * in stock PostgreSQL, and nearly all of these paths lose.  This file
 * therefore computes a lower bound of the cost of such a path from a few
 * numbers that are already known, and compares it with the cheapest path of
 * the join.
 *
 * The planner may keep a more expensive path for its order.  But an order is
 * worth at most the cost of sorting the rows of the join.  It is worth nothing
 * if neither a join above nor the query can use it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"

#include "plan/join_floor.h"
#include "plan/sort_cost.h"
#include "settings.h"

/* Is an order by the keys of a clause useful for the query? */
static bool
orders_query(const PlannerInfo *root, const RestrictInfo *clause)
{
	ListCell   *lc;

	foreach(lc, root->query_pathkeys)
	{
		const PathKey *pathkey = lfirst_node(PathKey, lc);

		if (pathkey->pk_eclass == clause->left_ec ||
			pathkey->pk_eclass == clause->right_ec)
			return true;
	}
	return false;
}

/* Can an order by the keys of the join save a sort above it? */
static bool
order_is_useful(const GsJoin *join)
{
	Relids		relids = join->joinrel->relids;
	ListCell   *lc;

	foreach(lc, join->extra->mergeclause_list)
	{
		const RestrictInfo *clause = lfirst_node(RestrictInfo, lc);

		if (!bms_is_subset(clause->left_ec->ec_relids, relids) ||
			!bms_is_subset(clause->right_ec->ec_relids, relids) ||
			orders_query(join->root, clause))
			return true;
	}
	return false;
}

/*
 * Returns the clause that a merge begins with if this path is its input, or
 * NULL if the order of the path matches no clause.
 */
static const RestrictInfo *
first_clause(const GsJoin *join, const Path *path, bool outer)
{
	const PathKey *key = linitial_node(PathKey, path->pathkeys);
	ListCell   *lc;

	foreach(lc, join->extra->mergeclause_list)
	{
		const RestrictInfo *clause = lfirst_node(RestrictInfo, lc);

		if (key->pk_eclass == (clause->outer_is_left == outer ?
							   clause->left_ec : clause->right_ec))
			return clause;
	}
	return NULL;
}

/*
 * Returns a lower bound of the part of an input that a merge by a clause
 * reads, from the planner's estimates so far.  A merge stops when the other
 * input ends.
 */
static Selectivity
part_by_clause(const RestrictInfo *clause, bool outer)
{
	Selectivity part = clause->scansel_cache == NIL ? 0 : 1;
	ListCell   *lc;

	foreach(lc, clause->scansel_cache)
	{
		MergeScanSelCache *cached = lfirst(lc);

		part = Min(part, clause->outer_is_left == outer ?
				   cached->leftendsel : cached->rightendsel);
	}
	return part;
}

/* The same for a merge by any of the clauses. */
static Selectivity
least_part(const GsJoin *join, bool outer)
{
	Selectivity part = 1;
	ListCell   *lc;

	foreach(lc, join->extra->mergeclause_list)
		part = Min(part, part_by_clause(lfirst_node(RestrictInfo, lc), outer));
	return part;
}

static Cost
cost_of_part(const Path *path, Selectivity part)
{
	return path->startup_cost + part * (path->total_cost - path->startup_cost);
}

/* Could a sort of this input be taken over? */
static bool
is_sortable(const RelOptInfo *rel)
{
	return rel->cheapest_total_path->rows >= gpusort_min_rows;
}

/* Returns a lower bound of the startup cost of a GpuSort of this input. */
static Cost
sort_minimum(const RelOptInfo *rel, bool caution)
{
	return gpusort_cost_sort_minimum(rel->cheapest_total_path,
									 gpusort_cost_partial_path(rel), caution);
}

/*
 * Returns a lower bound of what a merge pays for an input that is sorted by a
 * GpuSort.
 */
static Cost
sort_floor(const GsJoin *join, const RelOptInfo *rel, bool caution)
{
	Path		sort;

	if (!is_sortable(rel))
		return get_float8_infinity();
	gpusort_cost_sort_floor(rel->cheapest_total_path,
							gpusort_cost_partial_path(rel), caution, &sort);
	return cost_of_part(&sort, least_part(join, rel == join->outerrel));
}

/*
 * Returns a lower bound of what a merge pays for an input that is put into
 * order in any way.  'sorted' is the bound for a GpuSort of this input.
 */
static Cost
input_floor(const GsJoin *join, const RelOptInfo *rel, Cost sorted)
{
	bool		outer = rel == join->outerrel;
	Cost		floor = is_sortable(rel) ? sorted :
		rel->cheapest_total_path->total_cost;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		const Path *path = lfirst(lc);
		const RestrictInfo *clause;

		if (path->pathkeys == NIL || path->param_info != NULL)
			continue;
		clause = first_clause(join, path, outer);
		if (clause != NULL)
			floor = Min(floor,
						cost_of_part(path, part_by_clause(clause, outer)));
	}
	return floor;
}

/*
 * Returns a lower bound of the cost of a merge that has a GpuSort as at least
 * one of its inputs.  The bound need not be tight if it exceeds 'limit'.
 */
static Cost
merge_floor(const GsJoin *join, bool caution, Cost limit)
{
	/* Every path is charged for the rows that it returns. */
	Cost		rows = join->jointype == JOIN_INNER ?
		cpu_tuple_cost * join->joinrel->rows : 0;
	Cost		outer;
	Cost		inner;
	Cost		floor = get_float8_infinity();

	if (is_sortable(join->outerrel))
		floor = sort_minimum(join->outerrel, caution);
	if (is_sortable(join->innerrel))
		floor = Min(floor, sort_minimum(join->innerrel, caution));
	if (floor + rows > limit)
		return floor + rows;
	outer = sort_floor(join, join->outerrel, caution);
	inner = sort_floor(join, join->innerrel, caution);
	return Min(outer + input_floor(join, join->innerrel, inner),
			   inner + input_floor(join, join->outerrel, outer)) + rows;
}

/*
 * Could a merge over a sort of this input return its first row before 'best'
 * does?  That is an advantage if not all rows are wanted.
 */
static bool
may_start_first(const RelOptInfo *rel, const Path *best)
{
	return is_sortable(rel) && sort_minimum(rel, false) < best->startup_cost;
}

bool
gpusort_join_floor_rules_out(const GsJoin *join)
{
	const Path *best = linitial(join->joinrel->pathlist);
	Cost		misses = gpusort_cost_hash_misses(best);
	Cost		limit = best->total_cost + misses;
	Path		sort;

	if (join->joinrel->consider_startup &&
		(may_start_first(join->outerrel, best) ||
		 may_start_first(join->innerrel, best)))
		return false;
	if (merge_floor(join, misses == 0, limit) <= limit)
		return false;
	if (!order_is_useful(join))
		return true;
	gpusort_cost_sort_floor(best, NULL, true, &sort);
	limit += sort.total_cost - best->total_cost;
	return merge_floor(join, misses == 0, limit) > limit;
}
