/*-------------------------------------------------------------------------
 *
 * heap_rows.c
 *		Reads a table for an index build: values, TIDs, and which rows are
 *		live.
 *
 * An index gets the rows that any snapshot may see: live rows, and recently
 * dead ones.  One tuple of a HOT chain goes into the index, under the TID of
 * the chain's root.  A concurrent build indexes what one snapshot sees.
 *
 * Each page is examined once, to find the tuples that go into the index and
 * the roots of their HOT chains.  Then the tuples are read in the order of the
 * roots, so rows come in TID order.  The page is pinned meanwhile but not
 * locked, because only hint bits can change.
 *
 * An ordinary build holds a lock that keeps out writers of other transactions.
 * If there are tuples of other open transactions nevertheless, PostgreSQL's
 * build waits for those transactions.  Here the row counts as blocked, and the
 * build is left to PostgreSQL.
 *
 * Values that are stored out of line are fetched when their row is read, as in
 * PostgreSQL's build.  Later they may be gone: we have no snapshot that
 * protects the values of dead rows, and VACUUM of the TOAST table removes them
 * whatever lock we hold on the table itself.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/itup.h"
#include "access/parallel.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_blocks.h"
#include "heap/heap_columns.h"
#include "heap/heap_rows.h"
#include "work.h"

/* Values that exceed this size in total do not fit in a btree uncompressed. */
#define LONG_BYTES			(BLCKSZ / 3)

/* A tuple of the current page that goes into the index. */
typedef struct GsPageItem
{
	OffsetNumber root;			/* root of its HOT chain; if there is none,
								 * 'offset' */
	OffsetNumber offset;
	bool		alive;
} GsPageItem;

struct GsHeapShare
{
	pg_atomic_uint64 nlive;		/* live rows that workers have reported */
	pg_atomic_uint64 nrows;		/* rows for the index, likewise */
	pg_atomic_uint32 broken_chains; /* did a worker find broken HOT chains? */
	pg_atomic_uint32 blocked;	/* is a worker blocked? */
	/* a ParallelTableScanDesc follows */
};

struct GsHeapRows
{
	MemoryContext context;
	Relation	heap;
	IndexInfo  *info;
	Snapshot	snapshot;		/* registered, or SnapshotAny; NULL in workers */
	TransactionId horizon;		/* with SnapshotAny: deleters before it make
								 * tuples dead to all */
	GsHeapBlocks blocks;
	HeapScanDesc scan;			/* that of the blocks; NULL before the first
								 * row */
	bool		concurrent;		/* does it have a snapshot? */
	GsHeapShare *share;			/* with other processes, or NULL */
	const GsKnownTids *known;	/* those of rows to skip, or NULL */
	BlockNumber nknown;			/* number of blocks that have bits */
	GsHeapTally tally;

	/*
	 * Values are extracted by 'columns' or, if that is NULL, by the executor.
	 */
	GsHeapColumns *columns;
	EState	   *estate;
	ExprState  *predicate;
	TupleTableSlot *slot;

	/* State for fetching out-of-line values. */
	TupleDesc	index_type;
	bool		from_tuple;		/* are all values in the heap tuple? */
	int			nvarying;		/* columns of variable length; 0 if they are
								 * not fetched */
	int			varying[INDEX_MAX_KEYS];
	MemoryContext fetched;		/* for the values of the current row */

	/* The current page. */
	BlockNumber block;
	Buffer		buffer;
	Page		page;
	int			nitems;
	int			next_item;
	GsPageItem	items[MaxHeapTuplesPerPage];
};

/* ----------------------------------------------------------------
 *		beginning and ending
 * ----------------------------------------------------------------
 */

static ParallelTableScanDesc
scan_of(GsHeapShare *share)
{
	return (ParallelTableScanDesc) ((char *) share + MAXALIGN(sizeof(GsHeapShare)));
}

/*
 * Each scan determines anew which tuples are dead to all, as PostgreSQL's own
 * build does when it starts: rows that died in the meantime may have lost
 * their out-of-line values.
 */
static void
begin_scan(GsHeapRows *rows)
{
	if (!rows->concurrent)
		rows->horizon = GetOldestNonRemovableTransactionId(rows->heap);
	rows->info->ii_BrokenHotChain = false;
	rows->scan = (HeapScanDesc)
		(rows->share != NULL ?
		 GPUSORT_BEGIN_SHARED_SCAN(rows->heap, scan_of(rows->share)) :
		 table_beginscan_strat(rows->heap, rows->snapshot, 0, NULL, true, false));
	gpusort_heap_blocks_begin(&rows->blocks, rows->scan);
	if (!IsParallelWorker())
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, rows->scan->rs_nblocks);
	memset(&rows->tally, 0, sizeof(GsHeapTally));
}

