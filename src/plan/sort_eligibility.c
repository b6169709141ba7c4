/*-------------------------------------------------------------------------
 *
 * sort_eligibility.c
 *		Determines which sorts are taken over, and what a row of one costs.
 *
 * No sort may become slower than in stock PostgreSQL.  So sorts that take it no time, and
 * sorts of which a LIMIT wants few rows, stay as they are.  Sorts that
 * will not fit in memory are taken over, because writing sorted runs and
 * merging them is also faster here, whatever the size of memory.  Sorts of
 * rows that come in order already, however, cost stock PostgreSQL little more
 * than copying them.  These are taken over only if that is expected to gain.
 *
 * What a sort costs depends on the columns of its rows and on where they come
 * from.  The same description is made of a path, before the planner chooses,
 * and of the Sort that the path has become, so that both are judged alike.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "exec/gpusort_private.h"
#include "exec/limit_bound.h"
#include "key/key_encoding.h"
#include "plan/finished_plans.h"
#include "plan/sort_eligibility.h"
#include "settings.h"
#include "sort/base/tuple_rows.h"
#include "sort/base/warm_memory.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/memory_sort.h"

/*
 * The costs of a row are from regressions over sorts of many shapes with PostgreSQL
 * 15, 18 and 19; docs/experiments.md has the measurements.
 */

/* A GpuSort.  Its sort proper costs next to nothing on a GPU. */
#define STORE_ROW			3.0
#define STORE_BYTE			0.04
#define STORE_TUPLE			2.0 /* rows are whole tuples, or else: */
#define STORE_FIXED			0.3 /* per column */
#define STORE_VARIABLE		2.0
#define COLD_BYTE			0.04	/* of memory that is not warm */
#define SORT_WORD			2.0
#define SORT_TIES			6.0 /* if the encoded keys are not exact */
#define SORT_AGAIN			12.0	/* more, if most rows tie and keys follow */
#define SORT_KEY_OF_ICU		40.0	/* more, if sort keys of ICU are made */
#define SORT_NESTED			40.0	/* more, for values that consist of others */
#define COMPARISON_OF_ICU	25.0	/* for each doubling of the rows, if ICU
									 * compares them */
#define COMPARISON			1.0 /* the same if the type's function does, which
								 * PostgreSQL takes for as fast as any */
#define RETURN_ROW			2.5

/* What else matters if the rows are in order or reversed. */
#define IN_ORDER			(-3.5)
#define IN_ORDER_TIES		(-2.0)
#define REVERSED			(-2.5)
#define PAGE_SCAN			(-0.8)
#define ORDERED_TUPLE		2.0
#define ORDERED_FIXED		0.35	/* per column, unless rows are tuples */
#define ORDERED_VARIABLE	1.3
#define ORDERED_DISK		3.5
#define ORDERED_DISK_BYTE	0.07

/*
 * A stock sort of rows that are in order or reversed; 16 and later have a
 * faster one.  A sort of a single column of fixed length keeps values instead
 * of tuples.
 */
#define STOCK_ROW			GPUSORT_SINCE_16(7.0, 9.0)
#define STOCK_BYTE			0.11
#define STOCK_VALUE			GPUSORT_SINCE_16(-3.5, -5.5)
#define STOCK_VARIABLE		GPUSORT_SINCE_16(3.3, 5.0)	/* per column if rows
														 * are not as stored */
#define STOCK_REVERSED		GPUSORT_SINCE_16(3.0, 5.0)
#define STOCK_STRING		4.5 /* if words cannot compare the first key */
#define STOCK_STRING_REVERSED	30.0
#define STOCK_LOCALE		14.0	/* if the C library compares it */
#define STOCK_NESTED		25.0	/* if it consists of other values */
#define STOCK_NESTED_REVERSED	300.0
#define STOCK_RUNS			GPUSORT_SINCE_16(-1.8, -3.5)
#define STOCK_RUNS_BYTE		GPUSORT_SINCE_16(0.03, 0.0)
#define STOCK_RUNS_LEVEL	GPUSORT_SINCE_16(1.9, 3.0)	/* for each doubling of
														 * the runs */

