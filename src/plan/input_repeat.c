/*-------------------------------------------------------------------------
 *
 * input_repeat.c
 *		Visits plans, and determines whether the input of a sort can be read a second time.
 *
 * A sort that loses its rows with a GPU before it has returned any of them reads its
 * input again.  That is correct only if the input returns the same rows.
 *
 * The input is read with the same snapshot both times, so the rest depends on
 * the nodes.  Nodes that are not listed here, such as those for foreign tables
 * and those of other extensions, cannot be repeated.  Neither can nodes with
 * side effects, nor anything with a volatile function.
 *
 * Nodes whose result depends on the order of their input need special care: if
 * the input may come in another order, they may return other rows.  That is
 * true not only of LIMIT.  A group is represented by its first row, and equal
 * values can look different; the sum of floats depends on their order; and so
 * does the number of a row in its window.
 *
 * Sorts can be stacked, one for each window of a query.  They are judged from the lowest one
 * up, so the search stops at a sort that has been judged.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "nodes/extensible.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/syscache.h"

#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "exec/sink_node.h"
#include "plan/finished_plans.h"
#include "work.h"

/* How the output of a node comes again. */
typedef enum GsInputRepeat
{
	GS_INPUT_ONCE,				/* not at all, or it might be other rows */
	GS_INPUT_SAME_ROWS,			/* in any order */
	GS_INPUT_SAME_ORDER
} GsInputRepeat;

typedef struct RepeatSearch
{
	GsInputRepeat repeat;		/* the least one of the plans visited */
	bool		below_gather;
	bool		uses_subplans;	/* does any plan visited use them? */
} RepeatSearch;

/* PostgreSQL has a walker for trees of plan states, but not for plans. */
void
gpusort_plan_children_visit_list(List *plans, GsChildVisitor visit,
								 void *context)
{
	ListCell   *lc;

	/* The planner leaves NULL where it has dropped an unused subplan. */
	foreach(lc, plans)
		if (lfirst(lc) != NULL)
		visit((Plan **) &lfirst(lc), context);
}

