/*-------------------------------------------------------------------------
 *
 * btree_validate.c
 *		Validates a btree that a concurrent statement has built: finds the rows
 *		that are missing in it, and inserts them.
 *
 * validate_index() of PostgreSQL passes the TIDs of the index to a tuplesort, by way of
 * ambulkdelete, and then has the table access method compare them with the rows of the
 * table, one by one, that the reference snapshot sees.  Here the TIDs go to a set, and the
 * rows are looked up there page by page.  Which rows are inserted, in which order and how,
 * is the same.  btbulkdelete() still reads the index: it copes with pages that others split
 * meanwhile.
 *
 * The scan of the table is reached through the table's relation cache entry.  It is given a
 * copy of the heap's routines, as the last step before we return from ambulkdelete, and gets
 * the heap's own back as the first step of the scan.  In between PostgreSQL only sorts what
 * the tuplesort has, which is nothing, so the entry is not used or rebuilt.  If it were
 * rebuilt, PostgreSQL's scan would find all rows missing: gpusort_btree_validate_is_pending()
 * is there to raise an error then.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "heap/heap_rows.h"
#include "index/base/index_build.h"
#include "index/btree/btree.h"
#include "settings.h"
#include "sort/base/sort_stats.h"

/* The blocks of whose bits are cleared at a time. */
#define BLOCKS_PER_CLEAR	4096

/*
 * The TIDs of an index, until its table has been scanned.  There is a bit for each possible TID of
 * a heap.  A page of 8 kB has 40 bytes of bits, which is the space of five TIDs in a sort.  The
 * bits of all pages fit in the processor's caches for tables of some gigabytes, so that it is fast
 * to add TIDs in any order.
 */
typedef struct GsBtreeTids
{
	MemoryContext context;
	Relation	heap;			/* referenced while 'is_pending' */
	Oid			index;
	BlockNumber nblocks;		/* TIDs of other blocks are not added */
	GsKnownTids *blocks;
	double		count;
	bool		is_pending;		/* has the heap's entry our routines? */
} GsBtreeTids;

/* Of the validation that this process does, or NULL. */
static GsBtreeTids *current = NULL;

/* ----------------------------------------------------------------
 *		scanning the table
 * ----------------------------------------------------------------
 */

/*
 * Insert the rows that a snapshot sees and the index lacks.  Uniqueness is checked even if a row
 * is dead by now, because it stands for its HOT chain, of which another row may be live.
 */
