/*-------------------------------------------------------------------------
 *
 * row_source.c
 *		Reads the input of a GpuSort or GpuSortSink node.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"

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

bool
gpusort_row_source_wants_tuples(PlanState *input, TupleDesc tupdesc)
{
	if (gpusort_debug_whole_tuples == GS_WHOLE_TUPLES_AUTO)
		return tuples_pay(tupdesc) && returns_tuples(input);
	return gpusort_debug_whole_tuples == GS_WHOLE_TUPLES_ON &&
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
	source->tuples = gpusort_tuple_rows_create(tupdesc, &spec->keys);
	gpusort_tuple_rows_describe(source->tuples, spec);
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
		return gpusort_narrow_rows_take(source->narrow, slot);
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
