/*-------------------------------------------------------------------------
 *
 * sort_eligibility.c
 *		Determines which sorts of a plan are taken over.
 *
 * No sort may become slower than in stock PostgreSQL.  So sorts that take it no time, and
 * sorts of which a LIMIT wants few rows, stay as they are.  Sorts that
 * will not fit in memory are taken over, because writing sorted runs and
 * merging them is also faster here, whatever the size of memory.  Sorts of
 * rows that come in order already, however, cost stock PostgreSQL little more
 * than copying them.  These are taken over only if that is expected to gain.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "exec/gpusort_private.h"
#include "exec/limit_bound.h"
#include "key/key_encoding.h"
#include "plan/sort_candidate.h"
#include "plan/sort_eligibility.h"
#include "settings.h"

/* An IncrementalSort of groups with fewer rows stays stock. */
#define FEWEST_GROUP_ROWS	50

/* ----------------------------------------------------------------
 *		sort keys
 * ----------------------------------------------------------------
 */

/*
 * Returns the type of a sort key: that of the member of its equivalence class
 * that belongs to 'relids', or else of the first member.
 */
static Oid
type_of_pathkey(const PathKey *pathkey, Relids relids)
{
	List	   *members = pathkey->pk_eclass->ec_members;
	ListCell   *lc;

	foreach(lc, members)
	{
		EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);

		if (!member->em_is_child && !bms_is_empty(member->em_relids) &&
			bms_is_subset(member->em_relids, relids))
			return member->em_datatype;
	}
	return linitial_node(EquivalenceMember, members)->em_datatype;
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
		Oid			type = type_of_pathkey(pathkey, relids);

		keys.operators[foreach_current_index(lc)] = GPUSORT_PATHKEY_OPERATOR(pathkey, type);
		keys.collations[foreach_current_index(lc)] = pathkey->pk_eclass->ec_collation;
	}
	return keys;
}

/* Sets *shape if the keys have one.  Otherwise returns the reason. */
static GsFallback
reason_of_keys(const GsSortKeys *keys, GsKeyShape *shape)
{
	GsFallback	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(keys, 1, &reason);

	*shape = gpusort_key_plan_shape(plan);
	gpusort_key_plan_free(plan);
	return reason;
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

/* A sort key that is a column of a table. */
typedef struct ColumnKey
{
	Oid			table;
	AttrNumber	attno;
	Oid			operator;		/* "<" or ">" */
	Oid			collation;
} ColumnKey;

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

/* Returns what the statistics say of a column without NULLs. */
static ColumnOrder
order_of_statistics(HeapTuple statistics, const ColumnKey *key)
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
	if ((rising || falling) && slot.stacoll == key->collation)
		result.order = order_of_operator(key->operator, slot.staop);
	if (falling && result.order != GS_ROWS_UNORDERED)
		result.order = result.order == GS_ROWS_IN_ORDER ?
			GS_ROWS_REVERSED : GS_ROWS_IN_ORDER;
	free_attstatsslot(&slot);
	return result;
}

static ColumnOrder
order_of_column(const ColumnKey *key)
{
	ColumnOrder result = {GS_ROWS_UNORDERED, false};
	HeapTuple	statistics;

	if (key->attno <= 0)
		return result;
	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(key->table),
								 Int16GetDatum(key->attno),
								 BoolGetDatum(false));
	if (HeapTupleIsValid(statistics))
	{
		result = order_of_statistics(statistics, key);
		ReleaseSysCache(statistics);
	}
	return result;
}

/*
 * Add the next sort key to the order by the keys before it.  Returns false if
 * further keys do not matter.
 */
static bool
add_key(const ColumnKey *key, bool is_first, GsRowOrder *order)
{
	ColumnOrder column = order_of_column(key);

	if (is_first)
		*order = column.order;
	else if (column.order != *order)
		*order = GS_ROWS_UNORDERED;
	return *order != GS_ROWS_UNORDERED && !column.unique;
}

/* Returns the column that an expression is, or InvalidAttrNumber. */
static AttrNumber
column_of(const Expr *expr)
{
	if (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Var) ? ((const Var *) expr)->varattno : InvalidAttrNumber;
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
	const Plan *scan = sort->plan.lefttree;
	GsRowOrder	order = GS_ROWS_UNORDERED;
	ColumnKey	key;

	key.table = rt_fetch(((const Scan *) scan)->scanrelid,
						 statement->rtable)->relid;
	for (int k = 0; k < sort->numCols; k++)
	{
		const TargetEntry *entry = list_nth_node(TargetEntry, scan->targetlist,
												 sort->sortColIdx[k] - 1);

		key.attno = column_of(entry->expr);
		key.operator = sort->sortOperators[k];
		key.collation = sort->collations[k];
		if (!add_key(&key, k == 0, &order))
			return order;
	}
	return order;
}