static void
release_page(GsHeapRows *rows)
{
	/* With a snapshot, the scan releases the buffer. */
	if (!rows->concurrent && BufferIsValid(rows->buffer))
		ReleaseBuffer(rows->buffer);
	rows->buffer = InvalidBuffer;
}

void
gpusort_heap_rows_rewind(GsHeapRows *rows)
{
	release_page(rows);
	if (rows->slot != NULL)
		ExecClearTuple(rows->slot);
	if (rows->scan != NULL)
		table_endscan((TableScanDesc) rows->scan);
	rows->scan = NULL;
	rows->nitems = rows->next_item = 0;
}

/* Prepare to extract values from tuples. */
static void
prepare_values(GsHeapRows *rows)
{
	IndexInfo  *info = rows->info;

	if (info->ii_Expressions == NIL && info->ii_Predicate == NIL)
	{
		rows->columns =
			gpusort_heap_columns_create(RelationGetDescr(rows->heap),
										info->ii_NumIndexAttrs,
										info->ii_IndexAttrNumbers, NULL);
		return;
	}
	rows->estate = CreateExecutorState();
	rows->slot = table_slot_create(rows->heap, NULL);
	GetPerTupleExprContext(rows->estate)->ecxt_scantuple = rows->slot;
	rows->predicate = ExecPrepareQual(info->ii_Predicate, rows->estate);
}

/* Prepare to fetch out-of-line values. */
static void
prepare_fetching(GsHeapRows *rows, Relation index)
{
	TupleDesc	table = RelationGetDescr(rows->heap);

	rows->index_type = RelationGetDescr(index);
	rows->from_tuple = rows->columns != NULL &&
		(table->constr == NULL || table->constr->missing == NULL);
	rows->fetched = AllocSetContextCreate(rows->context,
										  "pg_gpusort fetched values",
										  ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < rows->index_type->natts; i++)
		if (TupleDescAttr(rows->index_type, i)->attlen == -1)
			rows->varying[rows->nvarying++] = i;
}

static GsHeapRows *
create_rows(Relation heap, Relation index, IndexInfo *info, bool fetch)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort heap rows",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsHeapRows *rows = palloc0(sizeof(GsHeapRows));

	rows->context = context;
	rows->heap = heap;
	rows->info = info;
	rows->buffer = InvalidBuffer;
	rows->concurrent = info->ii_Concurrent;
	prepare_values(rows);
	if (fetch)
		prepare_fetching(rows, index);
	MemoryContextSwitchTo(caller);
	return rows;
}

GsHeapRows *
gpusort_heap_rows_begin(Relation heap, Relation index, IndexInfo *info, bool fetch,
						GsHeapShare *share)
{
	GsHeapRows *rows = create_rows(heap, index, info, fetch);

	rows->share = share;
	if (share == NULL)
		rows->snapshot = rows->concurrent ? RegisterSnapshot(GetTransactionSnapshot()) :
			SnapshotAny;
	return rows;
}

GsHeapRows *
gpusort_heap_rows_begin_missing(Relation heap, Relation index, IndexInfo *info,
								Snapshot snapshot, const GsKnownTids *known,
								BlockNumber nknown)
{
	GsHeapRows *rows = create_rows(heap, index, info, false);

	Assert(rows->concurrent);
	rows->snapshot = RegisterSnapshot(snapshot);
	rows->known = known;
	rows->nknown = nknown;
	return rows;
}

Size
gpusort_heap_rows_share_bytes(const GsHeapRows *rows)
{
	return MAXALIGN(sizeof(GsHeapShare)) +
		table_parallelscan_estimate(rows->heap, rows->snapshot);
}

/*
 * The scan must not begin in the middle of the table, as a synchronized one would: rows
 * come in TID order.
 */
void
gpusort_heap_rows_share(GsHeapRows *rows, GsHeapShare *share)
{
	pg_atomic_init_u64(&share->nlive, 0);
	pg_atomic_init_u64(&share->nrows, 0);
	pg_atomic_init_u32(&share->broken_chains, 0);
	pg_atomic_init_u32(&share->blocked, 0);
	table_parallelscan_initialize(rows->heap, scan_of(share), rows->snapshot);
	scan_of(share)->phs_syncscan = false;
	rows->share = share;
}

