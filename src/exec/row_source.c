/*-------------------------------------------------------------------------
 *
 * row_source.c
 *		Reads the input of a sort node or a GpuSortSink node, and returns the sorted rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "nodes/primnodes.h"

#include "exec/row_source.h"
#include "heap/page_scan.h"
#include "sort/base/tuple_rows.h"
#include "work.h"

struct GsRowSource
{
	PlanState  *input;
	const GsSortSpec *spec;
	GsPageScan *scan;			/* reads the input; NULL if that is executed */
	GsTupleRows *tuples;		/* NULL unless rows are whole tuples */
	const AttrNumber *columns;	/* NULL unless rows are narrow: their columns
								 * in the input */
	GsScanTarget target;		/* of 'scan', if rows are either; else its
								 * slot is NULL */
	TupleTableSlot *sorted_row; /* likewise, of a sort node: as the sort
								 * returns it */
	GsStockTies *ties;			/* NULL unless ties come in stock order */
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

/*
 * Find the columns of narrow rows and return their number, which is 'natts' if all columns can have
 * values.
 */
static int
find_columns(AttrNumber *columns, const Plan *input, int natts, const GsSortKeys *keys)
{
	int			ncolumns = 0;

	if (list_length(input->targetlist) != natts)
		return natts;
	for (AttrNumber attno = 1; attno <= natts; attno++)
	{
		if (!is_absent(input, keys, attno))
			columns[ncolumns++] = attno;
	}
	return ncolumns;
}

/* Returns the numbers of the sort keys among the columns of narrow rows. */
static AttrNumber *
narrow_attnos(const GsSortKeys *keys, const AttrNumber *columns, int ncolumns)
{
	AttrNumber *attnos = palloc(keys->nkeys * sizeof(AttrNumber));

	for (int k = 0; k < keys->nkeys; k++)
		for (int column = 0; column < ncolumns; column++)
			if (columns[column] == keys->attnos[k])
				attnos[k] = column + 1;
	return attnos;
}

/* Have the sort get narrow rows, if the columns of 'input' that are always NULL allow it. */
static void
use_narrow_rows(GsRowSource *source, const Plan *input, GsSortSpec *spec)
{
	int			natts = spec->tupdesc->natts;
	AttrNumber *columns = palloc(natts * sizeof(AttrNumber));
	int			ncolumns = find_columns(columns, input, natts, &spec->keys);
	TupleDesc	tupdesc;

	if (ncolumns == natts)
		return;
	tupdesc = CreateTemplateTupleDesc(ncolumns);
	for (int column = 0; column < ncolumns; column++)
		TupleDescCopyEntry(tupdesc, column + 1, spec->tupdesc, columns[column]);
	TupleDescFinalize(tupdesc);
	spec->tupdesc = tupdesc;
	spec->keys.attnos = narrow_attnos(&spec->keys, columns, ncolumns);
	source->columns = columns;
	source->target = (GsScanTarget)
	{
		.slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual),
			.ncolumns = ncolumns,
			.attnos = columns
	};
	memset(source->target.slot->tts_isnull, 0, ncolumns * sizeof(bool));
	ExecStoreVirtualTuple(source->target.slot);
}

/* Returns a row of the input as a narrow row, or NULL if it is empty. */
static TupleTableSlot *
take_narrow(const GsRowSource *source, TupleTableSlot *wide)
{
	TupleTableSlot *narrow = source->target.slot;

	if (TupIsNull(wide))
		return NULL;
	slot_getallattrs(wide);
	for (int column = 0; column < source->target.ncolumns; column++)
	{
		narrow->tts_values[column] = wide->tts_values[source->columns[column] - 1];
		narrow->tts_isnull[column] = wide->tts_isnull[source->columns[column] - 1];
	}
	return narrow;
}