/* The size of a row that a stock sort keeps, in addition to its columns. */
#define STOCK_TUPLE_BYTES	48
#define STOCK_VALUE_BYTES	16

/* A GpuSort must be faster by this factor. */
#define LEAST_GAIN			1.1

/*
 * A stock sort takes 10 ns for a comparison, or nine times as long if a library compares strings
 * by the rules of a language, or of values that consist of others.  LONG_SORT comparisons take two
 * milliseconds, and the first GpuSort of a session is faster from half of that on.
 */
#define LONG_SORT			200000
#define SLOW_COMPARISON		9

/* A Sort of fewer rows takes no time, whatever its keys are. */
#define FEWEST_LONG_ROWS	2000

/*
 * The cost of an input that takes ten milliseconds or more, in units of cpu_operator_cost.  Beside
 * that it does not matter that a GpuSort of few rows takes a tenth of one more.
 */
#define LONG_INPUT			2000000.0

/* A sort stays stock if a LIMIT is known to want a smaller part of its rows. */
#define SMALL_BOUND			0.02

/* An IncrementalSort of groups with fewer rows stays stock, unless comparisons are slow. */
#define FEWEST_GROUP_ROWS	45

/*
 * What an IncrementalSort takes for a row, and for its comparisons for each doubling of the rows of
 * a group.
 */
#define INCREMENTAL_ROW_COST		6.0
#define INCREMENTAL_NUMBERS_COST	3.0
#define INCREMENTAL_STRINGS_COST	9.0

/* The order in which rows come, in relation to that of a sort. */
typedef enum GsRowOrder
{
	GS_ROWS_UNORDERED,			/* or it is not known */
	GS_ROWS_IN_ORDER,
	GS_ROWS_REVERSED
} GsRowOrder;

/* ----------------------------------------------------------------
 *		descriptions
 * ----------------------------------------------------------------
 */

/*
 * Count the columns of a list of expressions or a target list, and look whether each is the column
 * of the table at the same position.
 */
static void
add_columns(GsSortCandidate *candidate, const List *columns)
{
	Oid			last = InvalidOid;	/* often that of the next column as well */
	bool		variable = false;
	ListCell   *lc;

	foreach(lc, columns)
	{
		const TargetEntry *entry = lfirst(lc);
		const Var  *var = IsA(entry, TargetEntry) ? (const Var *) entry->expr : lfirst(lc);
		Oid			type = exprType((const Node *) var);

		if (type != last)
			variable = get_typlen(type) < 0;
		last = type;
		if (variable)
			candidate->variable_columns++;
		else
			candidate->fixed_columns++;
		if (!IsA(var, Var) || var->varattno != foreach_current_index(lc) + 1)
			candidate->stored_rows = false;
	}
}

static int
ncolumns(const GsSortCandidate *candidate)
{
	return candidate->fixed_columns + candidate->variable_columns;
}

/* Describe a sort of the rows of a path. */
static GsSortCandidate
describe_path(const Path *input, double bound, const GsKeyShape *key)
{
	GsSortCandidate candidate = {
		.rows = input->rows,
		.width = input->pathtarget->width,
		.bound = bound,
		.stored_rows = true,
		.key = *key
	};
	const Path *scan = input;

	add_columns(&candidate, input->pathtarget->exprs);
	if (IsA(scan, GatherPath))
		scan = ((const GatherPath *) scan)->subpath;
	if (IsA(scan, ProjectionPath))
		scan = ((const ProjectionPath *) scan)->subpath;
	if (scan->pathtype != T_SeqScan || ncolumns(&candidate) != scan->parent->max_attr)
		candidate.stored_rows = false;
	return candidate;
}

