/*-------------------------------------------------------------------------
 *
 * join_paths.c
 *		Adds merge joins over sorts at GpuSort's cost for the planner.
 *
 * The planner itself considers sorting the inputs of a merge join at stock
 * PostgreSQL's cost.  This adds a path in which each input is put into order
 * in the cheapest way, at least one of them by a sort at GpuSort's cost, and one that all
 * processes compute over divided sorts.
 *
 * Joins of partitions, parameterized paths and partial paths are left alone.  So are joins whose
 * order the genetic optimizer chooses: it tries only some orders, and further paths would make it
 * try others, which may be better or worse.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/float.h"

#include "key/key_encoding.h"
#include "loading.h"
#include "plan/divided_paths.h"
#include "plan/sort_cost.h"
#include "plan/sort_paths.h"
#include "settings.h"
#include "work.h"

/* What it takes to merge a row of either input, in the units of sort_eligibility.h. */
#define MERGE_ROW_COST		5.0

static set_join_pathlist_hook_type prev_set_join_pathlist_hook = NULL;

/* A join for which paths are made: the arguments of set_join_pathlist_hook. */
typedef struct GsJoin
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
} GsJoin;

/* ----------------------------------------------------------------
 *		joins for which a merge cannot win
 * ----------------------------------------------------------------
 *
 * The planner considers thousands of joins for a query of many tables.  Making
 * a merge path for each of them takes a sixth of the time that planning takes
 * in stock PostgreSQL, and nearly all of these paths lose.  So we
 * compute a lower bound of the cost of such a path from a few
 * numbers that are already known, and compare it with the cheapest path of
 * the join.
 *
 * The planner may keep a more expensive path for its order.  But an order is
 * worth at most the cost of sorting the rows of the join.  It is worth nothing
 * if neither a join above nor the query can use it.
 */

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

static Cost
cost_of_part(const Path *path, Selectivity part)
{
	return path->startup_cost + part * (path->total_cost - path->startup_cost);
}

/* Could a sort of this input be taken over? */
static bool
is_sortable(const RelOptInfo *rel)
{
	return rel->cheapest_total_path->rows >= gpusort_settings_plan_rows();
}

/*
 * Returns a lower bound of what a merge pays for an input that is sorted by a GpuSort: what that
 * costs before it returns a row.  A merge need not read all of them.
 */
static Cost
sort_floor(const RelOptInfo *rel)
{
	if (!is_sortable(rel))
		return get_float8_infinity();
	return gpusort_cost_sort_minimum(rel->cheapest_total_path, gpusort_cost_partial_path(rel));
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
 * Returns a lower bound of what an inner merge pays for its rows: each of them,
 * and what it compares and reads again of the inner input, if equal keys of
 * the outer one meet the same inner rows.
 */
static Cost
rows_floor(const GsJoin *join)
{
	double		rows = join->joinrel->rows;
	double		again = join->extra->inner_unique ? 0 :
		Max(rows - join->innerrel->cheapest_total_path->rows, 0);

	if (join->jointype != JOIN_INNER)
		return 0;
	return cpu_tuple_cost * rows + 2 * cpu_operator_cost * again;
}

/*
 * Returns a lower bound of the cost of a merge that has a GpuSort as at least
 * one of its inputs.
 */
static Cost
merge_floor(const GsJoin *join)
{
	Cost		outer = sort_floor(join->outerrel);
	Cost		inner = sort_floor(join->innerrel);

	return Min(outer + input_floor(join, join->innerrel, inner),
			   inner + input_floor(join, join->outerrel, outer)) + rows_floor(join);
}

/*
 * Returns what the order of the rows of a join is worth at most: what PostgreSQL would charge for
 * sorting them.
 */
static Cost
worth_of_order(const GsJoin *join, Path *best)
{
	if (!order_is_useful(join))
		return 0;
	return create_sort_path(join->root, join->joinrel, best, NIL, -1.0)->path.total_cost -
		best->total_cost;
}

/*
 * Could a merge over a sort of this input return its first row before 'best'
 * does?  That is an advantage if not all rows are wanted.
 */
static bool
may_start_first(const RelOptInfo *rel, const Path *best)
{
	return sort_floor(rel) < best->startup_cost;
}

/*
 * Is a path of the join that costs 'floor' at least worse than the best one, whatever its order is
 * worth?
 */
static bool
loses(const GsJoin *join, Path *best, Cost floor)
{
	Cost		limit = best->total_cost + gpusort_cost_hash_misses(best);

	return floor > limit && floor > limit + worth_of_order(join, best);
}

/*
 * Is every merge join over a GpuSort more expensive than the paths that the
 * join has?  The join must already have a path.  The cheapest paths of its
 * inputs must not be parameterized.
 */
static bool
cannot_win(const GsJoin *join)
{
	Path	   *best = linitial(join->joinrel->pathlist);

	if (join->joinrel->consider_startup &&
		(may_start_first(join->outerrel, best) ||
		 may_start_first(join->innerrel, best)))
		return false;
	return loses(join, best, merge_floor(join));
}

/*
 * Does it take longer to sort the inputs in all processes together than to join them in another
 * way?
 */
static bool
cannot_divide(const GsJoin *join)
{
	Path	   *best = gpusort_cost_partial_path(join->joinrel);

	return loses(join, best != NULL ? best : linitial(join->joinrel->pathlist),
				 sort_floor(join->outerrel) + sort_floor(join->innerrel));
}

/* ----------------------------------------------------------------
 *		paths
 * ----------------------------------------------------------------
 */

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

	*sort = NULL;
	if (ordered == input ||
		(ordered != NULL &&
		 ordered->total_cost <= gpusort_cost_sort_minimum(input, partial)))
		return ordered;
	*sort = gpusort_cost_cheapest_sort_path(join->root, rel, input, partial, pathkeys);
	if (*sort != NULL &&
		(ordered == NULL ||
		 (*sort)->total_cost < gpusort_cost_index_scan(join->root, ordered)))
		return *sort;
	*sort = NULL;
	if (ordered != NULL)
		return ordered;
	return (Path *) create_sort_path(join->root, rel, input, pathkeys, -1.0);
}

