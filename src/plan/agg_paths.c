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

#include <math.h>

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "exec/presorted_agg.h"
#include "plan/sort_cost.h"
#include "plan/sort_paths.h"
#include "work.h"

/*
 * What an aggregate's own sort costs per row, in the units of sort_eligibility.h;
 * docs/experiments.md has the measurements.
 */
#define OWN_SORT_ROW		5.0
#define OWN_SORT_LEVEL		0.85	/* for each doubling of the number of
									 * different values in a group */
#define OWN_SORT_VARIABLE	50.0	/* more, if a value is of variable length */
#define OWN_SORT_TUPLE		12.0	/* more, if it sorts several columns */
#define OWN_SORT_DISK		15.0	/* more, if it exceeds work_mem */
#define OWN_SORT_GROUP		150.0	/* to start and end the sort of a group */

/*
 * Large groups of values are sorted by radix.  There, all levels together, and the disk, cost at
 * most this.
 */
#define OWN_RADIX_LEVELS	4.0
#define OWN_RADIX_DISK		5.0

/* What it keeps of a row in addition to values of variable length. */
#define OWN_SORT_BYTES		24

/* An order is chosen among this many at most: those that the first aggregates want. */
#define MOST_ORDERS		32

/*
 * An order is not worth a path if its aggregates' own sorts cost a smaller part of those of all
 * orders.
 */
#define LEAST_PART		0.06

/* An order that aggregates want whose own sorts can be left out. */
typedef struct GsAggOrder
{
	List	   *pathkeys;
	List	   *exprs;			/* that these aggregates compare */
	Cost		own_sorts;		/* what their own sorts cost */
} GsAggOrder;

/* What the statistics say about the first sort key of an aggregate. */
typedef struct GsAggKey
{
	double		null_fraction;
	double		distinct;		/* number of values */
	bool		in_order;		/* are rows in this order already? */
} GsAggKey;

/* ----------------------------------------------------------------
 *		the order that aggregates want
 * ----------------------------------------------------------------
 *
 * An aggregate with DISTINCT or ORDER BY, or an ordered-set aggregate, sorts
 * its arguments by itself.  presorted_agg.c leaves that out if rows come in
 * the right order.  If aggregates want different orders, the one whose sorts
 * cost most is chosen.  Aggregates that share a transition state, such as several percentiles of
 * one column, share a sort.
 *
 * Since 16 the planner chooses an order for aggregates with DISTINCT or ORDER
 * BY.  Then that is the order here, whatever other aggregates there are.
 *
 * A query can have thousands of aggregates.  Each of them is looked at once, and compared with a
 * limited number of orders.
 */

static const AggTransInfo *
transition_of(const PlannerInfo *root, const AggInfo *info)
{
	return list_nth(root->aggtransinfos, info->transno);
}

/*
 * Is this min(), max() or another aggregate that returns the first value by some order, and the
 * same one in any order of rows?  Values that are equal must have the same bytes, as in a btree
 * without duplicates, which excludes numbers such as 1.0 and 1.00, or 0.0 and -0.0.
 */
static bool
is_unique_extreme(const Aggref *aggref)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Oid			operator;
	Oid			opfamily;
	Oid			type;
	Oid			same_image;
	GsOperatorOrder direction;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggref->aggfnoid);
	operator = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop;
	ReleaseSysCache(tuple);
	if (!OidIsValid(operator) ||
		!get_ordering_op_properties(operator, &opfamily, &type, &direction))
		return false;
	same_image = get_opfamily_proc(opfamily, type, type, BTEQUALIMAGE_PROC);
	return OidIsValid(same_image) &&
		DatumGetBool(OidFunctionCall1Coll(same_image, aggref->inputcollid, ObjectIdGetDatum(type)));
}

/*
 * Is the result of an aggregate without an order of its own the same in any
 * order of rows?  Sums of exact numbers are, sums of float8 are not.
 */