/* Describe a Sort of a finished plan, whose input is a scan of a table. */
static GsSortCandidate
describe_plan(const Sort *sort, const PlannedStmt *statement, const GsKeyShape *key)
{
	GsSortCandidate candidate = {
		.rows = sort->plan.plan_rows,
		.width = sort->plan.plan_width,
		.stored_rows = true,
		.key = *key
	};
	const		Scan *scan = (const Scan *) sort->plan.lefttree;
	const RangeTblEntry *table = rt_fetch(scan->scanrelid, statement->rtable);

	add_columns(&candidate, scan->plan.targetlist);
	candidate.all_rows = scan->plan.qual == NIL;
	candidate.gpu = gpusort_gpu_session_check(candidate.rows, false) == GS_REASON_NONE;
	if (SearchSysCacheExists2(ATTNUM, ObjectIdGetDatum(table->relid),
							  Int16GetDatum(ncolumns(&candidate) + 1)))
		candidate.stored_rows = false;
	return candidate;
}

/* ----------------------------------------------------------------
 *		sort keys
 * ----------------------------------------------------------------
 */

/*
 * Returns the expression of a sort key: the member of its equivalence class
 * that belongs to 'relids', or else the first one.
 */
static const EquivalenceMember *
member_of_pathkey(const PathKey *pathkey, Relids relids)
{
	List	   *members = pathkey->pk_eclass->ec_members;
	ListCell   *lc;

	foreach(lc, members)
	{
		EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);

		if (!member->em_is_child && !bms_is_empty(member->em_relids) &&
			bms_is_subset(member->em_relids, relids))
			return member;
	}
	return linitial_node(EquivalenceMember, members);
}

/* Returns the sort keys of a Sort by 'pathkeys', whose rows come from the relations 'relids'. */
static GsSortKeys
keys_of_path(List *pathkeys, Relids relids)
{
	int			nkeys = list_length(pathkeys);
	GsSortKeys	keys = {
		.nkeys = nkeys,
		.attnos = palloc0(nkeys * sizeof(AttrNumber)),
		.operators = palloc(nkeys * sizeof(Oid)),
		.collations = palloc(nkeys * sizeof(Oid)),
		.nulls_first = palloc0(nkeys * sizeof(bool))
	};
	ListCell   *lc;

	foreach(lc, pathkeys)
	{
		const PathKey *pathkey = lfirst_node(PathKey, lc);
		Oid			type = member_of_pathkey(pathkey, relids)->em_datatype;

		keys.operators[foreach_current_index(lc)] = GPUSORT_PATHKEY_OPERATOR(pathkey, type);
		keys.collations[foreach_current_index(lc)] = pathkey->pk_eclass->ec_collation;
	}
	return keys;
}

