/*-------------------------------------------------------------------------
 *
 * heap_rows.c
 *		Reads a table for an index build: values, TIDs, and who is alive.
 *
 * An index gets the rows that any snapshot may see: live ones, and dead ones that
 * are not dead for all.  One row of a HOT chain stands for the chain, under the
 * TID of the chain's root.  A concurrent build takes what one snapshot sees.
 *
 * A page is looked through once: which of its tuples go into the index, and where
 * their roots are.  Then it is read in the order of the roots, with a pin but
 * without a lock, as only hint bits can change.  So rows come in the order of
 * their TIDs.
 *
 * An ordinary build holds a lock that keeps writers out, but for those of its own
 * transaction.  Should there be others all the same, PostgreSQL waits for them;
 * here the row counts as blocked, and PostgreSQL's own build has to do it.
 *
 * Values that are stored out of line are fetched when their row is read, as PostgreSQL
 * does it.  Later they may be gone: no snapshot of ours keeps those of dead rows, and
 * VACUUM removes them whatever lock we have on the table itself.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/itup.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_columns.h"
#include "heap/heap_rows.h"
#include "work.h"

/* Blocks that a process takes at a time of a heap that it shares. */
#define BLOCKS_PER_TAKE		64

/* Values that are longer together do not fit into a btree as they are. */
#define LONG_BYTES			(BLCKSZ / 3)

/* A tuple of the page that goes into the index. */
typedef struct GsPageItem
{
	OffsetNumber root;			/* of its HOT chain; its own, if there is none */
	OffsetNumber offset;
	bool		alive;
} GsPageItem;

struct GsHeapRows
{
	MemoryContext context;
	Relation	heap;
	IndexInfo  *info;
	Snapshot	snapshot;		/* registered, for a concurrent build, or NULL */
	TransactionId horizon;		/* otherwise: older ones are dead for all */
	HeapScanDesc scan;
	BlockNumber next_block;		/* of those taken */
	BlockNumber end_block;		/* behind those taken */
	GsHeapShare *share;			/* where more are to be taken, or NULL */
	bool		is_worker;
	double		nlive;
	bool		blocked;

	/* How values come out of a tuple: by 'columns', or by the executor. */
	GsHeapColumns *columns;
	EState	   *estate;
	ExprState  *predicate;
	TupleTableSlot *slot;

	/* How they become independent of what is not in the row. */
	TupleDesc	index_type;
	bool		from_tuple;		/* are all values in the table's tuple? */
	int			nvarying;		/* columns of variable length */
	int			varying[INDEX_MAX_KEYS];
	MemoryContext fetched;		/* of a row's values */

	/* The page. */
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

/*
 * What is dead for all is asked anew with each scan, as PostgreSQL's own build asks when
 * it begins: rows that died in the meantime may have lost their long values.
 */
static void
begin_scan(GsHeapRows *rows)
{
	if (rows->snapshot == NULL)
		rows->horizon = GetOldestNonRemovableTransactionId(rows->heap);
	rows->info->ii_BrokenHotChain = false;
	rows->scan = (HeapScanDesc)
		table_beginscan_strat(rows->heap,
							  rows->snapshot != NULL ? rows->snapshot : SnapshotAny,
							  0, NULL, true, false);
	rows->next_block = 0;
	rows->end_block = rows->scan->rs_nblocks;
	rows->nitems = rows->next_item = 0;
	rows->nlive = 0;
	rows->blocked = false;
}

static void
release_page(GsHeapRows *rows)
{
	/* With a snapshot, the buffer is the scan's to release. */
	if (rows->snapshot == NULL && BufferIsValid(rows->buffer))
		ReleaseBuffer(rows->buffer);
	rows->buffer = InvalidBuffer;
}

static void
end_scan(GsHeapRows *rows)
{
	release_page(rows);
	if (rows->slot != NULL)
		ExecClearTuple(rows->slot);
	table_endscan((TableScanDesc) rows->scan);
}

/* Prepare to take values out of tuples. */
static void
prepare_values(GsHeapRows *rows)
{
	IndexInfo  *info = rows->info;

	if (info->ii_Expressions == NIL && info->ii_Predicate == NIL)
	{
		rows->columns =
			gpusort_heap_columns_create(RelationGetDescr(rows->heap),
										info->ii_NumIndexAttrs,
										info->ii_IndexAttrNumbers);
		return;
	}
	rows->estate = CreateExecutorState();
	rows->slot = table_slot_create(rows->heap, NULL);
	GetPerTupleExprContext(rows->estate)->ecxt_scantuple = rows->slot;
	rows->predicate = ExecPrepareQual(info->ii_Predicate, rows->estate);
}

/* Prepare to make values independent of what is not in the row. */
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
create_rows(Relation heap, Relation index, IndexInfo *info, char *snapshot)
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
	if (info->ii_Concurrent)
		rows->snapshot = RegisterSnapshot(snapshot != NULL ?
										  RestoreSnapshot(snapshot) :
										  GetTransactionSnapshot());
	prepare_values(rows);
	prepare_fetching(rows, index);
	begin_scan(rows);
	MemoryContextSwitchTo(caller);
	return rows;
}

