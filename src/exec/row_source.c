/*-------------------------------------------------------------------------
 *
 * row_source.c
 *		Reads the input of a sort node or a GpuSortSink node, and returns the sorted rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "nodes/primnodes.h"

#include "exec/row_source.h"
#include "exec/stock_ties.h"
#include "heap/page_scan.h"
#include "sort/base/tuple_rows.h"

struct GsRowSource
{
	PlanState  *input;
	const GsSortSpec *spec;
	GsPageScan *scan;			/* reads the input; NULL if that is executed */
	GsTupleRows *tuples;		/* NULL unless rows are whole tuples */
	const GsNarrowRows *narrow; /* NULL unless rows are narrow */
	GsScanTarget target;		/* for 'scan', if they are either */
	GsStockTies *ties;			/* NULL unless ties are exchanged */
};

/* ----------------------------------------------------------------
 *		narrow rows
 * ----------------------------------------------------------------
 */

static bool
is_key(const GsSortKeys *keys, AttrNumber attno)
{
	for (int k = 0; k < keys->nkeys; k++)
		if (keys->attnos[k] == attno)
			return true;
	return false;
}

/* Is the column always NULL, and not needed for sorting? */
static bool
is_absent(const Plan *input, const GsSortKeys *keys, AttrNumber attno)
{
	const TargetEntry *entry = list_nth_node(TargetEntry, input->targetlist,
											 attno - 1);

	return IsA(entry->expr, Const) && ((const Const *) entry->expr)->constisnull &&
		!is_key(keys, attno);
}

/* Find the columns of the narrow rows, and return their number. */
static int
find_columns(GsNarrowRows *rows, const Plan *input, int natts,
			 const GsSortKeys *keys)
{
	int			ncolumns = 0;

	rows->attnos = palloc(natts * sizeof(AttrNumber));
	for (AttrNumber attno = 1; attno <= natts; attno++)
	{
		if (!is_absent(input, keys, attno))
			rows->attnos[ncolumns++] = attno;
	}
	return ncolumns;
}

/* The sort keys, by the columns of the narrow rows. */
static GsSortKeys
narrow_keys(const GsNarrowRows *rows, const GsSortKeys *keys, int ncolumns)
{
	GsSortKeys	narrow = *keys;

	narrow.attnos = palloc(keys->nkeys * sizeof(AttrNumber));
	for (int k = 0; k < keys->nkeys; k++)
		for (int column = 0; column < ncolumns; column++)
			if (rows->attnos[column] == keys->attnos[k])
				narrow.attnos[k] = column + 1;
	return narrow;
}

GsNarrowRows *
gpusort_narrow_rows_create(const Plan *input, TupleDesc tupdesc,
						   const GsSortKeys *keys)
{
	GsNarrowRows *rows = palloc0(sizeof(GsNarrowRows));
	int			natts = tupdesc->natts;
	int			ncolumns;

	ncolumns = list_length(input->targetlist) == natts ?
		find_columns(rows, input, natts, keys) : natts;
	if (ncolumns == natts)
		return NULL;
	rows->tupdesc = CreateTemplateTupleDesc(ncolumns);
	for (int column = 0; column < ncolumns; column++)
		TupleDescCopyEntry(rows->tupdesc, column + 1, tupdesc,
						   rows->attnos[column]);
	TupleDescFinalize(rows->tupdesc);
	rows->keys = narrow_keys(rows, keys, ncolumns);
	rows->slot = MakeSingleTupleTableSlot(rows->tupdesc, &TTSOpsVirtual);
	memset(rows->slot->tts_isnull, 0, ncolumns * sizeof(bool));
	ExecStoreVirtualTuple(rows->slot);
	return rows;
}

/* Return the columns of a wide row in the slot of narrow rows, or NULL if 'wide' is empty. */
static TupleTableSlot *
take_narrow(const GsNarrowRows *rows, TupleTableSlot *wide)
{
	TupleTableSlot *narrow = rows->slot;

	if (TupIsNull(wide))
		return NULL;
	slot_getallattrs(wide);
	for (int column = 0; column < rows->tupdesc->natts; column++)
	{
		narrow->tts_values[column] = wide->tts_values[rows->attnos[column] - 1];
		narrow->tts_isnull[column] = wide->tts_isnull[rows->attnos[column] - 1];
	}
	return narrow;
}

/* Store a narrow row in a virtual slot for wide rows, which stays valid as long. */
static void
widen(const GsNarrowRows *rows, const TupleTableSlot *narrow,
	  TupleTableSlot *wide)
{
	ExecClearTuple(wide);
	memset(wide->tts_isnull, true, wide->tts_tupleDescriptor->natts * sizeof(bool));
	for (int column = 0; column < rows->tupdesc->natts; column++)
	{
		wide->tts_values[rows->attnos[column] - 1] = narrow->tts_values[column];
		wide->tts_isnull[rows->attnos[column] - 1] = narrow->tts_isnull[column];
	}
	ExecStoreVirtualTuple(wide);
}

/* ----------------------------------------------------------------
 *		sources
 * ----------------------------------------------------------------
 */