/* Returns the column of a table that a sort key is. */
static GsTableColumn
column_of_pathkey(const PlannerInfo *root, const PathKey *pathkey, Relids relids)
{
	const Expr *expr = member_of_pathkey(pathkey, relids)->em_expr;
	const Var  *var;
	const RangeTblEntry *table;
	GsTableColumn column = {InvalidOid, InvalidAttrNumber};

	if (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	var = (const Var *) expr;
	/* The columns of a set operation have the number 0. */
	if (!IsA(var, Var) || var->varno == 0 || IS_SPECIAL_VARNO(var->varno) ||
		var->varno >= root->simple_rel_array_size)
		return column;
	table = root->simple_rte_array[var->varno];
	if (table->rtekind != RTE_RELATION)
		return column;
	return (GsTableColumn)
	{
		table->relid, var->varattno
	};
}

/* Returns the columns of tables that the sort keys are. */
static GsTableColumn *
columns_of_path(const PlannerInfo *root, const List *pathkeys, Relids relids)
{
	GsTableColumn *columns = palloc(list_length(pathkeys) * sizeof(GsTableColumn));
	ListCell   *lc;

	foreach(lc, pathkeys)
		columns[foreach_current_index(lc)] = column_of_pathkey(root, lfirst_node(PathKey, lc),
															   relids);
	return columns;
}

/* Would most rows be ties on a GPU?  Sort key 'open' is the first one that is not exact. */
static bool
may_tie_on_gpu(const GsSortKeys *keys, const GsTableColumn *columns, int open, double rows)
{
	/* Other keys follow short values. */
	open = gpusort_key_statistics_open(keys, columns, open, true);
	if (open == keys->nkeys)
		return false;
	return gpusort_key_statistics_few_values(columns, open + 1, rows) ||
		(open + 1 < keys->nkeys &&
		 !gpusort_key_statistics_tell_apart(columns, open + 1, rows));
}

/*
 * Find out where the sort will be done, and what that makes of ties.  A GPU is not used if most
 * rows would be ties.  judge_keys() in plan_swap.c finds more of these when the plan is finished,
 * in strings that begin alike, which would take too long for each path.
 */
static void
judge_ties(const PlannerInfo *root, const Path *input, const List *pathkeys,
		   const GsSortKeys *keys, GsSortCandidate *candidate)
{
	double		rows = input->rows;
	int			open = candidate->key.open;
	bool		gpu = gpusort_gpu_session_check(rows, false) == GS_REASON_NONE;
	bool		continues = open + 1 < keys->nkeys;
	bool		few = false;
	bool		ties = false;

	if (!candidate->key.exact && (gpu || continues))
	{
		GsTableColumn *columns = columns_of_path(root, pathkeys, input->parent->relids);

		few = gpusort_key_statistics_few_values(columns, open + 1, rows);
		ties = gpu && may_tie_on_gpu(keys, columns, open, rows);
		pfree(columns);
	}
	candidate->gpu = gpu && gpusort_gpu_session_check(rows, ties) == GS_REASON_NONE;
	candidate->ties = !candidate->gpu && continues && few;
}

/* Can workers call the comparison functions of all keys? */
static bool
compare_in_workers(const GsSortKeys *keys)
{
	for (int k = 0; k < keys->nkeys; k++)
	{
		Oid			family;
		Oid			type;
		GsOperatorOrder order;

		if (!get_ordering_op_properties(keys->operators[k], &family, &type, &order) ||
			func_parallel(get_opfamily_proc(family, type, type,
											BTORDER_PROC)) != PROPARALLEL_SAFE)
			return false;
	}
	return true;
}

/*
 * Sets *shape if the keys have one.  Otherwise returns the reason.  If the first key has no
 * encoding, one process would compare rows as PostgreSQL does, but several can do it together:
 * 'gathered' says whether they will.
 */
static GsReason
reason_of_keys(const GsSortKeys *keys, bool gathered, GsKeyShape *shape)
{
	GsReason	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(keys, &reason);

	*shape = gpusort_key_plan_shape(plan);
	gpusort_key_plan_free(plan);
	return reason == GS_REASON_TYPE && gathered && compare_in_workers(keys) ?
		GS_REASON_NONE : reason;
}

/* ----------------------------------------------------------------
 *		costs
 * ----------------------------------------------------------------
 */

bool
gpusort_sort_candidate_fits(const GsSortCandidate *candidate)
{
	/* A GPU keeps rows in its own memory, and will report if it lacks room. */
	return candidate->gpu ||
		gpusort_memory_sort_estimate(candidate->key.words, candidate->rows,
									 candidate->width) <=
		(double) gpusort_settings_work_mem() * 1024;
}

double
gpusort_row_cost_minimum(int width)
{
	return STORE_ROW + STORE_BYTE * width;
}

/* Would the sort keep rows as whole tuples? */
static bool
keeps_tuples(const GsSortCandidate *candidate)
{
	return candidate->stored_rows &&
		gpusort_tuple_rows_pay(candidate->fixed_columns,
							   candidate->variable_columns);
}

/* Returns the cost per row of memory that the system has yet to provide. */
static double
cost_of_cold_memory(const GsSortCandidate *candidate)
{
	double		bytes = gpusort_memory_sort_estimate(candidate->key.words, 1,
													 candidate->width);
	double		warm = gpusort_warm_memory_limit() / Max(candidate->rows, 1);

	return COLD_BYTE * Max(bytes - warm, 0);
}

GsRowCost
gpusort_row_cost(const GsSortCandidate *candidate, bool gpu)
{
	GsRowCost	cost = {
		.keep = gpusort_row_cost_minimum(candidate->width),
		.emit = RETURN_ROW
	};

	if (keeps_tuples(candidate))
		cost.keep += STORE_TUPLE;
	else
		cost.keep += STORE_FIXED * candidate->fixed_columns +
			STORE_VARIABLE * candidate->variable_columns;
	if (!candidate->key.encoded)
	{
		cost.keep += COMPARISON * log2(Max(candidate->rows, 2));
		return cost;
	}
	if (!gpu)
		cost.keep += SORT_WORD * candidate->key.words;
	if (!candidate->key.exact)
		cost.keep += SORT_TIES + (candidate->ties ? SORT_AGAIN : 0);
	if (candidate->key.collated)
		cost.keep += SORT_KEY_OF_ICU;
	if (candidate->key.nested)
		cost.keep += SORT_NESTED;
	if (candidate->key.compared)
		cost.keep += COMPARISON_OF_ICU * log2(Max(candidate->rows, 2));
	return cost;
}

/* Returns what a GpuSort costs in all, if rows are in order or reversed. */
static double
cost_of_gpusort(const GsSortCandidate *candidate, bool reversed)
{
	GsRowCost	row = gpusort_row_cost(candidate, false);
	double		cost = row.keep + row.emit;

	if (reversed)
		cost += REVERSED;
	else
		cost += IN_ORDER + (candidate->key.first_exact ? 0 : IN_ORDER_TIES);
	if (keeps_tuples(candidate))
		cost += ORDERED_TUPLE;
	else
		cost += ORDERED_FIXED * candidate->fixed_columns +
			ORDERED_VARIABLE * candidate->variable_columns;
	if (candidate->all_rows)
		cost += PAGE_SCAN;
	if (gpusort_sort_candidate_fits(candidate))
		return cost + cost_of_cold_memory(candidate);
	return cost + ORDERED_DISK + ORDERED_DISK_BYTE * candidate->width;
}

/* Returns what the runs of a stock sort cost if it needs any. */
static double
cost_of_stock_runs(const GsSortCandidate *candidate, bool values)
{
	double		bytes = candidate->rows *
		(candidate->width + (values ? STOCK_VALUE_BYTES : STOCK_TUPLE_BYTES));
	double		runs = bytes / ((double) work_mem * 1024);

	if (runs <= 1)
		return 0;
	return Max(STOCK_RUNS + STOCK_RUNS_BYTE * candidate->width +
			   STOCK_RUNS_LEVEL * log2(runs), 0);
}

/* As in cost_of_gpusort(). */
static double
cost_of_stock_sort(const GsSortCandidate *candidate, bool reversed)
{
	bool		values = candidate->fixed_columns == 1 &&
		candidate->variable_columns == 0;
	double		cost = STOCK_ROW + STOCK_BYTE * candidate->width;

	if (values)
		cost += STOCK_VALUE;
	if (!candidate->stored_rows)
		cost += STOCK_VARIABLE * candidate->variable_columns;
	if (!candidate->key.first_exact)
		cost += STOCK_STRING;
	if (candidate->key.has_weights)
		cost += STOCK_LOCALE;
	if (candidate->key.nested)
		cost += reversed ? STOCK_NESTED_REVERSED : STOCK_NESTED;
	if (reversed)
		cost += candidate->key.first_exact ? STOCK_REVERSED : STOCK_STRING_REVERSED;
	return cost + cost_of_stock_runs(candidate, values);
}

/*
 * Is a GpuSort faster by LEAST_GAIN, if rows come in this order?  It always is if they are
 * unordered.
 */
static bool
gains_by_order(const GsSortCandidate *candidate, GsRowOrder order)
{
	bool		reversed = order == GS_ROWS_REVERSED;

	if (order == GS_ROWS_UNORDERED)
		return true;
	return cost_of_stock_sort(candidate, reversed) >=
		LEAST_GAIN * cost_of_gpusort(candidate, reversed);
}

/* ----------------------------------------------------------------
 *		the order in which rows come
 * ----------------------------------------------------------------
 *
 * A table often has its rows in the order in which they were added, and so in
 * that of its primary key or of a time.  ANALYZE finds that out: it computes
 * the correlation between the values of a column and their places in the
 * table, which is 1 if no two rows of its sample are out of order.
 *
 * Only a sequential scan in one process returns rows in the order of the
 * table.
 */

/* What the statistics say of a column. */
typedef struct ColumnOrder
{
	GsRowOrder	order;
	bool		unique;			/* does every row have another value? */
} ColumnOrder;

/* Does the operator sort in the order of the statistics, or in reverse? */
static GsRowOrder
order_of_operator(Oid operator, Oid statistics_operator)
{
	Oid			opfamily;
	Oid			opcintype;
	GsOperatorOrder direction;

	if (!get_ordering_op_properties(operator, &opfamily, &opcintype,
									&direction) ||
		!op_in_opfamily(statistics_operator, opfamily))
		return GS_ROWS_UNORDERED;
	return direction == GPUSORT_ORDER_DESCENDING ?
		GS_ROWS_REVERSED : GS_ROWS_IN_ORDER;
}

/* Returns what the statistics say of a column without NULLs, for a sort by an operator. */
static ColumnOrder
order_of_statistics(HeapTuple statistics, Oid operator, Oid collation)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(statistics);
	ColumnOrder result = {.order = GS_ROWS_UNORDERED,
	.unique = form->stadistinct == -1};
	AttStatsSlot slot;
	bool		rising;
	bool		falling;

	if (form->stanullfrac > 0 ||
		!get_attstatsslot(&slot, statistics, STATISTIC_KIND_CORRELATION,
						  InvalidOid, ATTSTATSSLOT_NUMBERS))
		return result;
	rising = slot.nnumbers == 1 && slot.numbers[0] >= 1;
	falling = slot.nnumbers == 1 && slot.numbers[0] <= -1;
	if ((rising || falling) && slot.stacoll == collation)
		result.order = order_of_operator(operator, slot.staop);
	if (falling && result.order != GS_ROWS_UNORDERED)
		result.order = result.order == GS_ROWS_IN_ORDER ?
			GS_ROWS_REVERSED : GS_ROWS_IN_ORDER;
	free_attstatsslot(&slot);
	return result;
}