void
gpusort_heap_rows_unshare(GsHeapRows *rows)
{
	GsHeapShare *share = rows->share;

	if (share == NULL)
		return;
	rows->tally.live += (double) pg_atomic_read_u64(&share->nlive);
	rows->tally.returned += (int64) pg_atomic_read_u64(&share->nrows);
	rows->info->ii_BrokenHotChain |=
		pg_atomic_read_u32(&share->broken_chains) != 0;
	rows->tally.blocked |= pg_atomic_read_u32(&share->blocked) != 0;
	rows->share = NULL;
}

void
gpusort_heap_rows_report(GsHeapRows *rows)
{
	pg_atomic_fetch_add_u64(&rows->share->nlive, (uint64) rows->tally.live);
	pg_atomic_fetch_add_u64(&rows->share->nrows, (uint64) rows->tally.returned);
	if (rows->info->ii_BrokenHotChain)
		pg_atomic_write_u32(&rows->share->broken_chains, 1);
	if (rows->tally.blocked)
		pg_atomic_write_u32(&rows->share->blocked, 1);
}

void
gpusort_heap_rows_end(GsHeapRows *rows)
{
	gpusort_heap_rows_rewind(rows);
	if (rows->slot != NULL)
		ExecDropSingleTupleTableSlot(rows->slot);
	if (rows->estate != NULL)
	{
		FreeExecutorState(rows->estate);
		/* Their memory has been freed with the executor state. */
		rows->info->ii_ExpressionsState = NIL;
		rows->info->ii_PredicateState = NULL;
	}
	if (rows->concurrent && rows->snapshot != NULL)
		UnregisterSnapshot(rows->snapshot);
	MemoryContextDelete(rows->context);
}

const GsHeapTally *
gpusort_heap_rows_tally(const GsHeapRows *rows)
{
	return &rows->tally;
}

/* ----------------------------------------------------------------
 *		pages
 * ----------------------------------------------------------------
 */

/* Add a tuple of the current page. */
static inline void
add_item(GsHeapRows *rows, OffsetNumber offset, bool alive)
{
	rows->items[rows->nitems++] = (GsPageItem)
	{
		.root = offset,.offset = offset,.alive = alive
	};
}

/* Add a tuple that was deleted, but that a snapshot may still see. */
static void
add_dead_item(GsHeapRows *rows, HeapTuple tuple, OffsetNumber offset)
{
	/*
	 * Only the last tuple of a HOT chain goes into the index.  Snapshots that
	 * see this older one must not use the index.
	 */
	if (HeapTupleIsHotUpdated(tuple))
		rows->info->ii_BrokenHotChain = true;
	else
		add_item(rows, offset, false);
}

/* Add a tuple that was inserted or deleted by a transaction in progress. */
static void
add_open_item(GsHeapRows *rows, HeapTuple tuple, OffsetNumber offset,
			  bool deleted)
{
	TransactionId xid = deleted ? HeapTupleHeaderGetUpdateXid(tuple->t_data) :
		HeapTupleHeaderGetXmin(tuple->t_data);

	if (!TransactionIdIsCurrentTransactionId(xid))
		rows->tally.blocked = true;
	else if (deleted)
		add_dead_item(rows, tuple, offset);
	else
	{
		rows->tally.live++;
		add_item(rows, offset, true);
	}
}

/*
 * Determine whether a tuple goes into the index.  The buffer must be locked.
 */
static void
check_visibility(GsHeapRows *rows, OffsetNumber offset, ItemId item)
{
	HeapTupleData tuple;

	tuple.t_data = (HeapTupleHeader) PageGetItem(rows->page, item);
	tuple.t_len = ItemIdGetLength(item);
	tuple.t_tableOid = RelationGetRelid(rows->heap);
	ItemPointerSet(&tuple.t_self, rows->block, offset);
	switch (HeapTupleSatisfiesVacuum(&tuple, rows->horizon, rows->buffer))
	{
		case HEAPTUPLE_LIVE:
			rows->tally.live++;
			add_item(rows, offset, true);
			break;
		case HEAPTUPLE_DEAD:
			break;
		case HEAPTUPLE_RECENTLY_DEAD:
			add_dead_item(rows, &tuple, offset);
			break;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			add_open_item(rows, &tuple, offset, false);
			break;
		case HEAPTUPLE_DELETE_IN_PROGRESS:
			add_open_item(rows, &tuple, offset, true);
			break;
	}
}

/* Do the hint bits alone say that the tuple is live? */
static inline bool
is_plainly_live(HeapTupleHeader tuple)
{
	return HeapTupleHeaderXminCommitted(tuple) &&
		(tuple->t_infomask & HEAP_XMAX_INVALID) != 0;
}

