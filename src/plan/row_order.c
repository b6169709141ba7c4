/*-------------------------------------------------------------------------
 *
 * row_order.c
 *		Determines whether the rows of a sort come in the order that is wanted.
 *
 * A table often has its rows in the order in which they were added, and so in
 * that of its primary key or of a time.  ANALYZE finds that out: it computes
 * the correlation between the values of a column and their places in the
 * table, which is 1 if no two rows of its sample are out of order.
 *
 * Only a sequential scan in one process returns rows in the order of the
 * table.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan/row_order.h"

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

GsRowOrder
gpusort_row_order(const Sort *sort, const PlannedStmt *statement)
{
	const Plan *scan = sort->plan.lefttree;
	GsRowOrder	order = GS_ROWS_UNORDERED;
	ColumnKey	key;

	if (!IsA(scan, SeqScan) || scan->parallel_aware)
		return order;
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