static ColumnOrder
order_of_column(GsTableColumn column, Oid operator, Oid collation)
{
	ColumnOrder result = {GS_ROWS_UNORDERED, false};
	HeapTuple	statistics;

	if (!OidIsValid(column.table))
		return result;
	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column.table),
								 Int16GetDatum(column.attno), BoolGetDatum(false));
	if (HeapTupleIsValid(statistics))
	{
		result = order_of_statistics(statistics, operator, collation);
		ReleaseSysCache(statistics);
	}
	return result;
}

static bool
returns_rows_as_stored(const Plan *plan)
{
	return IsA(plan, SeqScan) && !plan->parallel_aware;
}

/*
 * Returns the order in which the input of a Sort, a scan that returns rows as stored, returns
 * them, in relation to the order that the Sort makes.  Reads the system catalogs.
 */
static GsRowOrder
order_of_input(const Sort *sort, const PlannedStmt *statement)
{
	GsRowOrder	order = GS_ROWS_UNORDERED;
	ColumnOrder column = {GS_ROWS_UNORDERED, false};

	/* Further keys do not matter once each row has another value. */
	for (int k = 0; k < sort->numCols && !column.unique; k++)
	{
		column = order_of_column(gpusort_plan_column(outerPlan(sort), sort->sortColIdx[k],
													 statement),
								 sort->sortOperators[k], sort->collations[k]);
		if (k > 0 && column.order != order)
			column.order = GS_ROWS_UNORDERED;
		order = column.order;
		if (order == GS_ROWS_UNORDERED)
			break;
	}
	return order;
}