/* Do the rows of a node arrive as tuples, in slots that have nothing else? */
static bool
returns_tuples(PlanState *node)
{
	const TupleTableSlotOps *slots;

	if (IsA(node, GatherState))
		return node->ps_ProjInfo == NULL &&
			returns_tuples(outerPlanState(node));
	if (IsA(node, AppendState))
	{
		const AppendState *append = (AppendState *) node;

		for (int i = 0; i < append->as_nplans; i++)
			if (!returns_tuples(append->appendplans[i]))
				return false;
		return append->as_nplans > 0;
	}
	slots = ExecGetResultSlotOps(node, NULL);
	return slots == &TTSOpsBufferHeapTuple || slots == &TTSOpsHeapTuple ||
		slots == &TTSOpsMinimalTuple;
}

/* Are rows of this type faster as whole tuples? */
static bool
tuples_pay(TupleDesc tupdesc)
{
	int			variable = 0;

	for (int i = 0; i < tupdesc->natts; i++)
		variable += TupleDescAttr(tupdesc, i)->attlen < 0 ? 1 : 0;
	return gpusort_tuple_rows_pay(tupdesc->natts - variable, variable);
}

/* Should a sort keep the rows of 'input', which are of that type, as whole tuples? */
static bool
wants_tuples(PlanState *input, TupleDesc tupdesc)
{
	if (gpusort_debug_whole_tuples == GS_AUTO)
		return tuples_pay(tupdesc) && returns_tuples(input);
	return gpusort_debug_whole_tuples == GS_ON &&
		tupdesc->natts > 0;
}

GsRowSource *
gpusort_row_source_create(PlanState *input, TupleDesc tupdesc,
						  bool whole_tuples, GsSortSpec *spec)
{
	GsRowSource *source = palloc0(sizeof(GsRowSource));

	source->input = input;
	source->spec = spec;
	spec->tupdesc = tupdesc;
	spec->tuple_attno = 0;
	if (!whole_tuples)
		return source;
	source->tuples = gpusort_tuple_rows_create(spec);
	source->target = (GsScanTarget)
	{
		.slot = gpusort_tuple_rows_slot(source->tuples),
			.ncolumns = spec->keys.nkeys,
			.attnos = spec->keys.attnos,
			.tuple_attno = spec->tuple_attno
	};
	return source;
}

GsRowSource *
gpusort_row_source_create_narrow(PlanState *input, const GsNarrowRows *narrow,
								 GsSortSpec *spec)
{
	GsRowSource *source = palloc0(sizeof(GsRowSource));

	source->input = input;
	source->spec = spec;
	source->narrow = narrow;
	source->target = (GsScanTarget)
	{
		.slot = narrow->slot,
			.ncolumns = narrow->tupdesc->natts,
			.attnos = narrow->attnos
	};
	spec->tupdesc = narrow->tupdesc;
	spec->tuple_attno = 0;
	spec->keys = narrow->keys;
	return source;
}

/* Returns the next row of the input, in the form that the sort keeps. */
static TupleTableSlot *
read_row(void *arg)
{
	GsRowSource *source = arg;

	if (source->scan != NULL)
		return gpusort_page_scan_next(source->scan);
	return gpusort_row_source_take(source, ExecProcNode(source->input));
}

bool
gpusort_row_source_prepare(GsRowSource *source)
{
	bool		tuples = source->tuples != NULL;
	bool		has_target = tuples || source->narrow != NULL;

	/* The tuples of a scan that projects are not those of its table. */
	if (!tuples || source->input->ps_ProjInfo == NULL)
		gpusort_page_scan_prepare(&source->scan, source->input,
								  has_target ? &source->target : NULL);
	if (source->ties != NULL)
		gpusort_stock_ties_reset(source->ties);
	if (!gpusort_debug_stock_ties)
		source->ties = NULL;
	else if (source->ties == NULL)
		source->ties = gpusort_stock_ties_create(source->spec, read_row, source);
	return source->scan != NULL;
}

TupleTableSlot *
gpusort_row_source_take(const GsRowSource *source, TupleTableSlot *slot)
{
	if (source->tuples != NULL)
		return gpusort_tuple_rows_wrap(source->tuples, slot);
	if (source->narrow != NULL)
		return take_narrow(source->narrow, slot);
	return slot;
}

TupleTableSlot *
gpusort_row_source_next(GsRowSource *source)
{
	if (unlikely(source->ties != NULL))
		return gpusort_stock_ties_next(source->ties);
	return read_row(source);
}

void
gpusort_row_source_rewind(GsRowSource *source)
{
	ExecReScan(source->input);
	if (source->scan != NULL)
		gpusort_page_scan_rewind(source->scan);
	if (source->ties != NULL)
		gpusort_stock_ties_reset(source->ties);
}

/* ----------------------------------------------------------------
 *		the rows of a sort node: as it reads them, sorts them and returns them
 *
 * A node returns rows in its scan slot.  That is a virtual slot whose columns
 * point into the memory of the sort, unless rows are sorted as whole tuples:
 * then it is a slot for minimal tuples.
 * ----------------------------------------------------------------
 */

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
					   PlanState *sorted, GsSortSpec *spec)
{
	PlanState  *input = outerPlanState(css);
	TupleDesc	tupdesc = css->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bool		whole_tuples = wants_tuples(sorted, tupdesc);

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
		widen(rows->narrow, row, slot);
		return slot;
	}
	tuple = (MinimalTuple)
		DatumGetPointer(row->tts_values[rows->tuple_attno - 1]);
	return ExecStoreMinimalTuple(tuple, slot, false);
}
