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
 * A tuple without NULLs has its first columns at constant offsets, as far as all
 * are of fixed length.
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
#include "access/tupmacs.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "exec/page_scan.h"

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

typedef enum GsFixedKind
{
	GS_FIXED_1,					/* passed by value, by size */
	GS_FIXED_2,
	GS_FIXED_4,
	GS_FIXED_8,
	GS_FIXED_POINTER			/* passed by reference */
} GsFixedKind;

/* A column of the result. */
typedef struct GsScanColumn
{
	int			place;			/* in the result, from 0 */
	int			attno;			/* of the table, from 1 */
	GsFixedKind kind;
	uint32		offset;			/* if constant */
} GsScanColumn;

struct GsPageScan
{
	SeqScanState *node;
	TupleTableSlot *slot;
	TupleDesc	table;
	int			max_attno;		/* the last attribute wanted */
	bool		has_nulls;		/* had the last row any? */

	/* Attributes that are walked over, from 'walk_attno' on. */
	int			walk_attno;
	uint32		walk_offset;	/* where that one may begin, without NULLs */
	Datum	   *values;
	bool	   *isnull;

	/* The page. */
	HeapScanDesc heap;			/* NULL before the first one */
	Page		page;
	uint32		next_tuple;
	uint32		ntuples;
	BlockNumber next_block;
	BlockNumber blocks_left;