static void
report_size(const GsHeapRows *rows)
{
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
								 rows->scan->rs_nblocks);
}

GsHeapRows *
gpusort_heap_rows_begin(Relation heap, Relation index, IndexInfo *info)
{
	GsHeapRows *rows = create_rows(heap, index, info, NULL);

	report_size(rows);
	return rows;
}

Snapshot
gpusort_heap_rows_snapshot(const GsHeapRows *rows)
{
	return rows->snapshot;
}

static void
take_from(GsHeapRows *rows, GsHeapShare *share)
{
	rows->share = share;
	rows->next_block = rows->end_block = 0;
}

void
gpusort_heap_rows_share(GsHeapRows *rows, GsHeapShare *share)
{
	share->nblocks = rows->scan->rs_nblocks;
	pg_atomic_init_u64(&share->next_block, 0);
	pg_atomic_init_u64(&share->nlive, 0);
	pg_atomic_init_u32(&share->broken_chains, 0);
	pg_atomic_init_u32(&share->blocked, 0);
	take_from(rows, share);
}

void
gpusort_heap_rows_unshare(GsHeapRows *rows)
{
	GsHeapShare *share = rows->share;

	rows->nlive += (double) pg_atomic_read_u64(&share->nlive);
	rows->info->ii_BrokenHotChain |=
		pg_atomic_read_u32(&share->broken_chains) != 0;
	rows->blocked |= pg_atomic_read_u32(&share->blocked) != 0;
	rows->share = NULL;
}

GsHeapRows *
gpusort_heap_rows_join(Relation heap, Relation index, IndexInfo *info,
					   char *snapshot, GsHeapShare *share)
{
	GsHeapRows *rows = create_rows(heap, index, info, snapshot);

	rows->is_worker = true;
	take_from(rows, share);
	return rows;
}

/* A worker has read all that there was for it: leave word for the leader. */
static void
report_to_leader(GsHeapRows *rows)
{
	pg_atomic_fetch_add_u64(&rows->share->nlive, (uint64) rows->nlive);
	if (rows->info->ii_BrokenHotChain)
		pg_atomic_write_u32(&rows->share->broken_chains, 1);
	if (rows->blocked)
		pg_atomic_write_u32(&rows->share->blocked, 1);
}

void
gpusort_heap_rows_rewind(GsHeapRows *rows)
{
	end_scan(rows);
	begin_scan(rows);
	report_size(rows);
}