/*
 * Find the tuples of a locked page that go into the index.  Returns whether
 * the page has heap-only tuples, whose roots have to be found.
 */
static bool
check_page(GsHeapRows *rows)
{
	OffsetNumber last = PageGetMaxOffsetNumber(rows->page);
	bool		heap_only = false;
	int			ntuples = 0;

	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemId		item = PageGetItemId(rows->page, offset);
		HeapTupleHeader tuple;

		if (!ItemIdIsNormal(item))
			continue;
		ntuples++;
		tuple = (HeapTupleHeader) PageGetItem(rows->page, item);
		heap_only |= HeapTupleHeaderIsHeapOnly(tuple);
		if (likely(is_plainly_live(tuple)))
		{
			rows->tally.live++;
			add_item(rows, offset, true);
		}
		else
			check_visibility(rows, offset, item);
	}

	/*
	 * A scan of the heap returns dead tuples, too.  Of a table, this counter
	 * is for scans.
	 */
	pgstat_count_index_tuples(rows->heap, ntuples);
	return heap_only;
}

/*
 * Find the tuples of a page that the scan's snapshot sees.  Returns whether
 * any of them is a heap-only tuple.
 */
static bool
extract_visible(GsHeapRows *rows)
{
	bool		heap_only = false;

	for (int i = 0; i < rows->scan->rs_ntuples; i++)
	{
		OffsetNumber offset = rows->scan->rs_vistuples[i];
		ItemId		item = PageGetItemId(rows->page, offset);

		heap_only |= HeapTupleHeaderIsHeapOnly((HeapTupleHeader)
											   PageGetItem(rows->page, item));
		add_item(rows, offset, true);
	}
	rows->tally.live += rows->nitems;
	pgstat_count_index_tuples(rows->heap, rows->nitems);
	return heap_only;
}

static int
compare_roots(const void *a, const void *b)
{
	return (int) ((const GsPageItem *) a)->root -
		(int) ((const GsPageItem *) b)->root;
}

/* Find the roots of heap-only tuples, and sort all tuples by their roots. */
static void
find_roots(GsHeapRows *rows)
{
	OffsetNumber roots[MaxHeapTuplesPerPage];

	heap_get_root_tuples(rows->page, roots);
	for (int i = 0; i < rows->nitems; i++)
	{
		GsPageItem *item = &rows->items[i];
		ItemId		id = PageGetItemId(rows->page, item->offset);

		if (!HeapTupleHeaderIsHeapOnly((HeapTupleHeader)
									   PageGetItem(rows->page, id)))
			continue;
		item->root = roots[item->offset - 1];
		if (!OffsetNumberIsValid(item->root))
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg_internal("failed to find parent tuple for heap-only tuple at (%u,%u) in table \"%s\"",
									 rows->block, item->offset,
									 RelationGetRelationName(rows->heap))));
	}
	qsort(rows->items, rows->nitems, sizeof(GsPageItem), compare_roots);
}

/* Drop tuples whose roots are known. */
static void
drop_known(GsHeapRows *rows)
{
	const uint64 *known = rows->known[rows->block];
	int			n = 0;

	for (int i = 0; i < rows->nitems; i++)
	{
		unsigned	bit = rows->items[i].root - 1;

		if ((known[bit / 64] >> (bit % 64) & 1) == 0)
			rows->items[n++] = rows->items[i];
	}
	rows->nitems = n;
}

/* Read a page, and find its tuples that go into the index. */
static void
read_page(GsHeapRows *rows)
{
	BlockNumber block = rows->block;
	bool		heap_only;

	release_page(rows);
	rows->nitems = rows->next_item = 0;
	if (rows->concurrent)
	{
		GPUSORT_HEAP_READ_PAGE(rows->scan, block);
		rows->buffer = rows->scan->rs_cbuf;
	}
	else
		rows->buffer = ReadBufferExtended(rows->heap, MAIN_FORKNUM, block,
										  RBM_NORMAL, rows->scan->rs_strategy);
	rows->page = BufferGetPage(rows->buffer);
	LockBuffer(rows->buffer, BUFFER_LOCK_SHARE);
	heap_only = rows->concurrent ? extract_visible(rows) :
		check_page(rows);
	if (heap_only)
		find_roots(rows);
	LockBuffer(rows->buffer, BUFFER_LOCK_UNLOCK);
	if (rows->known != NULL && rows->block < rows->nknown)
		drop_known(rows);
}