	/* First the columns with constant offsets, then the others. */
	int			ncolumns;
	int			nfixed;
	GsScanColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* ----------------------------------------------------------------
 *		which scans can be read so
 * ----------------------------------------------------------------
 */

/*
 * The attribute of the table that a target list entry passes on, or 0 if it
 * does anything else.
 */
static int
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

/* ----------------------------------------------------------------
 *		columns
 * ----------------------------------------------------------------
 */

static GsFixedKind
kind_of_attribute(Form_pg_attribute att)
{
	if (!att->attbyval)
		return GS_FIXED_POINTER;
	switch (att->attlen)
	{
		case 1:
			return GS_FIXED_1;
		case 2:
			return GS_FIXED_2;
		case 4:
			return GS_FIXED_4;
		default:
			return GS_FIXED_8;
	}
}

/* The attribute of the table that goes to a place of the result. */
static int
attribute_of_place(const PlanState *node, int place)
{
	if (node->ps_ProjInfo == NULL)
		return place + 1;
	return plain_attribute(list_nth_node(TargetEntry, node->plan->targetlist,
										 place));
}

/* Find out which attributes are at constant offsets in a tuple without NULLs. */
static void
find_walk(GsPageScan *scan, uint32 *offsets)
{
	int			attno;
	uint32		offset = 0;

	for (attno = 1; attno <= scan->max_attno; attno++)
	{
		Form_pg_attribute att = TupleDescAttr(scan->table, attno - 1);

		if (att->attlen < 0)
			break;
		offset = att_align_nominal(offset, att->attalign);
		offsets[attno - 1] = offset;
		offset += att->attlen;
	}
	scan->walk_attno = attno;
	scan->walk_offset = offset;
}

static void
add_columns(GsPageScan *scan, int natts, const uint32 *offsets, bool fixed)
{
	for (int place = 0; place < natts; place++)
	{
		int			attno = attribute_of_place(&scan->node->ss.ps, place);

		if ((attno < scan->walk_attno) != fixed)
			continue;
		scan->columns[scan->ncolumns++] = (GsScanColumn)
		{
			.place = place,
				.attno = attno,
				.kind = kind_of_attribute(TupleDescAttr(scan->table, attno - 1)),
				.offset = fixed ? offsets[attno - 1] : 0
		};
	}
}

static void
find_columns(GsPageScan *scan, int natts)
{
	uint32	   *offsets;

	for (int place = 0; place < natts; place++)
		scan->max_attno = Max(scan->max_attno,
							  attribute_of_place(&scan->node->ss.ps, place));
	offsets = palloc(Max(scan->max_attno, 1) * sizeof(uint32));
	find_walk(scan, offsets);
	add_columns(scan, natts, offsets, true);
	scan->nfixed = scan->ncolumns;
	add_columns(scan, natts, offsets, false);
	pfree(offsets);
}

GsPageScan *
gpusort_page_scan_create(PlanState *node)
{
	TupleDesc	result = ExecGetResultType(node);
	GsPageScan *scan;

	if (!is_plain_scan(node))
		return NULL;
	scan = palloc0(offsetof(GsPageScan, columns) +
				   result->natts * sizeof(GsScanColumn));
	scan->node = castNode(SeqScanState, node);
	scan->table = RelationGetDescr(scan->node->ss.ss_currentRelation);
	find_columns(scan, result->natts);
	scan->values = palloc(Max(scan->max_attno, 1) * sizeof(Datum));
	scan->isnull = palloc(Max(scan->max_attno, 1) * sizeof(bool));

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
		node->ss_currentScanDesc =
			table_beginscan(node->ss_currentRelation,
							node->ps.state->es_snapshot, 0, NULL);
	scan->heap = (HeapScanDesc) node->ss_currentScanDesc;
	scan->next_block = scan->heap->rs_startblock;
	scan->blocks_left = scan->heap->rs_nblocks;
	if (scan->heap->rs_base.rs_parallel != NULL)
		table_block_parallelscan_startblock_init(scan->heap->rs_base.rs_rd,
												 scan->heap->rs_parallelworkerdata,
												 parallel_state(scan->heap));
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
	Instrumentation *instrument = scan->node->ss.ps.instrument;
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

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/* Take columns from their constant offsets. */
static inline void
take_fixed(GsPageScan *scan, char *data)
{
	for (int c = 0; c < scan->nfixed; c++)
	{
		const GsScanColumn *column = &scan->columns[c];
		Datum	   *value = &scan->slot->tts_values[column->place];
		char	   *place = data + column->offset;

		switch (column->kind)
		{
			case GS_FIXED_1:
				*value = CharGetDatum(*place);
				break;
			case GS_FIXED_2:
				*value = Int16GetDatum(*(int16 *) place);
				break;
			case GS_FIXED_4:
				*value = Int32GetDatum(*(int32 *) place);
				break;
			case GS_FIXED_8:
				*value = *(Datum *) place;
				break;
			case GS_FIXED_POINTER:
				*value = PointerGetDatum(place);
				break;
		}
	}
}

/* Walk over a tuple's attributes from one to the last one wanted. */
static void
walk_tuple(GsPageScan *scan, HeapTupleHeader tuple, int first_attno,
		   uint32 offset)
{
	char	   *data = (char *) tuple + tuple->t_hoff;
	bool		has_nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			natts = Min(HeapTupleHeaderGetNatts(tuple), scan->max_attno);

	for (int i = first_attno - 1; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(scan->table, i);

		scan->isnull[i] = has_nulls && att_isnull(i, tuple->t_bits);
		scan->values[i] = (Datum) 0;
		if (scan->isnull[i])
			continue;
		offset = att_align_pointer(offset, att->attalign, att->attlen,
								   data + offset);
		scan->values[i] = fetchatt(att, data + offset);
		offset = att_addlength_pointer(offset, att->attlen, data + offset);
	}

	/* Columns that were added to the table later. */
	for (int i = Max(natts, first_attno - 1); i < scan->max_attno; i++)
		scan->values[i] = getmissingattr(scan->table, i + 1, &scan->isnull[i]);
}

/* Take columns, from the c-th on, that were walked over. */
static inline void
take_walked(GsPageScan *scan, int c)
{
	for (; c < scan->ncolumns; c++)
	{
		const GsScanColumn *column = &scan->columns[c];

		scan->slot->tts_values[column->place] = scan->values[column->attno - 1];
		scan->slot->tts_isnull[column->place] = scan->isnull[column->attno - 1];
	}
}

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
	tuple = nth_tuple(scan, scan->next_tuple++);
	pgstat_count_heap_getnext(scan->heap->rs_base.rs_rd);

	if (likely((tuple->t_infomask & HEAP_HASNULL) == 0 &&
			   HeapTupleHeaderGetNatts(tuple) >= scan->max_attno))
	{
		if (unlikely(scan->has_nulls))
			memset(scan->slot->tts_isnull, 0, scan->ncolumns * sizeof(bool));
		scan->has_nulls = false;
		take_fixed(scan, (char *) tuple + tuple->t_hoff);
		if (scan->nfixed < scan->ncolumns)
		{
			walk_tuple(scan, tuple, scan->walk_attno, scan->walk_offset);
			take_walked(scan, scan->nfixed);
		}
	}
	else
	{
		scan->has_nulls = true;
		walk_tuple(scan, tuple, 1, 0);
		take_walked(scan, 0);
	}
	return scan->slot;
}
