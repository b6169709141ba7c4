/*-------------------------------------------------------------------------
 *
 * page_scan.c
 *		Reads a plain sequential scan of a heap page by page.
 *
 * The input of most large sorts is a Seq Scan without a condition, which
 * returns columns of the table.  The executor makes a dozen calls for each
 * such row.  Here a page is read as the heap reads it, with all its checks of
 * visibility.  Then the requested columns are extracted from its tuples.
 *
 * The scan descriptor is stored in the node and is begun as the node would
 * begin it.  The node therefore handles rescans and the end of the query as
 * usual.  With instrumentation, the node is credited with rows and time, page
 * by page.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "core/prefetch.h"
#include "heap/heap_blocks.h"
#include "heap/heap_columns.h"
#include "heap/page_scan.h"
#include "work.h"

/*
 * How many tuples ahead tuples are prefetched.  Tuples are stored from the end
 * of the page to its front, which processors do not expect.
 */
#define PREFETCH_TUPLES		8

struct GsPageScan
{
	SeqScanState *node;
	TupleTableSlot *slot;
	GsHeapColumns *columns;
	int			tuple_column;	/* index of the slot's column with the whole
								 * tuple, or 0 */

	/* The current page. */
	HeapScanDesc heap;			/* NULL before the first one */
	Page		page;
	uint32		next_tuple;
	uint32		ntuples;
	GsHeapBlocks blocks;
};

/* ----------------------------------------------------------------
 *		which scans can be read page by page
 * ----------------------------------------------------------------
 */

/*
 * Returns the table's attribute that is the given column of the result, from
 * 0, or 0 if that is anything else.
 */
static AttrNumber
attribute_of_column(const PlanState *node, int column)
{
	const Var  *var;

	if (node->ps_ProjInfo == NULL)
		return column + 1;
	var = (const Var *) list_nth_node(TargetEntry, node->plan->targetlist, column)->expr;
	return IsA(var, Var) && var->varattno > 0 ? var->varattno : 0;
}

/*
 * Can the node's rows be read page by page?  The descriptor of a parallel scan
 * was created when the workers were launched.
 */
static bool
is_plain_scan(const PlanState *node)
{
	return IsA(node, SeqScanState) &&
		node->qual == NULL &&
		node->chgParam == NULL &&
		node->state->es_epq_active == NULL &&
		IsMVCCSnapshot(node->state->es_snapshot) &&
		node->plan->parallel_aware ==
		(((const ScanState *) node)->ss_currentScanDesc != NULL) &&
		((const ScanState *) node)->ss_currentRelation->rd_tableam ==
		GetHeapamTableAmRoutine();
}

/* Returns the columns to extract, or NULL if some are no columns of the table. */
static GsHeapColumns *
find_columns(PlanState *node, const GsScanTarget *target, TupleDesc table)
{
	int			ncolumns = target != NULL ? target->ncolumns :
		ExecGetResultType(node)->natts;
	AttrNumber *attnos = palloc(ncolumns * sizeof(AttrNumber));
	int		   *places = palloc(ncolumns * sizeof(int));
	GsHeapColumns *columns = NULL;
	int			n;

	for (n = 0; n < ncolumns; n++)
	{
		int			column = target != NULL ? target->attnos[n] - 1 : n;

		attnos[n] = attribute_of_column(node, column);
		places[n] = target != NULL && target->tuple_attno == 0 ? n : column;
		if (attnos[n] == 0)
			break;
	}
	if (n == ncolumns)
		columns = gpusort_heap_columns_create(table, ncolumns, attnos, places);
	pfree(attnos);
	pfree(places);
	return columns;
}

/*
 * Create a page scan of the node's rows in the current memory context.
 * Returns NULL if the node has to be executed.
 */
static GsPageScan *
create_scan(PlanState *node, const GsScanTarget *target)
{
	GsHeapColumns *columns;
	GsPageScan *scan;

	if (!is_plain_scan(node))
		return NULL;
	columns = find_columns(node, target,
						   RelationGetDescr(((ScanState *) node)->ss_currentRelation));
	if (columns == NULL)
		return NULL;
	scan = palloc0(sizeof(GsPageScan));
	scan->node = castNode(SeqScanState, node);
	scan->columns = columns;
	if (target != NULL)
	{
		Assert(target->tuple_attno == 0 || node->ps_ProjInfo == NULL);
		scan->tuple_column = Max(target->tuple_attno - 1, 0);
		scan->slot = target->slot;
		return scan;
	}

	/* The slot stays valid while rows are written into its arrays. */
	scan->slot = MakeSingleTupleTableSlot(ExecGetResultType(node), &TTSOpsVirtual);
	memset(scan->slot->tts_isnull, 0, scan->slot->tts_tupleDescriptor->natts * sizeof(bool));
	ExecStoreVirtualTuple(scan->slot);
	return scan;
}