/* An order in which a join merges its inputs. */
typedef struct GsMergeOrder
{
	List	   *keys[2];		/* pathkeys of the outer and the inner input */
	List	   *clauses;
	List	   *pathkeys;		/* of the join */
} GsMergeOrder;

/*
 * Returns the order that serves the query best.  The planner considers as many
 * orders as there are keys, with a different key first in each.  Doing so here
 * took too much time.
 */
static GsMergeOrder
choose_order(const GsJoin *join)
{
	PlannerInfo *root = join->root;
	GsMergeOrder order;

	order.keys[0] =
		select_outer_pathkeys_for_merge(root, join->extra->mergeclause_list,
										join->joinrel);
	order.clauses =
		find_mergeclauses_for_outer_pathkeys(root, order.keys[0],
											 join->extra->mergeclause_list);
	order.keys[1] = make_inner_pathkeys_for_merge(root, order.clauses,
												  order.keys[0]);
	order.pathkeys = build_join_pathkeys(root, join->joinrel, join->jointype,
										 order.keys[0]);
	return order;
}

/* Make a path that merges in an order. */
static MergePath *
merge_path(const GsJoin *join, const GsMergeOrder *order, Path *outer, Path *inner)
{
	PlannerInfo *root = join->root;
	JoinCostWorkspace cost;
	MergePath  *path;

	GPUSORT_MERGEJOIN_COST(root, &cost, join->jointype, order->clauses, outer, inner,
						   join->extra);
	path = GPUSORT_MERGEJOIN_PATH(root, join->joinrel, join->jointype, &cost,
								  join->extra, outer, inner, order->pathkeys,
								  order->clauses);

	/*
	 * A sort in memory rereads rows as cheaply as a Material node does.  A
	 * sort on disk would have to merge all runs before it returns a row.
	 */
	if (IsA(inner, SortPath) && !path->skip_mark_restore)
		path->materialize_inner = enable_material &&
			!gpusort_cost_in_memory(inner);
	return path;
}

static void
add_merge_path(const GsJoin *join)
{
	GsMergeOrder order = choose_order(join);
	Path	   *sorts[2];
	Path	   *outer = ordered_input(join, join->outerrel, order.keys[0],
									  &sorts[0]);
	Path	   *inner = ordered_input(join, join->innerrel, order.keys[1],
									  &sorts[1]);
	Path	   *path;

	gpusort_work_add(GPUSORT_WORK_PLANNING);
	if (sorts[0] == NULL && sorts[1] == NULL)
		return;
	path = (Path *) merge_path(join, &order, outer, inner);
	gpusort_cost_prefer(path, sorts, linitial(join->joinrel->pathlist));
	add_path(join->joinrel, path);
}

/* ----------------------------------------------------------------
 *		merge joins in all processes
 * ----------------------------------------------------------------
 *
 * Each process merges the rows of both inputs that match, over two sorts that are divided alike.
 */

/*
 * Charge what the planner does not.  It multiplies the rows that a process has of each input, but
 * those that match are in the same process.
 */
static void
charge_merge(const RelOptInfo *joinrel, MergePath *merge)
{
	Path	   *path = &merge->jpath.path;
	double		outer_rows = merge->jpath.outerjoinpath->rows;
	double		inner_rows = merge->jpath.innerjoinpath->rows;
	double		again = merge->skip_mark_restore ? 0 : Max(path->rows - inner_rows, 0);
	double		missed = path->rows * (1 - path->rows / Max(joinrel->rows, 1));

	path->total_cost += cpu_tuple_cost * missed + 2 * cpu_operator_cost * again +
		cpu_operator_cost * MERGE_ROW_COST * (outer_rows + inner_rows);
}