static bool
order_is_irrelevant(const Aggref *aggref, Oid transition)
{
	switch (transition)
	{
		case F_INT8INC:
		case F_INT8INC_ANY:
		case F_INT2_SUM:
		case F_INT4_SUM:
		case F_INT2_AVG_ACCUM:
		case F_INT4_AVG_ACCUM:
		case F_INT8_AVG_ACCUM:
		case F_NUMERIC_AVG_ACCUM:
		case F_INT2_ACCUM:
		case F_INT4_ACCUM:
		case F_INT8_ACCUM:
		case F_NUMERIC_ACCUM:
		case F_CASH_PL:
		case F_INT2AND:
		case F_INT4AND:
		case F_INT8AND:
		case F_INT2OR:
		case F_INT4OR:
		case F_INT8OR:
			return true;
		default:
			return is_unique_extreme(aggref);
	}
}

/* Can rows come in any order, as far as the aggregates can tell? */
static bool
rows_may_be_reordered(const PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);
		const Aggref *aggref = GPUSORT_AGGREF_OF(info);

		if (gpusort_agg_order_clauses(aggref) == NIL &&
			!order_is_irrelevant(aggref, transition_of(root, info)->transfn_oid))
			return false;
	}
	return true;
}

/*
 * Has each clause a pathkey of its own?  A column that equals a constant or
 * another column has none.  The executor does not know that, so it would not
 * recognize the order.  Constants have no pathkey either, but it knows them.
 */
static bool
has_all_pathkeys(const List *pathkeys, const List *clauses, List *args)
{
	int			expected = 0;
	ListCell   *lc;

	foreach(lc, clauses)
		if (!IsA(get_sortgroupclause_expr(lfirst(lc), args), Const))
		expected++;
	return list_length(pathkeys) == expected;
}

/*
 * Could the sort of an aggregate be left out?  An aggregate with a FILTER sorts only some
 * of the rows, so no sort of all rows is made for it.
 */
static bool
is_candidate(const PlannerInfo *root, const AggInfo *info)
{
	const AggTransInfo *transition = transition_of(root, info);
	Aggref	   *aggref = GPUSORT_AGGREF_OF(info);

	return aggref->aggfilter == NULL &&
		gpusort_presorted_agg_possible(aggref, transition->transfn_oid,
									   info->finalfn_oid,
									   !transition->initValueIsNull) &&
		!contain_volatile_functions((Node *) aggref);
}

static GsAggKey
look_up_key(PlannerInfo *root, const Aggref *aggref)
{
	const SortGroupClause *clause = linitial(gpusort_agg_order_clauses(aggref));
	Node	   *expr = get_sortgroupclause_expr((SortGroupClause *) clause,
												aggref->args);
	VariableStatData variable;
	GsAggKey	key = {0};
	bool		is_default;

	examine_variable(root, expr, 0, &variable);
	key.distinct = get_variable_numdistinct(&variable, &is_default);
	if (HeapTupleIsValid(variable.statsTuple))
	{
		Form_pg_statistic form =
			(Form_pg_statistic) GETSTRUCT(variable.statsTuple);

		key.null_fraction = form->stanullfrac;
		key.in_order = gpusort_cost_correlation(variable.statsTuple) >= 1;
	}
	ReleaseVariableStats(variable);
	return key;
}

/* Are all arguments of fixed length? */
static bool
is_fixed(const Aggref *aggref)
{
	ListCell   *lc;

	foreach(lc, aggref->args)
		if (get_typlen(exprType((Node *) lfirst_node(TargetEntry, lc)->expr)) < 0)
		return false;
	return true;
}

/* Does it sort single values that are passed by value? */
static bool
is_value(const Aggref *aggref)
{
	const TargetEntry *entry = linitial_node(TargetEntry, aggref->args);

	return list_length(aggref->args) == 1 && get_typbyval(exprType((Node *) entry->expr));
}