/* ----------------------------------------------------------------
 *		sorts to be taken over
 * ----------------------------------------------------------------
 */

/* The questions that need no catalogs.  'least' is the minimum number of rows. */
static GsReason
reason_of_rows(double rows, double least, double bound)
{
	if (!gpusort_enable)
		return GS_REASON_DISABLED;
	if (rows < least)
		return GS_REASON_FEW_ROWS;
	if (bound >= 0 && bound < rows * SMALL_BOUND)
		return GS_REASON_LIMIT;
	return GS_REASON_NONE;
}

bool
gpusort_sort_candidate_of_path(const PlannerInfo *root, const Path *input, List *pathkeys,
							   double bound, GsSortCandidate *candidate)
{
	GsSortKeys	keys;
	GsKeyShape	shape;

	if (reason_of_rows(input->rows, gpusort_settings_plan_rows(), bound) != GS_REASON_NONE)
		return false;
	keys = keys_of_path(pathkeys, input->parent->relids);
	if (reason_of_keys(&keys, IsA(input, GatherPath), &shape) != GS_REASON_NONE)
		return false;
	*candidate = describe_path(input, bound, &shape);
	judge_ties(root, input, pathkeys, &keys, candidate);
	return true;
}

/* Returns how many times as long as of integers a comparison takes. */
static double
time_of_comparison(const GsKeyShape *key)
{
	return key->has_weights || key->collated || key->nested || key->compared ?
		SLOW_COMPARISON : 1;
}

