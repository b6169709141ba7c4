/*-------------------------------------------------------------------------
 *
 * plan_swap.c
 *		Replaces Sort and IncrementalSort nodes in finished plans.
 *
 * A GpuSort does the same as the Sort that it replaces, anywhere in a plan: as
 * an input of a merge join or a window, in a subplan, or below a Gather.  So
 * the planner chooses the plan, and then the finished plan is searched for
 * eligible Sorts.  Each of them is replaced with a GpuSort that has the same
 * input and output, and each eligible IncrementalSort with a GpuIncrementalSort.
 *
 * If only a few rows of a Sort are wanted, stock PostgreSQL keeps them in a
 * heap.  Such a Sort is better left alone, if that is already known.  The
 * search therefore passes the bound of a Limit down as the executor does (see
 * limit_bound.c).
 *
 * With pg_gpusort.debug_hide, plans are searched when their execution starts
 * instead, and not at all if EXPLAIN will show them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/builtins.h"

#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "exec/limit_bound.h"
#include "exec/sink_node.h"
#include "key/key_statistics.h"
#include "loading.h"
#include "plan/finished_plans.h"
#include "plan/plan_swap.h"
#include "plan/sort_eligibility.h"
#include "settings.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "sort/gpu/gpu_session.h"
#include "work.h"

static planner_hook_type prev_planner_hook = NULL;
static ExecutorStart_hook_type prev_ExecutorStart_hook = NULL;

/* The plan nodes. */
static const CustomScanMethods sort_methods = {"GpuSort", gpusort_node_create_state};
static const CustomScanMethods incremental_methods =
{"GpuIncrementalSort", gpusort_incremental_create_state};
static const CustomScanMethods sink_methods = {"GpuSortSink", gpusort_sink_create_state};
static const CustomScanMethods pack_methods = {"GpuSortPack", gpusort_pack_create_state};
static const CustomScanMethods unpack_methods = {"GpuSortUnpack", gpusort_unpack_create_state};

/* The scanrelid of a divided sort until the planner has changed the columns of all nodes. */
#define NOT_FINISHED		1

/*
 * Rows are packed that come from a divided sort of at least this many rows in each process.  How
 * many of them pass the Gather, after conditions on windows and groups, is hardly known.
 */
#define MIN_PACKED_ROWS		10000

/* A statement whose sorts are replaced. */
typedef struct GsSwapStatement
{
	const PlannedStmt *planned;
	GsSubplans	subplans;
	int			last_id;		/* the greatest plan_node_id, or 0 before it
								 * is needed */
	List	   *columns;		/* the target list of the last node made in
								 * the place of a sort, or NIL */
	GsStringWords string_words; /* of the last sort */
	bool		any_divided;	/* is any sort divided? */
} GsSwapStatement;

/* What a parent passes to its child. */
typedef struct GsSwapContext
{
	double		bound;			/* how many of its rows are wanted at most */
	GsSwapStatement *statement;
} GsSwapContext;

/* ----------------------------------------------------------------
 *		nodes
 * ----------------------------------------------------------------
 *
 * A GpuSort is a CustomScan that scans no relation.  Its input is in lefttree,
 * as in a Sort.  custom_scan_tlist is the Sort's target list and describes the
 * input rows; the node's own target list refers to those columns.
 * custom_private holds the Sort itself (see exec/gpusort_private.c).
 */

/* Make an entry of a target list for a column of another target list. */
static TargetEntry *
make_column_entry(const TargetEntry *column, int varno)
{
	TargetEntry *entry = flatCopyTargetEntry(unconstify(TargetEntry *, column));

	entry->expr = (Expr *) makeVar(varno, column->resno,
								   exprType((Node *) column->expr),
								   exprTypmod((Node *) column->expr),
								   exprCollation((Node *) column->expr), 0);
	return entry;
}

/*
 * Is an entry, made for a column at the same position, as one made for this column would be?  Only
 * Vars are compared, since they are most columns, and quickly.
 */
static bool
describes_column(const TargetEntry *entry, const TargetEntry *column)
{
	const Var  *var = (const Var *) entry->expr;
	const Var  *from = (const Var *) column->expr;

	return IsA(from, Var) &&
		var->vartype == from->vartype &&
		var->vartypmod == from->vartypmod &&
		var->varcollid == from->varcollid &&
		entry->resname == column->resname &&
		entry->ressortgroupref == column->ressortgroupref &&
		entry->resorigtbl == column->resorigtbl &&
		entry->resorigcol == column->resorigcol &&
		entry->resjunk == column->resjunk;
}