/* Returns the cost of an aggregate's own sorts, one for each group. */
static Cost
cost_of_own_sorts(PlannerInfo *root, const Aggref *aggref, double rows,
				  double groups)
{
	GsAggKey	key = look_up_key(root, aggref);
	double		row = OWN_SORT_ROW;
	double		levels = 0;
	double		disk = 0;

	rows *= 1 - key.null_fraction;
	if (list_length(aggref->args) > 1)
		row += OWN_SORT_TUPLE;
	if (!is_fixed(aggref))
		row += OWN_SORT_VARIABLE;
	if (!key.in_order)
		levels = OWN_SORT_LEVEL * log2(Max(Min(rows / groups, key.distinct), 1));
	if (rows / groups * OWN_SORT_BYTES > (double) work_mem * 1024)
		disk = OWN_SORT_DISK;
	if (rows / groups > GPUSORT_FEW_ROWS && is_value(aggref))
	{
		levels = Min(levels, OWN_RADIX_LEVELS);
		disk = Min(disk, OWN_RADIX_DISK);
	}
	row += levels + disk;
	return cpu_operator_cost * (rows * row + groups * OWN_SORT_GROUP);
}

/* Returns an order of the list, or a new one. */
static GsAggOrder *
look_up_order(List **orders, List *pathkeys)
{
	GsAggOrder *order;
	ListCell   *lc;

	foreach(lc, *orders)
	{
		order = lfirst(lc);
		gpusort_work_add(sizeof(GsAggOrder));
		if (equal(order->pathkeys, pathkeys))
			return order;
	}
	order = palloc0(sizeof(GsAggOrder));
	order->pathkeys = pathkeys;
	*orders = lappend(*orders, order);
	return order;
}

static List *
append_exprs_to(List *exprs, const Aggref *aggref)
{
	return list_concat(exprs,
					   get_sortgrouplist_exprs((List *) gpusort_agg_order_clauses(aggref),
											   aggref->args));
}

/* Add an aggregate to its order, if the executor would recognize that. */
static void
add_to_order(PlannerInfo *root, List **orders, const Aggref *aggref, double rows, double groups)
{
	List	   *clauses = (List *) gpusort_agg_order_clauses(aggref);
	List	   *pathkeys = make_pathkeys_for_sortclauses(root, clauses, aggref->args);
	GsAggOrder *order;

	if (pathkeys == NIL || !has_all_pathkeys(pathkeys, clauses, aggref->args))
		return;
	order = look_up_order(orders, pathkeys);
	order->own_sorts += cost_of_own_sorts(root, aggref, rows, groups);
	order->exprs = append_exprs_to(order->exprs, aggref);
}

/* Returns the orders of all aggregates whose sorts could be left out. */
static List *
find_orders(PlannerInfo *root, double rows, double groups)
{
	List	   *orders = NIL;
	Bitmapset  *found = NULL;	/* their transition states */
	ListCell   *lc;

	foreach(lc, root->agginfos)
	{
		const AggInfo *info = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(GPUSORT_WORK_PLANNING);
		if (list_length(orders) == MOST_ORDERS)
			break;
		if (bms_is_member(info->transno, found) || !is_candidate(root, info))
			continue;
		found = bms_add_member(found, info->transno);
		add_to_order(root, &orders, GPUSORT_AGGREF_OF(info), rows, groups);
	}
	return orders;
}

/*
 * Returns the expressions that aggregates sort by which are served by an order: those of a list of
 * orders, and those for which the planner has chosen it.
 */
static List *
exprs_of(const PlannerInfo *root, const List *pathkeys, const List *orders)
{
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, orders)
	{
		const GsAggOrder *order = lfirst(lc);

		if (list_difference_ptr(order->pathkeys, pathkeys) == NIL)
			exprs = list_concat(exprs, order->exprs);
	}
	foreach(lc, root->agginfos)
	{
		const Aggref *aggref = GPUSORT_AGGREF_OF((AggInfo *) lfirst(lc));

		if (GPUSORT_AGG_IS_PRESORTED(aggref))
			exprs = append_exprs_to(exprs, aggref);
	}
	return exprs;
}

