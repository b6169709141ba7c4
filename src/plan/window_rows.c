/*-------------------------------------------------------------------------
 *
 * window_rows.c
 *		How many rows of each partition a window wants.
 *
 * A subquery's condition row_number() <= 3 is the run condition of its window: from the first row
 * that does not meet it on, the WindowAgg drops what comes of a partition.  If it computes nothing
 * but row_number(), these rows have no effect on others, so its input need not have them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "exec/gpusort_private.h"
#include "plan/finished_plans.h"

/* A greater number of rows is as good as all. */
#define MOST_ROWS			1000000

static bool
is_row_number(const Node *node)
{
	return IsA(node, WindowFunc) && ((const WindowFunc *) node)->winfnoid == F_ROW_NUMBER;
}

/* Does an expression have another window function? */
static bool
has_other_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
		return !is_row_number(node);
	return expression_tree_walker(node, has_other_function, context);
}

/* Returns the value of an integer constant, or -1 if it is none, or NULL or negative. */
static int64
value_of(const Node *node)
{
	const Const *value = (const Const *) node;
	int64		number = -1;

	if (!IsA(node, Const) || value->constisnull)
		return -1;
	if (value->consttype == INT8OID)
		number = DatumGetInt64(value->constvalue);
	else if (value->consttype == INT4OID)
		number = DatumGetInt32(value->constvalue);
	else if (value->consttype == INT2OID)
		number = DatumGetInt16(value->constvalue);
	return Max(number, -1);
}

/* Returns how many rows of a partition can meet a run condition, or -1 if that is not known. */
static int64
rows_that_meet(const Node *condition)
{
	const OpExpr *op = (const OpExpr *) condition;
	int64		number;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2 || !is_row_number(linitial(op->args)))
		return -1;
	number = value_of(lsecond(op->args));
	switch (get_opcode(op->opno))
	{
		case F_INT8LE:
		case F_INT84LE:
		case F_INT82LE:
			return number;
		case F_INT8LT:
		case F_INT84LT:
		case F_INT82LT:
			return number - 1;
		default:
			return -1;
	}
}

int
gpusort_window_rows_wanted(const WindowAgg *window, const GsSortKeys *keys)
{
	int64		wanted = MOST_ROWS + 1;
	ListCell   *lc;

	/* Windows above may want the rows that this one does not return. */
	if (!window->topWindow || window->partNumCols == 0 || window->runConditionOrig == NIL ||
		has_other_function((Node *) window->plan.targetlist, NULL) ||
		has_other_function((Node *) window->plan.qual, NULL) ||
		!gpusort_private_keys_begin_with(keys, window->partNumCols, window->partColIdx,
										 window->partOperators, window->partCollations))
		return 0;
	foreach(lc, window->runConditionOrig)
	{
		int64		rows = rows_that_meet(lfirst(lc));

		if (rows >= 0)
			wanted = Min(wanted, rows);
	}
	return wanted <= MOST_ROWS ? (int) Max(wanted, 1) : 0;
}
