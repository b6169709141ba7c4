/*-------------------------------------------------------------------------
 *
 * node_rows.c
 *		The rows of a sort node: as it reads them, sorts them and returns them.
 *
 * A node returns rows in its scan slot.  That is a virtual slot whose columns
 * point into the memory of the sort, unless rows are sorted as whole tuples:
 * then it is a slot for minimal tuples.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"

#include "exec/node_rows.h"
#include "exec/sink_node.h"

/*
 * Return rows in a slot for minimal tuples, which extracts columns when they are
 * asked for, instead of the virtual slot that the executor has made.
 */
static void
return_tuples(CustomScanState *css)
{
	PlanState  *state = &css->ss.ps;
	TupleDesc	tupdesc = css->ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	GPUSORT_INIT_SCAN_SLOT(state->state, &css->ss, tupdesc, &TTSOpsMinimalTuple);
	state->resultops = &TTSOpsMinimalTuple;
	state->resultopsfixed = true;
	state->resultopsset = true;
}

void
gpusort_node_rows_init(GsNodeRows *rows, CustomScanState *css,
					   GsSortSpec *spec)
{
	PlanState  *input = outerPlanState(css);
	GsSinkState *sink = gpusort_sink_find(input);
	PlanState  *sorted = sink != NULL ? gpusort_sink_input(sink) : input;
	TupleDesc	tupdesc = css->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bool		whole_tuples = gpusort_row_source_wants_tuples(sorted, tupdesc);

	/* A sink comes to the same result. */
	if (!whole_tuples)
		rows->narrow = gpusort_narrow_rows_create(sorted->plan, tupdesc,
												  &spec->keys);
	if (rows->narrow != NULL)
		rows->source = gpusort_row_source_create_narrow(input, rows->narrow,
														spec);
	else
		rows->source = gpusort_row_source_create(input, tupdesc, whole_tuples,
												 spec);
	if (!whole_tuples && rows->narrow == NULL)
		return;
	rows->tuple_attno = spec->tuple_attno;
	rows->sorted_row = MakeSingleTupleTableSlot(spec->tupdesc, &TTSOpsVirtual);
	if (whole_tuples)
		return_tuples(css);
}

TupleTableSlot *
gpusort_node_rows_next(const GsNodeRows *rows, GsSort *sort, bool forward,
					   TupleTableSlot *slot)
{
	TupleTableSlot *row = rows->sorted_row;
	MinimalTuple tuple;

	if (row == NULL)
	{
		(void) gpusort_sort_next(sort, forward, slot);
		return slot;
	}
	if (!gpusort_sort_next(sort, forward, row))
		return ExecClearTuple(slot);
	if (rows->narrow != NULL)
	{
		gpusort_narrow_rows_widen(rows->narrow, row, slot);
		return slot;
	}
	tuple = (MinimalTuple)
		DatumGetPointer(row->tts_values[rows->tuple_attno - 1]);
	return ExecStoreMinimalTuple(tuple, slot, false);
}