/* Returns the order whose sorts cost most, or NULL if they are too small a part of all. */
static const GsAggOrder *
most_expensive(const List *orders)
{
	const GsAggOrder *best = NULL;
	Cost		all = 0;
	ListCell   *lc;

	foreach(lc, orders)
	{
		const GsAggOrder *order = lfirst(lc);

		all += order->own_sorts;
		if (best == NULL || order->own_sorts > best->own_sorts)
			best = order;
	}
	return best != NULL && best->own_sorts >= LEAST_PART * all ? best : NULL;
}

/*
 * Find the order of rows that makes most of the aggregates' own sorts
 * superfluous: that of the groups and then of aggregates.  If the planner has chosen it, it does
 * not cost these sorts anything.  'rows' and 'groups' are estimates.  Returns false if there is
 * none that is worth it, or if rows must not be reordered for it, because the result of another
 * aggregate depends on their order.
 */
static bool
find_order(PlannerInfo *root, double rows, double groups,
		   GsAggOrder *order)
{
	bool		is_chosen =
		list_length(root->group_pathkeys) > GPUSORT_GROUPBY_PATHKEYS(root);
	const GsAggOrder *best;
	List	   *orders;

	if (!is_chosen &&
		(root->parse->hasSubLinks || !rows_may_be_reordered(root) ||
		 list_length(root->group_pathkeys) <
		 list_length(GPUSORT_GROUP_CLAUSE(root))))
		return false;
	orders = find_orders(root, rows, groups);
	best = most_expensive(orders);
	if (!is_chosen && best == NULL)
		return false;
	*order = is_chosen ? (GsAggOrder)
	{
		0
	} : *best;
	order->pathkeys = list_concat_unique_ptr(list_copy(root->group_pathkeys), order->pathkeys);
	order->exprs = exprs_of(root, order->pathkeys, orders);
	return true;
}

/* ----------------------------------------------------------------
 *		paths
 * ----------------------------------------------------------------
 */

/* Which columns of the input are needed above a sort that has these expressions already? */
typedef struct GsColumnUse
{
	const List *columns;
	const List *computed;
	bool		only_vars;		/* are all columns Vars? */
	Bitmapset  *needed;			/* the columns, by number, that are needed
								 * other than for these expressions */
} GsColumnUse;

static bool
are_vars(const List *columns)
{
	ListCell   *lc;

	foreach(lc, columns)
		if (!IsA(lfirst(lc), Var))
		return false;
	return true;
}

/* Most Vars are told apart without a call. */
static bool
is_same(const Node *node, const Node *column)
{
	if (IsA(node, Var) && IsA(column, Var) &&
		((const Var *) node)->varattno != ((const Var *) column)->varattno)
		return false;
	return equal(node, column);
}

/* Is a node a column of the input?  Such a column is needed. */
static bool
add_needed_column(const Node *node, GsColumnUse *use)
{
	ListCell   *lc;

	if (use->only_vars && !IsA(node, Var))
		return false;
	foreach(lc, use->columns)
		if (is_same(node, lfirst(lc)))
	{
		use->needed = bms_add_member(use->needed, foreach_current_index(lc));
		return true;
	}
	return false;
}

static bool
add_needed_columns(Node *node, void *context)
{
	GsColumnUse *use = context;

	if (node == NULL || add_needed_column(node, use) || list_member(use->computed, node))
		return false;
	return expression_tree_walker(node, add_needed_columns, context);
}

/*
 * Make a path compute the expressions that aggregates sort by, if it does not
 * yet.  Otherwise the planner would compute them above a Gather, and sinks
 * could not take the rows.  Columns that only these expressions need, such as
 * the document of a field, are not in the rows then.
 */