/*
 * Does PostgreSQL's sort take so long that the time to begin a GpuSort does not matter?
 */
static bool
is_long(double rows, double bound, const GsKeyShape *key)
{
	double		kept = bound > 0 ? Min(rows, bound) : rows;
	double		comparisons = rows * log2(Max(kept, 2));

	return comparisons * time_of_comparison(key) >= LONG_SORT;
}

/*
 * May there be many more rows than expected?  Of groups by expressions, and of what is above some
 * joins and conditions, the planner knows next to nothing.  A LIMIT keeps the sort short.
 */
static bool
may_be_long(const Sort *sort, double bound, const PlannedStmt *statement)
{
	return bound == GPUSORT_NO_BOUND &&
		outerPlan(sort)->total_cost >= LONG_INPUT * cpu_operator_cost &&
		!gpusort_plan_groups_columns(outerPlan(sort), statement);
}

/*
 * Is a GpuSort faster?  It is if nothing is known of the order of the rows.  The statistics
 * are looked up only if it would not be for rows in order.  With pg_gpusort.min_rows = 0, sorts
 * are not taken over for their speed, and neither are those for which PostgreSQL's own sort may
 * give another order than its comparisons.
 */
static bool
gains(const Sort *sort, const PlannedStmt *statement, const GsKeyShape *shape)
{
	GsSortCandidate candidate;

	if (gpusort_min_rows == 0 || shape->compared || !shape->encoded ||
		!returns_rows_as_stored(sort->plan.lefttree))
		return true;
	candidate = describe_plan(sort, statement, shape);
	return (gains_by_order(&candidate, GS_ROWS_IN_ORDER) &&
			gains_by_order(&candidate, GS_ROWS_REVERSED)) ||
		gains_by_order(&candidate, order_of_input(sort, statement));
}

GsReason
gpusort_eligibility_of_sort(const Sort *sort, double bound,
							const PlannedStmt *statement)
{
	double		rows = sort->plan.plan_rows;
	bool		any = gpusort_min_rows < 0 && may_be_long(sort, bound, statement);
	GsReason	reason = reason_of_rows(rows, any ? 0 :
										gpusort_min_rows >= 0 ? gpusort_min_rows :
										FEWEST_LONG_ROWS, bound);
	GsSortKeys	keys = gpusort_private_keys_of_sort(sort);
	GsKeyShape	shape;

	if (reason == GS_REASON_NONE)
		reason = reason_of_keys(&keys, IsA(sort->plan.lefttree, Gather), &shape);
	if (reason != GS_REASON_NONE)
		return reason;
	if (gpusort_min_rows < 0 && !any && !is_long(rows, bound, &shape))
		return GS_REASON_FEW_ROWS;
	return gains(sort, statement, &shape) ? GS_REASON_NONE : GS_REASON_NO_GAIN;
}

