/*-------------------------------------------------------------------------
 *
 * page_scan.c
 *		Reads a plain sequential scan of a heap page by page.
 *
 * What most large sorts read is a Seq Scan without a condition, whose rows are
 * columns of a table.  The executor takes such a row through a dozen calls.
 * Here a page is read as the heap reads it, with all its checks of visibility,
 * and then the columns wanted are taken from its tuples where they lie.
 *
 * The scan descriptor is the node's own, begun here as the node would begin it,
 * so that rescans and the end of the query are the node's business as ever.
 * With instrumentation, the node is credited with rows and time, page by page.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "heap/heap_columns.h"
#include "heap/page_scan.h"
#include "work.h"

/*
 * How many tuples ahead tuples are fetched into the cache: they lie against the
 * direction in which processors expect to be asked for memory.
 */
#define PREFETCH_TUPLES		8

#ifdef __GNUC__
#define PREFETCH(address)	__builtin_prefetch(address)
#else
#define PREFETCH(address)	((void) 0)
#endif

struct GsPageScan
{
	SeqScanState *node;
	TupleTableSlot *slot;
	GsHeapColumns *columns;

	/* The page. */
	HeapScanDesc heap;			/* NULL before the first one */
	Page		page;
	uint32		next_tuple;
	uint32		ntuples;
	BlockNumber next_block;
	BlockNumber blocks_left;
};

/* ----------------------------------------------------------------
 *		which scans can be read so
 * ----------------------------------------------------------------
 */

/*
 * The attribute of the table that a target list entry passes on, or 0 if it
 * does anything else.
 */
static AttrNumber
plain_attribute(const TargetEntry *entry)
{
	const Var  *var = (const Var *) entry->expr;

	return IsA(var, Var) && var->varattno > 0 ? var->varattno : 0;
}

static bool
passes_columns_on(const PlanState *node)
{
	ListCell   *lc;

	if (node->ps_ProjInfo == NULL)
		return true;
	foreach(lc, node->plan->targetlist)
		if (plain_attribute(lfirst_node(TargetEntry, lc)) == 0)
		return false;
	return true;
}

/* A parallel scan has been begun when workers were started. */
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
		GetHeapamTableAmRoutine() &&
		passes_columns_on(node);
}

/* The attribute of the table that goes to a place of the result. */
static AttrNumber
attribute_of_place(const PlanState *node, int place)
{
	if (node->ps_ProjInfo == NULL)
		return place + 1;
	return plain_attribute(list_nth_node(TargetEntry, node->plan->targetlist,
										 place));
}

static GsHeapColumns *
find_columns(const PlanState *node, TupleDesc table, int natts)
{
	AttrNumber *attnos = palloc(natts * sizeof(AttrNumber));
	GsHeapColumns *columns;

	for (int place = 0; place < natts; place++)
		attnos[place] = attribute_of_place(node, place);
	columns = gpusort_heap_columns_create(table, natts, attnos);
	pfree(attnos);
	return columns;
}

/*
 * Make a reader of the node's rows in the current memory context, or return
 * NULL if the node has to be executed.
 */
static GsPageScan *
create_scan(PlanState *node)
{
	TupleDesc	result = ExecGetResultType(node);
	GsPageScan *scan;

	if (!is_plain_scan(node))
		return NULL;
	scan = palloc0(sizeof(GsPageScan));
	scan->node = castNode(SeqScanState, node);
	scan->columns =
		find_columns(node,
					 RelationGetDescr(scan->node->ss.ss_currentRelation),
					 result->natts);

	/* Rows are written into the slot that it has now. */
	scan->slot = MakeSingleTupleTableSlot(result, &TTSOpsVirtual);
	memset(scan->slot->tts_isnull, 0, result->natts * sizeof(bool));
	ExecStoreVirtualTuple(scan->slot);
	return scan;
}

/* ----------------------------------------------------------------
 *		pages
 * ----------------------------------------------------------------
 */

static ParallelBlockTableScanDesc
parallel_state(HeapScanDesc heap)
{
	return (ParallelBlockTableScanDesc) heap->rs_base.rs_parallel;
}

static void
begin_scan(GsPageScan *scan)
{
	ScanState  *node = &scan->node->ss;

	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = GPUSORT_BEGIN_SEQ_SCAN(node);
	scan->heap = (HeapScanDesc) node->ss_currentScanDesc;
	scan->next_block = scan->heap->rs_startblock;
	scan->blocks_left = scan->heap->rs_nblocks;
	if (scan->heap->rs_base.rs_parallel != NULL)
		GPUSORT_BEGIN_PARALLEL_SCAN(scan->heap, parallel_state(scan->heap));
}

/* The next block to read, or InvalidBlockNumber. */
static BlockNumber
take_block(GsPageScan *scan)
{
	BlockNumber block = scan->next_block;

	/* Processes of a parallel scan share the blocks out among them. */
	if (scan->heap->rs_base.rs_parallel != NULL)
		return table_block_parallelscan_nextpage(scan->heap->rs_base.rs_rd,
												 scan->heap->rs_parallelworkerdata,
												 parallel_state(scan->heap));
	if (scan->blocks_left == 0)
		return InvalidBlockNumber;
	scan->blocks_left--;
	if (++scan->next_block == scan->heap->rs_nblocks)
		scan->next_block = 0;
	if (scan->heap->rs_base.rs_flags & SO_ALLOW_SYNC)
		ss_report_location(scan->heap->rs_base.rs_rd, scan->next_block);
	return block;
}

static void
end_scan(GsPageScan *scan)
{
	if (BufferIsValid(scan->heap->rs_cbuf))
		ReleaseBuffer(scan->heap->rs_cbuf);
	scan->heap->rs_cbuf = InvalidBuffer;
	scan->heap->rs_cblock = InvalidBlockNumber;
}

/* Read the next page with its visible tuples; false at the end. */
static bool
read_page(GsPageScan *scan)
{
	HeapScanDesc heap;
	BlockNumber block;

	if (scan->heap == NULL)
		begin_scan(scan);
	heap = scan->heap;
	scan->next_tuple = scan->ntuples = 0;
	block = take_block(scan);
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

/* The next page that has rows; false at the end. */
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
gpusort_page_scan_prepare(GsPageScan **scan, PlanState *node)
{
	if (*scan == NULL)
	{
		*scan = create_scan(node);
		return;
	}
	/* ExecProcNode() would do this, which is not called. */
	if (node->chgParam != NULL)
		ExecReScan(node);
	gpusort_page_scan_rewind(*scan);
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/* The n-th visible tuple of the page. */
static inline HeapTupleHeader
nth_tuple(const GsPageScan *scan, uint32 n)
{
	ItemId		item = PageGetItemId(scan->page, scan->heap->rs_vistuples[n]);

	return (HeapTupleHeader) PageGetItem(scan->page, item);
}

TupleTableSlot *
gpusort_page_scan_next(GsPageScan *scan)
{
	HeapTupleHeader tuple;

	if (unlikely(scan->next_tuple == scan->ntuples) && !next_page(scan))
		return NULL;
	if (scan->next_tuple + PREFETCH_TUPLES < scan->ntuples)
		PREFETCH(nth_tuple(scan, scan->next_tuple + PREFETCH_TUPLES));
	gpusort_work_add(GPUSORT_WORK_ROW);
	tuple = nth_tuple(scan, scan->next_tuple++);
	pgstat_count_heap_getnext(scan->heap->rs_base.rs_rd);

	gpusort_heap_columns_take(scan->columns, tuple, scan->slot->tts_values,
							  scan->slot->tts_isnull);
	return scan->slot;
}
