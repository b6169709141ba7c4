/*-------------------------------------------------------------------------
 *
 * row_batches.c
 *		Divides a presorted input into batches, which are sorted separately.
 *
 * Rows that are equal in the presorted columns are a group.  A batch consists of
 * whole groups, so that the sorted batches, one after the other, are all rows in
 * order.  Many small groups make a batch together, because a radix sort pays for
 * thousands of rows.  It sorts by all keys then, also by the presorted ones.
 *
 * A parent may want only some of the rows, and stop.  So the first batches are
 * small, and each later one is at most a fraction of the rows before it, unless its
 * last group is larger.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/lsyscache.h"

#include "exec/row_batches.h"

/* A batch has at least so many rows, and a stock sort reads half of them. */
#define FEWEST_ROWS			64

/* Before its last group begins, it has at most this part of all rows so far. */
#define PART_OF_ROWS		4

/*
 * A batch has no more rows and bytes than these before its last group begins.  It also
 * leaves room for that group in the memory allowed.
 */
#define MOST_ROWS			262144
#define MOST_BYTES			((Size) 32 * 1024 * 1024)
#define PART_OF_MEMORY		4

struct GsRowBatches
{
	PlanState  *input;
	const GsRowSource *source;
	ExprState  *same_group;		/* compares the columns of two rows */
	ExprContext *econtext;		/* for it */

	TupleTableSlot *pivot;		/* a row of the group that ends the batch */
	TupleTableSlot *carried;	/* first row of the next batch, or empty */
	bool		input_ended;
	int64		nrows;			/* of this batch */
	int64		least;			/* rows before the batch may end */
	int64		rows_before;	/* of all batches before */
	int64		most;			/* as the last batch has shown */
	Size		memory;			/* that the sort may use */
};

GsRowBatches *
gpusort_row_batches_create(PlanState *parent, const GsRowSource *source,
						   const GsSortKeys *keys, int presorted)
{
	GsRowBatches *batches = palloc0(sizeof(GsRowBatches));
	TupleDesc	tupdesc = ExecGetResultType(outerPlanState(parent));
	Oid		   *equals = palloc(presorted * sizeof(Oid));

	for (int k = 0; k < presorted; k++)
	{
		equals[k] = get_equality_op_for_ordering_op(keys->operators[k], NULL);
		if (!OidIsValid(equals[k]))
			elog(ERROR, "missing equality operator for ordering operator %u",
				 keys->operators[k]);
	}
	batches->input = outerPlanState(parent);
	batches->source = source;
	batches->same_group = execTuplesMatchPrepare(tupdesc, presorted, keys->attnos,
												 equals, keys->collations, parent);
	batches->econtext = parent->ps_ExprContext;
	batches->pivot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	batches->carried = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	batches->most = MOST_ROWS;
	return batches;
}

int64
gpusort_row_batches_begin(GsRowBatches *batches, Size memory)
{
	if (batches->input_ended)
		return 0;
	batches->memory = memory;
	batches->nrows = 0;
	batches->least = Max(Min(batches->rows_before / PART_OF_ROWS, batches->most),
						 FEWEST_ROWS);
	return batches->least;
}

/* Does a row belong to the group of the pivot? */
static bool
is_in_last_group(GsRowBatches *batches, TupleTableSlot *slot)
{
	batches->econtext->ecxt_outertuple = batches->pivot;
	batches->econtext->ecxt_innertuple = slot;
	return ExecQualAndReset(batches->same_group, batches->econtext);
}

TupleTableSlot *
gpusort_row_batches_next(GsRowBatches *batches)
{
	TupleTableSlot *slot;

	if (unlikely(batches->nrows == 0 && !TupIsNull(batches->carried)))
		slot = batches->carried;
	else
		slot = ExecProcNode(batches->input);
	if (TupIsNull(slot))
	{
		batches->input_ended = true;
		return NULL;
	}
	if (batches->nrows >= batches->least && !is_in_last_group(batches, slot))
	{
		ExecCopySlot(batches->carried, slot);
		return NULL;
	}
	batches->nrows++;
	if (batches->nrows == batches->least)
		ExecCopySlot(batches->pivot, slot);
	return gpusort_row_source_take(batches->source, slot);
}

int64
gpusort_row_batches_end(GsRowBatches *batches, const GsSortReport *report)
{
	Size		most_bytes = Min(MOST_BYTES, batches->memory / PART_OF_MEMORY);
	double		bytes = report->space_kb * 1024.0 / Max(batches->nrows, 1);

	batches->rows_before += batches->nrows;
	batches->most = Min(MOST_ROWS, most_bytes / Max(bytes, 1));
	return batches->nrows;
}

void
gpusort_row_batches_rewind(GsRowBatches *batches)
{
	ExecClearTuple(batches->pivot);
	ExecClearTuple(batches->carried);
	batches->input_ended = false;
	batches->rows_before = 0;
}