/*
 * Make a target list of the columns of another target list, as Vars of the
 * scan tuple (INDEX_VAR) or of the input (OUTER_VAR).  It takes what entries it can from
 * 'similar', a list that was made with the same varno: a sort for each of many windows has the
 * columns of the sort below and a few more.
 */
static List *
make_column_tlist(const List *columns, int varno, const List *similar)
{
	List	   *tlist = list_copy(columns);
	ListCell   *lc;

	foreach(lc, tlist)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, lc);
		int			n = foreach_current_index(lc);
		TargetEntry *entry = n < list_length(similar) ? list_nth(similar, n) : NULL;

		lfirst(lc) = entry != NULL && describes_column(entry, column) ?
			entry : make_column_entry(column, varno);
	}
	return tlist;
}

/*
 * Make a node in the place of a Sort or an IncrementalSort.  It still has the target list of the
 * sort.
 */
static CustomScan *
make_sort_node(const Sort *sort, GsSortTraits traits, uint32 flags,
			   const CustomScanMethods *methods)
{
	CustomScan *node = makeNode(CustomScan);

	memcpy(&node->scan.plan, &sort->plan, sizeof(Plan));
	node->scan.plan.type = T_CustomScan;
	node->scan.scanrelid = 0;
	node->flags = flags;
	node->custom_scan_tlist = sort->plan.targetlist;
	node->custom_private = gpusort_private_make(sort, traits);
	node->methods = methods;
	return node;
}

/* Give such a node its own target list. */
static Plan *
with_columns(CustomScan *node, GsSwapStatement *statement)
{
	statement->columns = make_column_tlist(node->custom_scan_tlist, INDEX_VAR,
										   statement->columns);
	node->scan.plan.targetlist = statement->columns;
	return &node->scan.plan;
}

/*
 * Find out from statistics what the words of the sort keys tell apart.  traits->ties is whether a
 * GPU would leave most rows as ties: it does not look at what follows the first words of a string,
 * which is the rest of that string and the keys after it.  Two sorts that are divided alike have
 * keys alike.
 */
static void
judge_keys(const GsSortKeys *keys, const Plan *sort, GsSwapStatement *statement,
		   GsSortTraits *traits)
{
	GsTableColumn *columns = palloc(keys->nkeys * sizeof(GsTableColumn));

	for (int k = 0; k < keys->nkeys; k++)
		columns[k] = gpusort_plan_column(outerPlan(sort), keys->attnos[k], statement->planned);
	if (gpusort_gpu_session_check(sort->plan_rows, false) == GS_REASON_NONE)
		traits->ties = gpusort_key_statistics_expect_ties(keys, columns, sort->plan_rows);
	if (!traits->paired &&
		gpusort_gpu_session_check(sort->plan_rows, traits->ties) != GS_REASON_NONE)
	{
		traits->enough = gpusort_key_statistics_enough(columns, keys->nkeys, sort->plan_rows);
		traits->short_values = gpusort_key_statistics_short_values(keys, columns,
																   sort->plan_rows);
		traits->string_words = gpusort_key_statistics_string_words(keys, columns,
																   sort->plan_rows,
																   &statement->string_words);
	}
	pfree(columns);
}

Plan *
gpusort_plan_divided_sort(const Sort *sort, int divided, bool paired)
{
	GsSortTraits traits = {.divided = divided,.paired = paired};
	CustomScan *node = make_sort_node(sort, traits, 0, &sort_methods);

	/*
	 * Without this, the planner would look for each column among all, by its
	 * expression: planning 100 windows would take three times as long.
	 */
	node->scan.scanrelid = NOT_FINISHED;
	node->custom_scan_tlist = NIL;
	return &node->scan.plan;
}

/* When the planner has changed the columns of all nodes: describe them as in other nodes. */
static void
finish_divided_sort(CustomScan *node, GsSwapStatement *statement)
{
	GsSortKeys	keys = gpusort_private_keys(node);
	GsSortTraits traits = gpusort_private_traits(node);

	judge_keys(&keys, &node->scan.plan, statement, &traits);
	node->custom_private = gpusort_private_make(linitial_node(Sort, node->custom_private), traits);
	node->custom_scan_tlist = make_column_tlist(outerPlan(node)->targetlist, OUTER_VAR,
												NIL);
	with_columns(node, statement);
	node->scan.scanrelid = 0;
	statement->any_divided = true;
}