/*
 * Add a partial path that merges these sorts, and a Gather of it if that takes clearly less time
 * than any other way.
 */
static void
add_divided_merge(PlannerInfo *root, RelOptInfo *joinrel, MergePath *merge, Path *const sorts[2])
{
	Path	   *best = linitial(joinrel->pathlist);
	Path	   *partial = gpusort_cost_partial_path(joinrel);
	Cost		other = best->total_cost + gpusort_cost_hash_misses(best);
	MergePath  *copy = makeNode(MergePath);
	Path	   *path = &copy->jpath.path;

	charge_merge(joinrel, merge);

	/*
	 * Another partial path could have it freed, but not what a Gather refers
	 * to.
	 */
	*copy = *merge;
	if (partial != NULL)
	{
		Cost		time = partial->total_cost + gpusort_cost_hash_misses(partial);

		other = Min(other, time + parallel_setup_cost);
		if (gpusort_divided_is_better(path->total_cost * gpusort_divided_share(root, path), time))
			gpusort_cost_prefer_sort(path, sorts, partial);
	}
	add_partial_path(joinrel, path);
	gpusort_divided_path_add(root, joinrel, &merge->jpath.path, &merge->jpath.path, 0,
							 joinrel->rows, other, best);
}

static void
add_divided_path(const GsJoin *join)
{
	GsMergeOrder order = choose_order(join);
	RelOptInfo *const rels[2] = {join->outerrel, join->innerrel};
	Path	   *sorts[2];

	gpusort_work_add(GPUSORT_WORK_PLANNING);
	if (list_length(order.clauses) == list_length(order.keys[0]) &&
		gpusort_divided_pair_paths(join->root, rels, order.keys, sorts))
		add_divided_merge(join->root, join->joinrel,
						  merge_path(join, &order, sorts[0], sorts[1]), sorts);
}

/*
 * Could a sort below a merge join be taken over?  The planner considers an
 * inner join with each input as the outer one.  Here the larger input must be
 * the outer one, for two reasons: a merge join rereads rows of its inner
 * input, and the hash join to compare with is the one that hashes the smaller
 * input.
 */
static bool
has_sortable_input(const GsJoin *join)
{
	const Path *outer = join->outerrel->cheapest_total_path;
	const Path *inner = join->innerrel->cheapest_total_path;

	return join->extra->mergeclause_list != NIL &&
		(is_sortable(join->outerrel) || is_sortable(join->innerrel)) &&
		(join->jointype != JOIN_INNER || outer->rows >= inner->rows) &&
		outer->param_info == NULL && inner->param_info == NULL &&
		join->joinrel->pathlist != NIL && !IS_OTHER_REL(join->joinrel);
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

/* May processes each have a part of the rows of the join? */
static bool
may_divide(const GsJoin *join)
{
	if (!join->joinrel->consider_parallel || gpusort_debug_divide == GS_OFF ||
		!bms_is_empty(join->joinrel->lateral_relids) ||
		gpusort_cost_partial_path(join->outerrel) == NULL ||
		gpusort_cost_partial_path(join->innerrel) == NULL ||
		!is_sortable(join->outerrel) || !is_sortable(join->innerrel))
		return false;
	return gpusort_debug_divide == GS_ON ||
		(!compares_language(join) && !cannot_divide(join));
}

static void
add_paths_of_join(const GsJoin *join)
{
	if (!cannot_win(join) && !compares_language(join))
		add_merge_path(join);
	if (may_divide(join))
		add_divided_path(join);
}

/*
 * Add paths to compete with a right anti hash join, which returns unmatched
 * rows of the input that it has hashed.  A merge path for the join as it is
 * written has been made earlier, but was not compared with that hash join.
 */
static void
add_paths_of_right_anti(const GsJoin *right)
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
	add_paths_of_join(&join);
	foreach(lc, extra.mergeclause_list)
		lfirst_node(RestrictInfo, lc)->outer_is_left ^= true;
}

static void
add_join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			   RelOptInfo *innerrel, JoinType jointype,
			   JoinPathExtraData *extra)
{
	GsJoin		join = {root, joinrel, outerrel, innerrel, jointype, extra};

	if (prev_set_join_pathlist_hook)
		prev_set_join_pathlist_hook(root, joinrel, outerrel, innerrel,
									jointype, extra);
	if (!gpusort_loading_is_wanted() || !gpusort_enable || gpusort_debug_hide ||
		!enable_sort || !enable_mergejoin || GPUSORT_IS_GENETIC(root) ||
		!has_sortable_input(&join))
		return;
	if (GPUSORT_IS_RIGHT_ANTI(jointype))
		add_paths_of_right_anti(&join);
	else if (can_merge(&join))
		add_paths_of_join(&join);
}

void
gpusort_join_paths_init(void)
{
	prev_set_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = add_join_paths;
}
