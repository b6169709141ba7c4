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

/* ----------------------------------------------------------------
 *		a set of TIDs
 *
 * It has a bit for each possible TID of a heap.  A page of 8 kB has 40 bytes of bits, which is
 * the space of five TIDs in a sort.  The bits of all pages fit in the processor's caches for
 * tables of some gigabytes, so that it is fast to add TIDs in any order, and the set yields
 * them in ascending order.
 *
 * The bits are allocated in chunks of pages when the first TID of a chunk is added: to
 * clear all of them at the beginning could take longer than a cancelled query may.
 * ----------------------------------------------------------------
 */

#define PAGES_PER_CHUNK		1024

/* That of an offset is offset - 1. */
typedef uint64 GsTidSetPage[(MaxHeapTuplesPerPage + 63) / 64];

typedef struct GsTidSet
{
	MemoryContext context;
	BlockNumber nblocks;		/* TIDs of other blocks are not added */
	GsTidSetPage *chunks[FLEXIBLE_ARRAY_MEMBER];	/* NULL if without TIDs */
} GsTidSet;

static const GsTidSetPage no_tids = {0};

static size_t
chunks_of(BlockNumber nblocks)
{
	return ((size_t) nblocks + PAGES_PER_CHUNK - 1) / PAGES_PER_CHUNK;
}

/* Returns an upper bound, in bytes, of the memory of a set for a table of nblocks blocks. */
static uint64
tid_set_size(BlockNumber nblocks)
{
	return sizeof(GsTidSet) + chunks_of(nblocks) *
		(sizeof(GsTidSetPage *) + PAGES_PER_CHUNK * sizeof(GsTidSetPage));
}

/* Create an empty set in the current memory context. */
static GsTidSet *
create_tid_set(BlockNumber nblocks)
{
	GsTidSet   *set = palloc0(sizeof(GsTidSet) + chunks_of(nblocks) * sizeof(GsTidSetPage *));

	set->context = CurrentMemoryContext;
	set->nblocks = nblocks;
	return set;
}

/* Add a TID.  One that no tuple of the set's blocks can have is ignored. */
static inline void
add_to_set(GsTidSet *set, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	unsigned	bit = (unsigned) ItemPointerGetOffsetNumberNoCheck(tid) - 1;
	GsTidSetPage **chunk;

	if (unlikely(block >= set->nblocks || bit >= MaxHeapTuplesPerPage))
		return;
	chunk = &set->chunks[block / PAGES_PER_CHUNK];
	if (unlikely(*chunk == NULL))
		*chunk = MemoryContextAllocZero(set->context, PAGES_PER_CHUNK * sizeof(GsTidSetPage));
	(*chunk)[block % PAGES_PER_CHUNK][bit / 64] |= UINT64CONST(1) << (bit % 64);
}

/* GsKnownTids */
static const uint64 *
bits_of(const void *arg, BlockNumber block)
{
	const GsTidSet *set = arg;
	const GsTidSetPage *chunk;

	if (block >= set->nblocks)
		return no_tids;
	chunk = set->chunks[block / PAGES_PER_CHUNK];
	return chunk != NULL ? chunk[block % PAGES_PER_CHUNK] : no_tids;
}

/* The TIDs of an index, until its table has been scanned. */
typedef struct GsBtreeTids
{
	MemoryContext context;
	Relation	heap;			/* referenced while 'is_pending' */
	Oid			index;
	GsTidSet   *set;
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
			   const GsTidSet *set, ValidateIndexState *state)
{
	GsHeapRows *rows = gpusort_heap_rows_begin_missing(heap, index, info, snapshot, bits_of,
													   set);
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
	state->htups += gpusort_heap_rows_live(rows);
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
	insert_missing(heap, index, info, snapshot, tids->set, state);
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
	if (gpusort_build_check(heap, index) != GS_FALLBACK_NONE)
		return false;
	*nblocks = RelationGetNumberOfBlocks(heap);
	if (tid_set_size(*nblocks) <= (uint64) maintenance_work_mem * 1024)
		return true;
	gpusort_stats_count_fallback(GS_FALLBACK_MAINTENANCE_MEM);
	return false;
}

/* Prepare to collect TIDs, which last until the transaction ends. */
static GsBtreeTids *
create_tids(Relation index, BlockNumber nblocks)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext,
												  "pg_gpusort index validation",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsBtreeTids *tids = palloc0(sizeof(GsBtreeTids));

	tids->context = context;
	tids->index = RelationGetRelid(index);
	tids->set = create_tid_set(nblocks);
	MemoryContextSwitchTo(caller);
	return tids;
}

/* IndexBulkDeleteCallback: nothing is deleted */
static bool
add_tid(ItemPointer tid, void *arg)
{
	GsBtreeTids *tids = arg;

	add_to_set(tids->set, tid);
	tids->count += 1;
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