static void
insert_missing(Relation heap, Relation index, IndexInfo *info, Snapshot snapshot,
			   const GsBtreeTids *tids, ValidateIndexState *state)
{
	GsHeapRows *rows = gpusort_heap_rows_begin_missing(heap, index, info, snapshot,
													   tids->blocks, tids->nblocks);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS] = {false};
	GsHeapRow	row;

	while (gpusort_heap_rows_next(rows, &row, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		index_insert(index, values, isnull, &row.tid, heap,
					 info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
		state->tups_inserted += 1;
	}
	state->htups += gpusort_heap_rows_tally(rows)->live;
	gpusort_heap_rows_end(rows);
}

/* Give the heap's entry its own routines back. */
static void
restore_routines(Relation heap)
{
	heap->rd_tableam = GetHeapamTableAmRoutine();
}

/* index_validate_scan */
static void
validate_table(Relation heap, Relation index, IndexInfo *info, Snapshot snapshot,
			   ValidateIndexState *state)
{
	GsBtreeTids *tids = current;

	restore_routines(heap);
	if (tids == NULL || !tids->is_pending || tids->heap != heap ||
		tids->index != RelationGetRelid(index))
		elog(ERROR, "TIDs of index \"%s\" have not been collected",
			 RelationGetRelationName(index));
	tids->is_pending = false;
	RelationClose(heap);
	state->itups += tids->count;
	insert_missing(heap, index, info, snapshot, tids, state);
	MemoryContextDelete(tids->context);
	current = NULL;
	gpusort_stats_count_validation();
}

/* ----------------------------------------------------------------
 *		collecting the TIDs of the index
 * ----------------------------------------------------------------
 */

/*
 * Is the validation for us?  Sets the number of blocks of the table.  One that is too large
 * for a set is counted.
 */
static bool
is_eligible(Relation heap, Relation index, BlockNumber *nblocks)
{
	if (gpusort_build_check(heap, index) != GS_REASON_NONE)
		return false;
	*nblocks = RelationGetNumberOfBlocks(heap);
	if ((uint64) *nblocks * sizeof(GsKnownTids) <= (uint64) maintenance_work_mem * 1024)
		return true;
	gpusort_stats_count_reason(GS_REASON_MAINTENANCE_MEM);
	return false;
}

/*
 * Prepare to collect TIDs, which last until the transaction ends.  To clear the bits can take
 * longer than a cancelled query may.
 */
static GsBtreeTids *
create_tids(Relation index, BlockNumber nblocks)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext,
												  "pg_gpusort index validation",
												  ALLOCSET_DEFAULT_SIZES);
	GsBtreeTids *tids = MemoryContextAllocZero(context, sizeof(GsBtreeTids));

	tids->context = context;
	tids->index = RelationGetRelid(index);
	tids->nblocks = nblocks;
	tids->blocks = MemoryContextAllocHuge(context, (Size) nblocks * sizeof(GsKnownTids));
	for (size_t block = 0; block < nblocks; block += BLOCKS_PER_CLEAR)
	{
		CHECK_FOR_INTERRUPTS();
		memset(&tids->blocks[block], 0,
			   Min(BLOCKS_PER_CLEAR, nblocks - block) * sizeof(GsKnownTids));
	}
	return tids;
}

/* IndexBulkDeleteCallback: nothing is deleted */
static bool
add_tid(ItemPointer tid, void *arg)
{
	GsBtreeTids *tids = arg;
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	unsigned	bit = (unsigned) ItemPointerGetOffsetNumberNoCheck(tid) - 1;

	tids->count += 1;
	if (likely(block < tids->nblocks && bit < MaxHeapTuplesPerPage))
		tids->blocks[block][bit / 64] |= UINT64CONST(1) << (bit % 64);
	return false;
}

/* Make the scan of the table that follows ours.  Keeps a reference to the heap. */
static void
replace_routines(GsBtreeTids *tids, Relation heap)
{
	static TableAmRoutine routines;

	routines = *GetHeapamTableAmRoutine();
	routines.index_validate_scan = validate_table;
	tids->heap = heap;
	tids->is_pending = true;
	current = tids;
	heap->rd_tableam = &routines;
}

IndexBulkDeleteResult *
gpusort_btree_validate_collect(IndexVacuumInfo *info, IndexBulkDeleteResult *result,
							   IndexBulkDeleteCallback callback, void *callback_arg)
{
	Relation	heap = RelationIdGetRelation(info->index->rd_index->indrelid);
	BlockNumber nblocks;
	GsBtreeTids *tids;

	if (!is_eligible(heap, info->index, &nblocks))
	{
		RelationClose(heap);
		return btbulkdelete(info, result, callback, callback_arg);
	}
	tids = create_tids(info->index, nblocks);
	result = btbulkdelete(info, result, add_tid, tids);
	replace_routines(tids, heap);
	return result;
}

bool
gpusort_btree_validate_is_pending(Relation index)
{
	return current != NULL && current->is_pending &&
		current->index == RelationGetRelid(index);
}

/*
 * If a validation is pending, an error has ended it.  Its transaction has not been aborted
 * yet, so that we still have the reference to the heap.
 */
void
gpusort_btree_validate_reset(void)
{
	if (current != NULL && current->is_pending)
		restore_routines(current->heap);
	current = NULL;
}