/*
 * Returns how many rows the planner expects in a group of an IncrementalSort.  Neither the plan
 * nor the path has that number.  It follows from the costs that cost_incremental_sort() has
 * computed of it: without a LIMIT, the total cost is the startup cost once per group, and some
 * costs per row and per group.
 */
static double
rows_of_group(Cost input_startup, Cost startup, Cost total, double rows)
{
	Cost		per_group = startup - input_startup + 2 * cpu_tuple_cost;
	Cost		groups = total - input_startup - rows * (1.5 * cpu_operator_cost + cpu_tuple_cost);

	return groups > per_group ? rows * per_group / groups : rows;
}

/* Describe the first key by which rows of an IncrementalSort are not in order yet. */
static GsKeyShape
shape_of_next_key(const IncrementalSort * sort, GsSortKeys keys)
{
	GsKeyShape	shape = {0};

	keys.attnos += sort->nPresortedCols;
	keys.operators += sort->nPresortedCols;
	keys.collations += sort->nPresortedCols;
	keys.nulls_first += sort->nPresortedCols;
	keys.nkeys = 1;
	(void) reason_of_keys(&keys, false, &shape);
	return shape;
}

/*
 * Is the next key the result of a window function?  Mostly the rows of a group are some of a
 * partition and have the same result, so that it is compared fast.
 */
static bool
next_key_is_window(const IncrementalSort * sort)
{
	const Plan *input = sort->sort.plan.lefttree;
	AttrNumber	attno = sort->sort.sortColIdx[sort->nPresortedCols];

	return IsA(list_nth_node(TargetEntry, input->targetlist, attno - 1)->expr, WindowFunc);
}

/*
 * Small groups stay stock: PostgreSQL sorts a few of them at a time with all keys,
 * which are nearly in order then, and that is as fast, unless comparisons are slow.
 */
GsReason
gpusort_eligibility_of_incremental_sort(const IncrementalSort * sort,
										double bound)
{
	const Plan *plan = &sort->sort.plan;
	double		rows = plan->plan_rows;
	double		group = rows_of_group(plan->lefttree->startup_cost, plan->startup_cost,
									  plan->total_cost, rows);
	GsReason	reason = reason_of_rows(rows, Max(gpusort_min_rows, 0), bound);
	GsSortKeys	keys = gpusort_private_keys_of_sort(&sort->sort);
	GsKeyShape	shape;

	if (reason == GS_REASON_NONE)
		reason = reason_of_keys(&keys, false, &shape);
	if (reason != GS_REASON_NONE || gpusort_min_rows == 0)
		return reason;

	/* A LIMIT whose value is not known yet is probably small. */
	if (bound == GPUSORT_UNKNOWN_BOUND)
		return GS_REASON_LIMIT;
	shape = shape_of_next_key(sort, keys);
	if (gpusort_min_rows < 0 && !is_long(rows, group, &shape))
		return GS_REASON_FEW_ROWS;
	if (!next_key_is_window(sort))
		group *= time_of_comparison(&shape);
	return group < FEWEST_GROUP_ROWS ? GS_REASON_NO_GAIN : GS_REASON_NONE;
}

Cost
gpusort_incremental_sort_cost(const Path *path)
{
	const		IncrementalSortPath *sort = (const IncrementalSortPath *) path;
	double		group = rows_of_group(sort->spath.subpath->startup_cost, path->startup_cost,
									  path->total_cost, path->rows);
	GsSortKeys	keys = keys_of_path(list_copy_tail(path->pathkeys, sort->nPresortedCols),
									path->parent->relids);
	GsKeyShape	shape = {0};

	(void) reason_of_keys(&keys, false, &shape);
	return cpu_operator_cost * path->rows *
		(INCREMENTAL_ROW_COST + log2(Max(group, 2)) *
		 (shape.first_exact ? INCREMENTAL_NUMBERS_COST : INCREMENTAL_STRINGS_COST));
}