void
gpusort_heap_rows_end(GsHeapRows *rows)
{
	if (rows->is_worker)
		report_to_leader(rows);
	end_scan(rows);
	if (rows->slot != NULL)
		ExecDropSingleTupleTableSlot(rows->slot);
	if (rows->estate != NULL)
	{
		FreeExecutorState(rows->estate);
		/* What these pointed to has gone with it. */
		rows->info->ii_ExpressionsState = NIL;
		rows->info->ii_PredicateState = NULL;
	}
	if (rows->snapshot != NULL)
		UnregisterSnapshot(rows->snapshot);
	MemoryContextDelete(rows->context);
}

bool
gpusort_heap_rows_is_blocked(const GsHeapRows *rows)
{
	return rows->blocked;
}

double
gpusort_heap_rows_live(const GsHeapRows *rows)
{
	return rows->nlive;
}

/* ----------------------------------------------------------------
 *		pages
 * ----------------------------------------------------------------
 */

/* Add a tuple of the page. */
static inline void
add_item(GsHeapRows *rows, OffsetNumber offset, bool alive)
{
	rows->items[rows->nitems++] = (GsPageItem)
	{
		.root = offset,.offset = offset,.alive = alive
	};
}

/* A tuple that was deleted, but that a snapshot may still see. */
static void
add_dead_item(GsHeapRows *rows, HeapTuple tuple, OffsetNumber offset)
{
	/*
	 * Of a HOT chain the last tuple goes into the index.  Old snapshots that
	 * see this one must not use the index then.
	 */
	if (HeapTupleIsHotUpdated(tuple))
		rows->info->ii_BrokenHotChain = true;
	else
		add_item(rows, offset, false);
}

/* A tuple of a transaction that is in progress. */
static void
add_open_item(GsHeapRows *rows, HeapTuple tuple, OffsetNumber offset,
			  bool deleted)
{
	TransactionId xid = deleted ? HeapTupleHeaderGetUpdateXid(tuple->t_data) :
		HeapTupleHeaderGetXmin(tuple->t_data);

	if (!TransactionIdIsCurrentTransactionId(xid))
		rows->blocked = true;
	else if (deleted)
		add_dead_item(rows, tuple, offset);
	else
	{
		rows->nlive++;
		add_item(rows, offset, true);
	}
}

/* See whether a tuple goes into the index.  The buffer is locked. */
static void
judge_tuple(GsHeapRows *rows, OffsetNumber offset, ItemId item)
{
	HeapTupleData tuple;

	tuple.t_data = (HeapTupleHeader) PageGetItem(rows->page, item);
	tuple.t_len = ItemIdGetLength(item);
	tuple.t_tableOid = RelationGetRelid(rows->heap);
	ItemPointerSet(&tuple.t_self, rows->block, offset);
	switch (HeapTupleSatisfiesVacuum(&tuple, rows->horizon, rows->buffer))
	{
		case HEAPTUPLE_LIVE:
			rows->nlive++;
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

/* A tuple that is seen by all transactions, and says so itself. */
static inline bool
is_plainly_live(HeapTupleHeader tuple)
{
	return HeapTupleHeaderXminCommitted(tuple) &&
		(tuple->t_infomask & HEAP_XMAX_INVALID) != 0;
}

/*
 * Find the tuples of a locked page that go into the index.  Returns whether
 * any of them is a heap-only tuple, whose root is elsewhere.
 */
static bool
judge_page(GsHeapRows *rows)
{
	OffsetNumber last = PageGetMaxOffsetNumber(rows->page);
	bool		heap_only = false;

	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		ItemId		item = PageGetItemId(rows->page, offset);
		HeapTupleHeader tuple;

		if (!ItemIdIsNormal(item))
			continue;
		tuple = (HeapTupleHeader) PageGetItem(rows->page, item);
		heap_only |= HeapTupleHeaderIsHeapOnly(tuple);
		if (likely(is_plainly_live(tuple)))
		{
			rows->nlive++;
			add_item(rows, offset, true);
		}
		else
			judge_tuple(rows, offset, item);
	}
	return heap_only;
}

/* Take over what the scan's snapshot sees on a page; returns as judge_page(). */
static bool
take_visible(GsHeapRows *rows)
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
	rows->nlive += rows->nitems;
	return heap_only;
}