/*
 * Make a node that returns the columns of 'input', and is executed where that is.  'plan_node_id'
 * must not be in use.
 */
static CustomScan *
make_node_over(Plan *input, int plan_node_id, const CustomScanMethods *methods)
{
	CustomScan *node = makeNode(CustomScan);
	Plan	   *plan = &node->scan.plan;

	memcpy(plan, input, sizeof(Plan));
	plan->type = T_CustomScan;
	plan->plan_node_id = plan_node_id;
	plan->parallel_aware = false;
	plan->targetlist = make_column_tlist(input->targetlist, INDEX_VAR, NIL);
	plan->qual = NIL;
	plan->initPlan = NIL;
	plan->lefttree = input;
	plan->righttree = NULL;
	node->scan.scanrelid = 0;

	/*
	 * The expressions of the input refer to the input's own inputs, so they
	 * cannot be copied.
	 */
	node->custom_scan_tlist = make_column_tlist(input->targetlist, OUTER_VAR, NIL);
	node->methods = methods;
	return node;
}

/*
 * Make a GpuSortSink node over a partial plan, to be put below the Gather that
 * is the input of 'sort'.  It has the same keys as the node of the sort.
 */
static CustomScan *
make_sink(const Sort *sort, const GsSortTraits *of_sort, Plan *partial, int plan_node_id)
{
	GsSortTraits traits = {
		.enough = of_sort->enough,
		.short_values = of_sort->short_values,
		.string_words = of_sort->string_words
	};
	CustomScan *sink = make_node_over(partial, plan_node_id, &sink_methods);

	sink->scan.plan.parallel_aware = true;
	sink->custom_private = gpusort_private_make(sort, traits);
	return sink;
}

/* Make a GpuSortPack, whose last column has the rows. */
static CustomScan *
make_pack(Plan *partial, int plan_node_id)
{
	CustomScan *pack = make_node_over(partial, plan_node_id, &pack_methods);
	Const	   *rows = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								 CStringGetTextDatum("packed rows"), false, false);
	TargetEntry *column = makeTargetEntry((Expr *) rows, list_length(partial->targetlist) + 1,
										  "rows", false);

	pack->custom_scan_tlist = lappend(pack->custom_scan_tlist, column);
	pack->scan.plan.targetlist = lappend(pack->scan.plan.targetlist,
										 make_column_entry(column, INDEX_VAR));
	return pack;
}

/* ----------------------------------------------------------------
 *		replacing
 * ----------------------------------------------------------------
 */

static Plan *swap_sorts(Plan *plan, const GsSwapContext *context);

/* Replace the sorts of a child.  A GsChildVisitor. */
static void
swap_in_child(Plan **child, void *context)
{
	*child = swap_sorts(*child, context);
}

/* Find the greatest plan_node_id.  A GsChildVisitor. */
static void
find_last_id(Plan **child, void *last_id)
{
	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_PLANNING);
	*(int *) last_id = Max(*(int *) last_id, (*child)->plan_node_id);
	gpusort_plan_children_visit(*child, find_last_id, last_id);
}

static int
new_plan_node_id(GsSwapStatement *statement)
{
	if (statement->last_id == 0)
	{
		Plan	   *top = statement->planned->planTree;

		find_last_id(&top, &statement->last_id);
		gpusort_plan_children_visit_list(statement->planned->subplans,
										 find_last_id, &statement->last_id);
	}
	return ++statement->last_id;
}

/*
 * Does a Gather return a column of its input at the same position?  If the
 * input has a column twice, the Gather may take either of them.  A constant is
 * not taken from the input.
 */
static bool
passes_column_on(const TargetEntry *entry, const List *input_tlist)
{
	const TargetEntry *input = list_nth_node(TargetEntry, input_tlist,
											 entry->resno - 1);
	const Var  *var = (const Var *) entry->expr;
	const TargetEntry *taken;

	if (IsA(entry->expr, Const))
		return equal(entry->expr, input->expr);
	if (!IsA(var, Var) || var->varno != OUTER_VAR)
		return false;
	taken = list_nth_node(TargetEntry, input_tlist, var->varattno - 1);
	return taken == input ||
		(IsA(input->expr, Var) && equal(taken->expr, input->expr));
}

/* Does a Gather return the columns of its input unchanged? */
static bool
passes_columns_on(const Gather *gather)
{
	const List *input_tlist = gather->plan.lefttree->targetlist;
	ListCell   *lc;

	if (list_length(gather->plan.targetlist) != list_length(input_tlist))
		return false;
	foreach(lc, gather->plan.targetlist)
		if (!passes_column_on(lfirst_node(TargetEntry, lc), input_tlist))
		return false;
	return true;
}