/* Store a narrow row in a virtual slot for wide rows, which stays valid as long. */
static TupleTableSlot *
widen(const GsRowSource *source, const TupleTableSlot *narrow, TupleTableSlot *wide)
{
	ExecClearTuple(wide);
	memset(wide->tts_isnull, true, wide->tts_tupleDescriptor->natts * sizeof(bool));
	for (int column = 0; column < source->target.ncolumns; column++)
	{
		wide->tts_values[source->columns[column] - 1] = narrow->tts_values[column];
		wide->tts_isnull[source->columns[column] - 1] = narrow->tts_isnull[column];
	}
	return ExecStoreVirtualTuple(wide);
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

static void
use_tuples(GsRowSource *source, GsSortSpec *spec)
{
	source->tuples = gpusort_tuple_rows_create(spec);
	source->target = (GsScanTarget)
	{
		.slot = gpusort_tuple_rows_slot(source->tuples),
			.ncolumns = spec->keys.nkeys,
			.attnos = spec->keys.attnos,
			.tuple_attno = spec->tuple_attno
	};
}

/* GsRowReader: returns the next row as it is in the input. */
static TupleTableSlot *
read_input(void *arg)
{
	GsRowSource *source = arg;

	return source->scan != NULL ? gpusort_page_scan_next(source->scan) :
		ExecProcNode(source->input);
}

GsRowSource *
gpusort_row_source_create(PlanState *input, const PlanState *sorted, TupleDesc tupdesc,
						  bool whole_tuples, GsSortSpec *spec)
{
	GsRowSource *source = palloc0(sizeof(GsRowSource));

	source->input = input;
	source->spec = spec;
	spec->tupdesc = tupdesc;
	spec->tuple_attno = 0;
	if (gpusort_debug_stock_ties)
		source->ties = gpusort_stock_ties_create(spec, read_input, source);
	if (whole_tuples)
		use_tuples(source, spec);
	else
		use_narrow_rows(source, sorted->plan, spec);
	return source;
}

void
gpusort_row_source_return_tuples(CustomScanState *css)
{
	PlanState  *state = &css->ss.ps;
	TupleDesc	tupdesc = css->ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	GPUSORT_INIT_SCAN_SLOT(state->state, &css->ss, tupdesc, &TTSOpsMinimalTuple);
	state->resultops = &TTSOpsMinimalTuple;
	state->resultopsfixed = true;
	state->resultopsset = true;
}

GsRowSource *
gpusort_row_source_create_for_node(CustomScanState *css, PlanState *sorted, GsSortSpec *spec)
{
	TupleDesc	tupdesc = css->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bool		whole_tuples = wants_tuples(sorted, tupdesc);
	GsRowSource *source = gpusort_row_source_create(outerPlanState(css), sorted, tupdesc,
													whole_tuples, spec);

	if (source->target.slot != NULL)
		source->sorted_row = MakeSingleTupleTableSlot(spec->tupdesc, &TTSOpsVirtual);
	if (whole_tuples)
		gpusort_row_source_return_tuples(css);
	return source;
}

/* ----------------------------------------------------------------
 *		reading and returning rows
 * ----------------------------------------------------------------
 */

bool
gpusort_row_source_prepare(GsRowSource *source)
{
	bool		has_target = source->target.slot != NULL && source->ties == NULL;

	/* The tuples of a scan that projects are not those of its table. */
	if (source->tuples == NULL || source->input->ps_ProjInfo == NULL)
		gpusort_page_scan_prepare(&source->scan, source->input,
								  has_target ? &source->target : NULL);
	if (source->ties != NULL)
		gpusort_stock_ties_reset(source->ties);
	return source->scan != NULL;
}

TupleTableSlot *
gpusort_row_source_take(const GsRowSource *source, TupleTableSlot *slot)
{
	if (source->tuples != NULL)
		return gpusort_tuple_rows_wrap(source->tuples, slot);
	if (source->columns != NULL)
		return take_narrow(source, slot);
	return slot;
}

TupleTableSlot *
gpusort_row_source_next(GsRowSource *source)
{
	if (unlikely(source->ties != NULL))
		return gpusort_row_source_take(source, gpusort_stock_ties_next(source->ties));
	if (source->scan != NULL)
		return gpusort_page_scan_next(source->scan);
	return gpusort_row_source_take(source, ExecProcNode(source->input));
}

bool
gpusort_row_source_is_cut(const GsRowSource *source)
{
	return source->ties != NULL && source->spec->bound > 0;
}

void
gpusort_row_source_add_rows(GsRowSource *source, GsSort *sort)
{
	TupleTableSlot *slot;

	while (slot = gpusort_row_source_next(source), !TupIsNull(slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(sort, slot))
			break;
	}
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

/* ExecStoreMinimalTuple(), which needs three calls. */
static inline TupleTableSlot *
store_tuple(MinimalTuple tuple, TupleTableSlot *slot)
{
	MinimalTupleTableSlot *minimal = (MinimalTupleTableSlot *) slot;

	Assert(TTS_IS_MINIMALTUPLE(slot));
	if (unlikely(TTS_SHOULDFREE(slot)))
		return ExecStoreMinimalTuple(tuple, slot, false);
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = 0;
	minimal->off = 0;
	minimal->mintuple = tuple;
	minimal->minhdr.t_len = tuple->t_len + MINIMAL_TUPLE_OFFSET;
	minimal->minhdr.t_data = (HeapTupleHeader) ((char *) tuple - MINIMAL_TUPLE_OFFSET);
	return slot;
}

/* Returns the next row of the sort that is wanted. */
static inline bool
next_wanted(const GsRowSource *source, GsSort *sort, bool forward, TupleTableSlot *slot)
{
	/* Who wants some rows of each partition does not read backward. */
	if (unlikely(source->spec->partition_keys > 0))
		return gpusort_sort_next_of_partition(sort, slot);
	return gpusort_sort_next(sort, forward, slot);
}

bool
gpusort_row_source_is_plain(const GsRowSource *source)
{
	return source->sorted_row == NULL && source->spec->partition_keys == 0;
}

TupleTableSlot *
gpusort_row_source_return(const GsRowSource *source, GsSort *sort, bool forward,
						  TupleTableSlot *slot)
{
	TupleTableSlot *row = source->sorted_row;
	Datum		tuple;

	if (row == NULL)
	{
		(void) next_wanted(source, sort, forward, slot);
		return slot;
	}
	if (!next_wanted(source, sort, forward, row))
		return ExecClearTuple(slot);
	if (source->columns != NULL)
		return widen(source, row, slot);
	tuple = row->tts_values[source->spec->tuple_attno - 1];
	return store_tuple((MinimalTuple) DatumGetPointer(tuple), slot);
}