static int
compare_roots(const void *a, const void *b)
{
	return (int) ((const GsPageItem *) a)->root -
		(int) ((const GsPageItem *) b)->root;
}

/* Find the roots of heap-only tuples, and put all into the order of roots. */
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
					 errmsg_internal("no root of the heap-only tuple at (%u,%u) in table \"%s\"",
									 rows->block, item->offset,
									 RelationGetRelationName(rows->heap))));
	}
	qsort(rows->items, rows->nitems, sizeof(GsPageItem), compare_roots);
}

/* Read a page, and find what is on it for the index. */
static void
read_page(GsHeapRows *rows)
{
	BlockNumber block = rows->block;
	bool		heap_only;

	release_page(rows);
	rows->nitems = rows->next_item = 0;
	if (rows->snapshot != NULL)
	{
		GPUSORT_HEAP_READ_PAGE(rows->scan, block);
		rows->buffer = rows->scan->rs_cbuf;
	}
	else
		rows->buffer = ReadBufferExtended(rows->heap, MAIN_FORKNUM, block,
										  RBM_NORMAL, rows->scan->rs_strategy);
	rows->page = BufferGetPage(rows->buffer);
	LockBuffer(rows->buffer, BUFFER_LOCK_SHARE);
	heap_only = rows->snapshot != NULL ? take_visible(rows) :
		judge_page(rows);
	if (heap_only)
		find_roots(rows);
	LockBuffer(rows->buffer, BUFFER_LOCK_UNLOCK);
}

/*
 * The next block to read, or InvalidBlockNumber.  Of a shared heap, several are
 * taken at a time, so that disks see ranges.
 */
static BlockNumber
take_block(GsHeapRows *rows)
{
	if (rows->next_block >= rows->end_block && rows->share != NULL)
	{
		uint64		first = pg_atomic_fetch_add_u64(&rows->share->next_block,
													BLOCKS_PER_TAKE);

		rows->next_block = (BlockNumber) Min(first, rows->share->nblocks);
		rows->end_block = (BlockNumber) Min(first + BLOCKS_PER_TAKE,
											rows->share->nblocks);
	}
	if (!rows->is_worker)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
									 rows->next_block);
	return rows->next_block < rows->end_block ? rows->next_block++ :
		InvalidBlockNumber;
}

/* Go on to the next page with rows for the index; false at the end. */
static bool
next_page(GsHeapRows *rows)
{
	do
	{
		CHECK_FOR_INTERRUPTS();
		rows->block = take_block(rows);
		if (rows->block == InvalidBlockNumber)
			return false;
		read_page(rows);
		if (rows->blocked)
			return false;
	} while (rows->nitems == 0);
	return true;
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/*
 * Have the executor find a row's values.  Returns false if the index is not to
 * have it.
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
 * Is a value not in the row itself, or are they so long that PostgreSQL has to compress
 * them for an index?  Short values do not matter.
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
 * Take the values from the index tuple that PostgreSQL makes of the row: it fetches them,
 * compresses them, and raises its error if they are too long.
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

/* Take the values of a tuple; false if the index is not to have it. */
static inline bool
take_values(GsHeapRows *rows, const GsPageItem *item, Datum *values,
			bool *isnull)
{
	ItemId		id = PageGetItemId(rows->page, item->offset);
	HeapTupleData tuple;

	tuple.t_data = (HeapTupleHeader) PageGetItem(rows->page, id);
	tuple.t_len = ItemIdGetLength(id);
	if (likely(rows->columns != NULL))
		gpusort_heap_columns_take(rows->columns, tuple.t_data, values, isnull);
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
	} while (!take_values(rows, item, values, isnull));
	ItemPointerSet(&row->tid, rows->block, item->root);
	row->alive = item->alive;
	return true;
}