/* ----------------------------------------------------------------
 *		pages
 * ----------------------------------------------------------------
 */

static void
begin_scan(GsPageScan *scan)
{
	ScanState  *node = &scan->node->ss;

	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = GPUSORT_BEGIN_SEQ_SCAN(node);
	scan->heap = (HeapScanDesc) node->ss_currentScanDesc;
	gpusort_heap_blocks_begin(&scan->blocks, scan->heap);
}

static void
end_scan(GsPageScan *scan)
{
	if (BufferIsValid(scan->heap->rs_cbuf))
		ReleaseBuffer(scan->heap->rs_cbuf);
	scan->heap->rs_cbuf = InvalidBuffer;
	scan->heap->rs_cblock = InvalidBlockNumber;
}

/*
 * Read the next page and find its visible tuples.  Returns false at the end.
 */
static bool
read_page(GsPageScan *scan)
{
	HeapScanDesc heap;
	BlockNumber block;

	if (scan->heap == NULL)
		begin_scan(scan);
	heap = scan->heap;
	scan->next_tuple = scan->ntuples = 0;
	block = gpusort_heap_blocks_take(&scan->blocks);
	if (block == InvalidBlockNumber)
	{
		end_scan(scan);
		return false;
	}
	GPUSORT_HEAP_READ_PAGE(heap, block);
	scan->page = BufferGetPage(heap->rs_cbuf);
	scan->ntuples = heap->rs_ntuples;
	return true;
}

/*
 * Advance to the next page that has visible tuples.  Returns false at the end.
 */
static bool
next_page(GsPageScan *scan)
{
	GsNodeInstrumentation *instrument = scan->node->ss.ps.instrument;
	bool		found;

	if (instrument != NULL)
		InstrStartNode(instrument);
	do
	{
		CHECK_FOR_INTERRUPTS();
		found = read_page(scan);
	} while (found && scan->ntuples == 0);
	if (instrument != NULL)
		InstrStopNode(instrument, scan->ntuples);
	return found;
}

void
gpusort_page_scan_rewind(GsPageScan *scan)
{
	scan->heap = NULL;
	scan->next_tuple = scan->ntuples = 0;
}

void
gpusort_page_scan_prepare(GsPageScan **scan, PlanState *node,
						  const GsScanTarget *target)
{
	if (*scan == NULL)
	{
		*scan = create_scan(node, target);
		return;
	}
	/* ExecProcNode(), which is not called, would do this. */
	if (node->chgParam != NULL)
		ExecReScan(node);
	gpusort_page_scan_rewind(*scan);
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/* Returns the item of the n-th visible tuple of the page, from 0. */
static inline ItemId
nth_item(const GsPageScan *scan, uint32 n)
{
	return PageGetItemId(scan->page, scan->heap->rs_vistuples[n]);
}

TupleTableSlot *
gpusort_page_scan_next(GsPageScan *scan)
{
	ItemId		item;
	HeapTupleHeader tuple;

	if (unlikely(scan->next_tuple == scan->ntuples) && !next_page(scan))
		return NULL;
	if (scan->next_tuple + PREFETCH_TUPLES < scan->ntuples)
		gpusort_prefetch(PageGetItem(scan->page,
									 nth_item(scan, scan->next_tuple + PREFETCH_TUPLES)));
	gpusort_work_add(GPUSORT_WORK_ROW);
	item = nth_item(scan, scan->next_tuple++);
	tuple = (HeapTupleHeader) PageGetItem(scan->page, item);
	pgstat_count_heap_getnext(scan->heap->rs_base.rs_rd);

	gpusort_heap_columns_extract(scan->columns, tuple, scan->slot->tts_values,
								 scan->slot->tts_isnull);
	if (scan->tuple_column > 0)
	{
		Datum	   *values = &scan->slot->tts_values[scan->tuple_column];

		values[0] = PointerGetDatum((char *) tuple + MINIMAL_TUPLE_OFFSET);
		values[1] = (Datum) (ItemIdGetLength(item) - MINIMAL_TUPLE_OFFSET);
	}
	return scan->slot;
}