/* Can processes add rows to one sort: on a GPU, or in memory that they share? */
static bool
can_sort_together(const Sort *sort, bool ties)
{
	return gpusort_warm_memory_shared_limit() > 0 ||
		gpusort_gpu_session_check(sort->plan.plan_rows, ties) == GS_REASON_NONE;
}

/* Make the processes below a Gather put their rows into the sort directly. */
static void
add_sink(Sort *sort, GsSortTraits traits, GsSwapStatement *statement)
{
	Gather	   *gather = (Gather *) sort->plan.lefttree;

	if (IsA(gather, Gather) && !gather->single_copy &&
		passes_columns_on(gather) && can_sort_together(sort, traits.ties))
		gather->plan.lefttree = (Plan *)
			make_sink(sort, &traits, gather->plan.lefttree, new_plan_node_id(statement));
}

/*
 * Returns how many rows the divided sort of a plan, below a Gather, is expected to have, or -1.
 * Above it, each process can have sorts of its own.
 */
static double
rows_of_divided_sort(const Plan *plan)
{
	while (plan != NULL)
	{
		if (IsA(plan, CustomScan))
		{
			const CustomScan *node = (const CustomScan *) plan;

			if (node->methods != &sort_methods)
				return -1;
			if (gpusort_private_traits(node).divided > 0)
				return plan->plan_rows;
		}
		plan = gpusort_plan_below_subquery(plan) != NULL ?
			gpusort_plan_below_subquery(plan) : outerPlan(plan);
	}
	return -1;
}

/* Have the rows of a divided sort pass their Gather many at a time.  A GsChildVisitor. */
static void
pack_in_child(Plan **child, void *context)
{
	GsSwapStatement *statement = context;
	Gather	   *gather = (Gather *) *child;
	CustomScan *unpack;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_PLANNING);
	gpusort_plan_children_visit(*child, pack_in_child, context);
	if (!IsA(gather, Gather) || !passes_columns_on(gather) ||
		rows_of_divided_sort(outerPlan(gather)) <
		(gpusort_debug_divide == GS_ON ? 0 : MIN_PACKED_ROWS) ||
		list_length(gather->plan.targetlist) >= MaxTupleAttributeNumber)
		return;
	unpack = make_node_over(&gather->plan, new_plan_node_id(statement), &unpack_methods);
	outerPlan(gather) = (Plan *) make_pack(outerPlan(gather), new_plan_node_id(statement));
	gather->plan.targetlist = make_column_tlist(outerPlan(gather)->targetlist, OUTER_VAR, NIL);
	*child = &unpack->scan.plan;
}

/*
 * Returns a GpuSort for a Sort, or the Sort if it is not taken over.  The
 * input is examined last, because that takes longest and most sorts are too
 * small.
 */
static Plan *
swap_sort(Sort *sort, const GsSwapContext *context)
{
	GsReason	reason = gpusort_eligibility_of_sort(sort, context->bound,
													 context->statement->planned);
	GsSortKeys	keys = gpusort_private_keys_of_sort(sort);
	GsSortTraits traits = {0};

	if (reason != GS_REASON_NONE)
	{
		gpusort_requirement_leave(GS_TASK_SORT, reason);
		return &sort->plan;
	}
	traits.repeatable = gpusort_input_is_repeatable(sort->plan.lefttree,
													&context->statement->subplans);
	judge_keys(&keys, &sort->plan, context->statement, &traits);
	add_sink(sort, traits, context->statement);
	return with_columns(make_sort_node(sort, traits, CUSTOMPATH_SUPPORT_BACKWARD_SCAN |
									   CUSTOMPATH_SUPPORT_MARK_RESTORE, &sort_methods),
						context->statement);
}

/*
 * The same for an IncrementalSort.  The order of its ties depends on how it divides
 * its rows, which a GpuIncrementalSort does differently.
 */
static Plan *
swap_incremental_sort(IncrementalSort * sort, const GsSwapContext *context)
{
	GsSortTraits traits = {0};	/* its input is not read again */
	GsReason	reason;

	if (gpusort_debug_stock_ties)
		return &sort->sort.plan;
	reason = gpusort_eligibility_of_incremental_sort(sort, context->bound);
	if (reason == GS_REASON_NONE)
		return with_columns(make_sort_node(&sort->sort, traits, 0, &incremental_methods),
							context->statement);
	gpusort_requirement_leave(GS_TASK_SORT, reason);
	return &sort->sort.plan;
}