static Path *
compute_exprs(const GsSortedNode *group, Path *input, const List *exprs)
{
	PathTarget *target = create_empty_pathtarget();
	GsColumnUse use = {input->pathtarget->exprs, exprs, are_vars(input->pathtarget->exprs), NULL};
	ListCell   *lc;

	add_needed_columns((Node *) group->rel->reltarget->exprs, &use);
	add_needed_columns(group->root->parse->havingQual, &use);
	foreach(lc, input->pathtarget->exprs)
	{
		int			column = foreach_current_index(lc);
		Index		group_ref = get_pathtarget_sortgroupref(input->pathtarget, column);

		if (group_ref > 0 || bms_is_member(column, use.needed))
			add_column_to_pathtarget(target, lfirst(lc), group_ref);
	}
	foreach(lc, exprs)
		if (!IsA(lfirst(lc), Const))
		add_new_column_to_pathtarget(target, lfirst(lc));
	if (equal(target->exprs, input->pathtarget->exprs))
		return input;
	set_pathtarget_cost_width(group->root, target);
	return (Path *) create_projection_path(group->root, group->input_rel, input, target);
}

/* Returns what it takes to compute expressions for a row. */
static Cost
cost_of_exprs(PlannerInfo *root, List *exprs)
{
	QualCost	cost;

	cost_qual_eval(&cost, exprs, root);
	return cost.per_tuple;
}

/* Returns a partial path that computes these expressions, or NULL. */
static Path *
partial_input(const GsSortedNode *group, const GsAggOrder *order)
{
	Path	   *partial = gpusort_cost_partial_path(group->input_rel);

	if (partial == NULL || !is_parallel_safe(group->root, (Node *) order->exprs))
		return NULL;
	return compute_exprs(group, partial, order->exprs);
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

/*
 * Charge paths for what their aggregates sort, which the planner does not.  Otherwise a path that
 * has the order of the query's ORDER BY could win by that.
 */
static void
charge_own_sorts(const RelOptInfo *rel, const GsAggOrder *order)
{
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		AggPath    *path = lfirst(lc);

		if (IsA(path, AggPath) &&
			!pathkeys_contained_in(order->pathkeys, path->subpath->pathkeys))
			path->path.total_cost += order->own_sorts;
	}
}

bool
gpusort_agg_paths_add(const GsSortedNode *group)
{
	PlannerInfo *root = group->root;
	GsSortedNode agg = *group;
	Path	   *sort;
	Path	   *path;
	Path	   *best;
	GsAggOrder	order;

	if (root->numOrderedAggs == 0 || root->parse->groupingSets != NIL ||
		!find_order(root, group->input->rows, group->groups, &order) ||
		pathkeys_contained_in(order.pathkeys, group->input->pathkeys))
		return false;
	best = linitial(group->rel->pathlist);
	if (!sorts_by_itself(best))
		order.own_sorts = 0;
	agg.pathkeys = order.pathkeys;
	agg.input = compute_exprs(group, group->input, order.exprs);
	agg.computed = cost_of_exprs(root, list_difference(agg.input->pathtarget->exprs,
													   group->input->pathtarget->exprs));
	agg.partial = partial_input(group, &order);
	path = gpusort_sorted_node_path(&agg, &sort);
	if (path == NULL)
		return false;
	if (gpusort_sorted_node_divide(&agg, best,
								   Min(path->total_cost - best->total_cost, order.own_sorts)))
	{
		charge_own_sorts(group->rel, &order);
		return true;
	}
	if (path->total_cost >= best->total_cost + order.own_sorts)
		return false;
	if (order.own_sorts > 0)
	{
		Path	   *const sorts[2] = {sort, NULL};

		gpusort_cost_prefer_sort(path, sorts, best);
	}
	add_path(group->rel, path);
	return false;
}