/* Returns the next block to read, or InvalidBlockNumber. */
static BlockNumber
take_block(GsHeapRows *rows)
{
	BlockNumber block = gpusort_heap_blocks_take(&rows->blocks);

	if (!IsParallelWorker())
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
									 BlockNumberIsValid(block) ? block :
									 rows->scan->rs_nblocks);
	return block;
}

/*
 * Advance to the next page that has rows for the index.  Returns false at the
 * end, or if a row is blocked.
 */
static bool
next_page(GsHeapRows *rows)
{
	if (rows->scan == NULL)
		begin_scan(rows);
	do
	{
		CHECK_FOR_INTERRUPTS();
		rows->block = take_block(rows);
		if (rows->block == InvalidBlockNumber)
			return false;
		read_page(rows);
		if (rows->tally.blocked)
			return false;
	} while (rows->nitems == 0);
	return true;
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/*
 * Compute a row's values with the executor.  Returns false if a partial index
 * excludes the row.
 */
static bool
compute_values(GsHeapRows *rows, HeapTuple tuple, Datum *values, bool *isnull)
{
	ExprContext *econtext = GetPerTupleExprContext(rows->estate);

	ResetExprContext(econtext);
	ExecStoreBufferHeapTuple(tuple, rows->slot, rows->buffer);
	if (rows->predicate != NULL && !ExecQual(rows->predicate, econtext))
		return false;
	FormIndexDatum(rows->info, rows->slot, rows->estate, values, isnull);
	return true;
}

/*
 * Is any value stored out of line, or are the values so long in total that
 * PostgreSQL has to compress them for an index?  Values with a one-byte header
 * do not count.
 */
static inline bool
needs_fetching(const GsHeapRows *rows, const Datum *values,
			   const bool *isnull)
{
	Size		size = 0;

	for (int i = 0; i < rows->nvarying; i++)
	{
		int			column = rows->varying[i];
		const struct varlena *value;

		if (isnull[column])
			continue;
		value = (const struct varlena *) DatumGetPointer(values[column]);
		if (unlikely(VARATT_IS_EXTERNAL(value)))
			return true;
		if (unlikely(!VARATT_IS_SHORT(value)))
			size += VARSIZE(value);
	}
	return unlikely(size > LONG_BYTES);
}

/*
 * Have PostgreSQL form an index tuple of the row, and take the values from it.
 * That fetches and compresses them, and raises an error if they are too long.
 */
static void
fetch_values(GsHeapRows *rows, Datum *values, bool *isnull)
{
	MemoryContext caller;
	IndexTuple	tuple;

	MemoryContextReset(rows->fetched);
	caller = MemoryContextSwitchTo(rows->fetched);
	tuple = index_form_tuple(rows->index_type, values, isnull);
	index_deform_tuple(tuple, rows->index_type, values, isnull);
	MemoryContextSwitchTo(caller);
}

/*
 * Extract the values of a tuple.  Returns false if a partial index excludes
 * it.
 */
static inline bool
extract_values(GsHeapRows *rows, const GsPageItem *item, Datum *values,
			   bool *isnull)
{
	ItemId		id = PageGetItemId(rows->page, item->offset);
	HeapTupleData tuple;

	tuple.t_data = (HeapTupleHeader) PageGetItem(rows->page, id);
	tuple.t_len = ItemIdGetLength(id);
	if (likely(rows->columns != NULL))
		gpusort_heap_columns_extract(rows->columns, tuple.t_data, values, isnull);
	else
	{
		tuple.t_tableOid = RelationGetRelid(rows->heap);
		ItemPointerSet(&tuple.t_self, rows->block, item->offset);
		if (!compute_values(rows, &tuple, values, isnull))
			return false;
	}
	if (unlikely((!rows->from_tuple || HeapTupleHasExternal(&tuple) ||
				  tuple.t_len > LONG_BYTES) &&
				 needs_fetching(rows, values, isnull)))
		fetch_values(rows, values, isnull);
	return true;
}

bool
gpusort_heap_rows_next(GsHeapRows *rows, GsHeapRow *row, Datum *values,
					   bool *isnull)
{
	const GsPageItem *item;

	do
	{
		if (unlikely(rows->next_item == rows->nitems) && !next_page(rows))
			return false;
		gpusort_work_add(GPUSORT_WORK_ROW);
		item = &rows->items[rows->next_item++];
	} while (!extract_values(rows, item, values, isnull));
	ItemPointerSet(&row->tid, rows->block, item->root);
	row->alive = item->alive;
	rows->tally.returned++;
	return true;
}