/* Have a sort return only those rows that the window above it wants. */
static void
limit_partitions(const WindowAgg *window)
{
	CustomScan *node = (CustomScan *) outerPlan(window);
	GsSortTraits traits;
	GsSortKeys	keys;

	if (!IsA(node, CustomScan) || node->methods != &sort_methods)
		return;
	traits = gpusort_private_traits(node);
	keys = gpusort_private_keys(node);
	traits.partition_rows = gpusort_window_rows_wanted(window, &keys);
	traits.partition_keys = traits.partition_rows > 0 ? window->partNumCols : 0;
	node->custom_private = gpusort_private_make(linitial_node(Sort, node->custom_private), traits);
}

/*
 * Replace the sorts of a plan tree.  Returns the plan or, if it is a Sort
 * itself, its replacement.
 */
static Plan *
swap_sorts(Plan *plan, const GsSwapContext *context)
{
	GsSwapContext child_context = {
		.bound = GPUSORT_NO_BOUND,
		.statement = context->statement
	};

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	gpusort_work_add(GPUSORT_WORK_PLANNING);

	if (IsA(plan, Limit))
		child_context.bound = gpusort_limit_bound_estimate(((Limit *) plan)->limitCount,
														   ((Limit *) plan)->limitOffset,
														   ((Limit *) plan)->limitOption);
	else if (gpusort_limit_bound_passes(plan))
		child_context.bound = context->bound;
	gpusort_plan_children_visit(plan, swap_in_child, &child_context);

	if (IsA(plan, WindowAgg))
		limit_partitions((WindowAgg *) plan);
	if (IsA(plan, Sort))
		return swap_sort((Sort *) plan, context);
	if (IsA(plan, IncrementalSort))
		return swap_incremental_sort((IncrementalSort *) plan, context);
	if (IsA(plan, CustomScan) && ((CustomScan *) plan)->methods == &sort_methods)
		finish_divided_sort((CustomScan *) plan, context->statement);
	return plan;
}

static void
swap_in_statement(PlannedStmt *planned)
{
	GsSwapStatement statement = {
		.planned = planned,
		.subplans.plans = planned->subplans
	};
	GsSwapContext context = {
		.bound = GPUSORT_NO_BOUND,
		.statement = &statement
	};

	swap_in_child(&planned->planTree, &context);
	gpusort_plan_children_visit_list(planned->subplans, swap_in_child,
									 &context);
	if (statement.any_divided)
	{
		pack_in_child(&planned->planTree, &statement);
		gpusort_plan_children_visit_list(planned->subplans, pack_in_child, &statement);
	}
}

static PlannedStmt *
plan_with_gpusort(GPUSORT_PLANNER_ARGS)
{
	PlannedStmt *statement;
	bool		wanted = gpusort_loading_is_wanted();

	if (prev_planner_hook)
		statement = prev_planner_hook(GPUSORT_PLANNER_PASS);
	else
		statement = standard_planner(GPUSORT_PLANNER_PASS);
	if (wanted && !gpusort_debug_hide &&
		(gpusort_enable || gpusort_debug_require != GS_REQUIRE_OFF))
		swap_in_statement(statement);
	return statement;
}

/* For pg_gpusort.debug_hide.  Workers receive the leader's plan. */
static void
start_with_gpusort(QueryDesc *query, int eflags)
{
	if (gpusort_loading_is_wanted() && gpusort_debug_hide && gpusort_enable &&
		!IsParallelWorker() &&
		(eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		query->instrument_options == 0)
	{
		query->plannedstmt = copyObject(query->plannedstmt);
		swap_in_statement(query->plannedstmt);
	}
	if (prev_ExecutorStart_hook)
		prev_ExecutorStart_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

void
gpusort_plan_swap_init(void)
{
	RegisterCustomScanMethods(&sort_methods);
	RegisterCustomScanMethods(&incremental_methods);
	RegisterCustomScanMethods(&sink_methods);
	RegisterCustomScanMethods(&pack_methods);
	RegisterCustomScanMethods(&unpack_methods);
	prev_planner_hook = planner_hook;
	planner_hook = plan_with_gpusort;
	prev_ExecutorStart_hook = ExecutorStart_hook;
	ExecutorStart_hook = start_with_gpusort;
}