/* ----------------------------------------------------------------
 *		sorts to be taken over
 * ----------------------------------------------------------------
 */

/* The questions that need no catalogs.  'least' is the minimum number of rows. */
static GsFallback
reason_of_rows(double rows, double least, double bound)
{
	if (!gpusort_enable)
		return GS_FALLBACK_DISABLED;
	if (rows < least)
		return GS_FALLBACK_FEW_ROWS;
	if (gpusort_limit_bound_is_small(bound, rows))
		return GS_FALLBACK_LIMIT;
	return GS_FALLBACK_NONE;
}

GsFallback
gpusort_eligibility_of_path(const Path *input, List *pathkeys, double bound,
							GsKeyShape *shape)
{
	GsFallback	reason = reason_of_rows(input->rows, gpusort_settings_plan_rows(), bound);

	GsSortKeys	keys;

	if (reason != GS_FALLBACK_NONE)
		return reason;
	keys = keys_of_path(pathkeys, input->parent->relids);
	return reason_of_keys(&keys, shape);
}

/*
 * Is a GpuSort faster?  It is if nothing is known of the order of the rows.  The statistics
 * are looked up only if it would not be for rows in order.  With pg_gpusort.min_rows = 0, sorts
 * are not taken over for their speed, and neither are those for which PostgreSQL's own sort may
 * give another order than its comparisons.
 */
static bool
gains(const Sort *sort, double bound, const PlannedStmt *statement, const GsKeyShape *shape)
{
	GsSortCandidate candidate;

	if (gpusort_min_rows == 0 || shape->compared ||
		!returns_rows_as_stored(sort->plan.lefttree))
		return true;
	candidate = gpusort_sort_candidate_of_plan(sort, bound, statement);
	if (gpusort_row_cost_gains(&candidate, shape, GS_ROWS_IN_ORDER) &&
		gpusort_row_cost_gains(&candidate, shape, GS_ROWS_REVERSED))
		return true;
	return gpusort_row_cost_gains(&candidate, shape,
								  order_of_input(sort, statement));
}

GsFallback
gpusort_eligibility_of_sort(const Sort *sort, double bound,
							const PlannedStmt *statement)
{
	GsFallback	reason = reason_of_rows(sort->plan.plan_rows,
										gpusort_min_rows >= 0 ? gpusort_min_rows :
										GPUSORT_FEWEST_LONG_ROWS, bound);
	GsSortKeys	keys = gpusort_private_keys_of_sort(sort);
	GsKeyShape	shape;

	if (reason == GS_FALLBACK_NONE)
		reason = reason_of_keys(&keys, &shape);
	if (reason != GS_FALLBACK_NONE)
		return reason;
	if (gpusort_min_rows < 0 &&
		!gpusort_sort_candidate_is_long(sort->plan.plan_rows, bound, &shape))
		return GS_FALLBACK_FEW_ROWS;
	return gains(sort, bound, statement, &shape) ?
		GS_FALLBACK_NONE : GS_FALLBACK_NO_GAIN;
}

/*
 * Returns how many rows the planner expects in a group of an IncrementalSort.  The
 * plan does not have that number.  It follows from the costs that PostgreSQL's
 * cost_incremental_sort() has computed of it: without a LIMIT, the total cost is
 * the startup cost once per group, and some costs per row and per group.
 */
static double
rows_of_group(const IncrementalSort * sort)
{
	const Plan *plan = &sort->sort.plan;
	Cost		input_startup = plan->lefttree->startup_cost;
	double		rows = plan->plan_rows;
	Cost		per_group = plan->startup_cost - input_startup +
		2 * cpu_tuple_cost;
	Cost		groups = plan->total_cost - input_startup -
		rows * (1.5 * cpu_operator_cost + cpu_tuple_cost);

	return groups > per_group ? rows * per_group / groups : rows;
}

/*
 * Small groups stay stock: PostgreSQL sorts a few of them at a time with all keys,
 * which are nearly in order then, and that is as fast.
 */
GsFallback
gpusort_eligibility_of_incremental_sort(const IncrementalSort * sort,
										double bound)
{
	GsFallback	reason = reason_of_rows(sort->sort.plan.plan_rows,
										gpusort_settings_plan_rows(), bound);
	GsSortKeys	keys = gpusort_private_keys_of_sort(&sort->sort);
	GsKeyShape	shape;

	if (reason == GS_FALLBACK_NONE)
		reason = reason_of_keys(&keys, &shape);
	if (reason != GS_FALLBACK_NONE || gpusort_min_rows == 0)
		return reason;

	/* A LIMIT whose value is not known yet is probably small. */
	if (bound == GPUSORT_UNKNOWN_BOUND)
		return GS_FALLBACK_LIMIT;
	return rows_of_group(sort) < FEWEST_GROUP_ROWS ?
		GS_FALLBACK_NO_GAIN : GS_FALLBACK_NONE;
}