void
gpusort_plan_children_visit(Plan *plan, GsChildVisitor visit, void *context)
{
	List	   *others = NIL;

	if (plan->lefttree != NULL)
		visit(&plan->lefttree, context);
	if (plan->righttree != NULL)
		visit(&plan->righttree, context);
	switch (nodeTag(plan))
	{
		case T_SubqueryScan:
			visit(&((SubqueryScan *) plan)->subplan, context);
			break;
		case T_Append:
			others = ((Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			others = ((MergeAppend *) plan)->mergeplans;
			break;
		case T_BitmapAnd:
			others = ((BitmapAnd *) plan)->bitmapplans;
			break;
		case T_BitmapOr:
			others = ((BitmapOr *) plan)->bitmapplans;
			break;
		case T_CustomScan:
			others = ((CustomScan *) plan)->custom_plans;
			break;
		default:
			break;
	}
	gpusort_plan_children_visit_list(others, visit, context);
}

/* Is a CustomScan the node that this function makes the state of? */
static bool
is_made_by(const Plan *plan, Node *(*create_state) (CustomScan *scan))
{
	return ((const CustomScan *) plan)->methods->CreateCustomScanState == create_state;
}

static bool
is_gather(const Plan *plan)
{
	return IsA(plan, Gather) || IsA(plan, GatherMerge);
}

/* Is this an entry of a target list that is an input column or a constant, as most are? */
static bool
is_plain_entry(const Node *node)
{
	const Expr *expr;

	if (!IsA(node, TargetEntry))
		return false;
	expr = ((const TargetEntry *) node)->expr;
	return IsA(expr, Var) || IsA(expr, Const);
}

/*
 * Add an expression to a list, or those of a list of expressions, but none that clearly has
 * neither functions nor subplans.
 */
static List *
add_expression(List *list, const void *expression)
{
	ListCell   *lc;

	if (expression == NULL)
		return list;
	if (!IsA(expression, List))
		return lappend(list, unconstify(void *, expression));
	foreach(lc, (const List *) expression)
		if (lfirst(lc) != NULL && !is_plain_entry(lfirst(lc)))
		list = lappend(list, lfirst(lc));
	return list;
}

/*
 * Returns all expressions of a node that may have functions or subplans, as a
 * list of nodes.  This has to be cheap, because a plan over
 * partitions may have thousands of nodes.
 */
static List *
expressions_of(const Plan *plan)
{
	List	   *list = add_expression(NIL, plan->targetlist);

	list = add_expression(list, plan->qual);
	list = add_expression(list, plan->initPlan);

#define ADD(type, field)	add_expression(list, ((const type *) plan)->field)
	switch (nodeTag(plan))
	{
		case T_Result:
			return ADD(Result, resconstantqual);
		case T_IndexScan:
			list = ADD(IndexScan, indexqualorig);
			return ADD(IndexScan, indexorderbyorig);
		case T_IndexOnlyScan:
			list = ADD(IndexOnlyScan, indexqual);
			list = ADD(IndexOnlyScan, recheckqual);
			return ADD(IndexOnlyScan, indexorderby);
		case T_BitmapIndexScan:
			return ADD(BitmapIndexScan, indexqualorig);
		case T_BitmapHeapScan:
			return ADD(BitmapHeapScan, bitmapqualorig);
		case T_TidScan:
			return ADD(TidScan, tidquals);
		case T_TidRangeScan:
			return ADD(TidRangeScan, tidrangequals);
		case T_FunctionScan:
			return ADD(FunctionScan, functions);
		case T_TableFuncScan:
			return ADD(TableFuncScan, tablefunc);
		case T_ValuesScan:
			return ADD(ValuesScan, values_lists);
		case T_CustomScan:
			list = ADD(CustomScan, custom_exprs);
			return ADD(CustomScan, custom_scan_tlist);
		case T_NestLoop:
			return ADD(Join, joinqual);
		case T_MergeJoin:
			list = ADD(MergeJoin, mergeclauses);
			return ADD(Join, joinqual);
		case T_HashJoin:
			list = ADD(HashJoin, hashclauses);
			return ADD(Join, joinqual);
		case T_Memoize:
			return ADD(Memoize, param_exprs);
		case T_WindowAgg:
			list = ADD(WindowAgg, startOffset);
			list = ADD(WindowAgg, endOffset);
			return ADD(WindowAgg, runConditionOrig);
		case T_Limit:
			list = ADD(Limit, limitOffset);
			return ADD(Limit, limitCount);
		default:
			return list;
	}
#undef ADD
}

/*
 * Do scans of an index return the same entries in the same order each time?  A
 * btree keeps its entries in order.  In other indexes, concurrent changes such
 * as page splits may reorder entries.
 */
static bool
index_keeps_order(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	bool		is_btree;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", index);
	is_btree = ((Form_pg_class) GETSTRUCT(tuple))->relam == BTREE_AM_OID;
	ReleaseSysCache(tuple);
	return is_btree;
}

/*
 * Returns how the output of a node can be repeated, given its input.  For a
 * node without input, that is GS_INPUT_SAME_ORDER.
 */
static GsInputRepeat
repeat_of_node(const Plan *plan, GsInputRepeat input)
{
	GsInputRepeat any_order = Min(input, GS_INPUT_SAME_ROWS);
	GsInputRepeat needs_order =
		input == GS_INPUT_SAME_ORDER ? GS_INPUT_SAME_ORDER : GS_INPUT_ONCE;

	switch (nodeTag(plan))
	{
			/* A rescan starts at the same block. */
		case T_SeqScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_FunctionScan:
		case T_TableFuncScan:
		case T_ValuesScan:
			/* Subplans are judged separately. */
		case T_CteScan:
		case T_Result:
		case T_ProjectSet:
		case T_SubqueryScan:
		case T_Append:
		case T_MergeAppend:
		case T_BitmapIndexScan:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_NestLoop:
		case T_MergeJoin:
		case T_Hash:
		case T_Material:
		case T_Memoize:

			/*
			 * A stock sort is not stable, but is deterministic for the same
			 * input.
			 */
		case T_Sort:
		case T_IncrementalSort:
			return input;

		case T_IndexScan:
			return index_keeps_order(((const IndexScan *) plan)->indexid) ?
				input : any_order;
		case T_IndexOnlyScan:
			return index_keeps_order(((const IndexOnlyScan *) plan)->indexid) ?
				input : any_order;

			/*
			 * Exact and lossy pages of a bitmap return their rows in
			 * different orders.  Which pages are lossy depends also on index
			 * entries of rows that are not visible to us.
			 */
		case T_BitmapHeapScan:
			/* The batches depend on statistics, which may have changed. */
		case T_HashJoin:
		case T_Gather:
		case T_GatherMerge:
			return any_order;

			/*
			 * A GpuSort is stable, except for rows that did not fit in the
			 * memory of a GPU.  That may happen in one scan and not in the
			 * next.  A GpuIncrementalSort is stable.
			 */
		case T_CustomScan:
			if (is_made_by(plan, gpusort_sink_create_state) ||
				is_made_by(plan, gpusort_incremental_create_state))
				return input;
			return is_made_by(plan, gpusort_node_create_state) ? any_order : GS_INPUT_ONCE;

			/*
			 * If groups spill to disk, they spill differently the next time,
			 * because the node has learned the size of its entries.
			 */
		case T_Agg:
			if (((const Agg *) plan)->aggstrategy == AGG_HASHED ||
				((const Agg *) plan)->aggstrategy == AGG_MIXED)
				return Min(needs_order, GS_INPUT_SAME_ROWS);
			return needs_order;

		case T_Group:
		case T_Unique:
		case T_SetOp:
		case T_WindowAgg:
		case T_Limit:
			return needs_order;

		default:
			return GS_INPUT_ONCE;
	}
}

/*
 * Has this plan been judged, as the input of a sort?  A process that reads its part of a
 * table cannot repeat that by itself, but all processes below a Gather together can.  So a
 * sort in such a process may have to be judged again.
 */
static bool
is_judged(const Plan *plan, bool below_gather)
{
	return IsA(plan, CustomScan) && is_made_by(plan, gpusort_node_create_state) &&
		(!below_gather ||
		 gpusort_private_traits((const CustomScan *) plan).repeatable);
}

/* Determine how a plan can be repeated.  A GsChildVisitor. */
static void
examine_plan(Plan **link, void *context)
{
	const Plan *plan = *link;
	RepeatSearch *search = context;
	RepeatSearch below = {
		.repeat = GS_INPUT_SAME_ORDER,
		.below_gather = search->below_gather || is_gather(plan)
	};
	Node	   *expressions;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_PLANNING);

	if (is_judged(plan, search->below_gather))
	{
		/*
		 * It returns its rows in any order of ties.  The subplans of its
		 * input have been judged as well, but not those of the node itself.
		 */
		search->uses_subplans |= plan->initPlan != NIL;
		search->repeat = Min(search->repeat,
							 gpusort_private_traits((const CustomScan *) plan).repeatable ?
							 GS_INPUT_SAME_ROWS : GS_INPUT_ONCE);
		return;
	}
	gpusort_plan_children_visit(*link, examine_plan, &below);
	below.repeat = repeat_of_node(plan, below.repeat);

	/* Each process gets some of the rows, and different ones each time. */
	if (plan->parallel_aware && !is_gather(plan))
		below.repeat = search->below_gather ?
			Min(below.repeat, GS_INPUT_SAME_ROWS) : GS_INPUT_ONCE;

	/*
	 * Nothing else matters then, and the lists of a window above a GpuSort
	 * may be long.
	 */
	if (below.repeat == GS_INPUT_ONCE)
	{
		search->repeat = GS_INPUT_ONCE;
		return;
	}
	expressions = (Node *) expressions_of(plan);
	if (contain_volatile_functions(expressions))
		below.repeat = GS_INPUT_ONCE;

	search->repeat = Min(search->repeat, below.repeat);
	search->uses_subplans |= below.uses_subplans || IsA(plan, CteScan) ||
		contain_subplans(expressions);
}

/*
 * Can all subplans be repeated in the same order?  An array that is made of a subplan's
 * rows depends on it.
 */
static bool
subplans_keep_order(GsSubplans *subplans)
{
	RepeatSearch search = {.repeat = GS_INPUT_SAME_ORDER};

	if (subplans->judged)
		return subplans->keep_order;
	gpusort_plan_children_visit_list(subplans->plans, examine_plan, &search);
	subplans->judged = true;
	subplans->keep_order = search.repeat == GS_INPUT_SAME_ORDER;
	return subplans->keep_order;
}

bool
gpusort_input_is_repeatable(const Plan *plan, GsSubplans *subplans)
{
	Plan	   *top = unconstify(Plan *, plan);
	RepeatSearch search = {.repeat = GS_INPUT_SAME_ORDER};

	examine_plan(&top, &search);

	/* We do not know which subplans are used here, so consider all of them. */
	return search.repeat != GS_INPUT_ONCE &&
		(!search.uses_subplans || subplans_keep_order(subplans));
}
