/*-------------------------------------------------------------------------
 *
 * gin_writer.c
 *		Writes the pages of a new GIN index from its keys in index order.
 *
 * The index is made from the bottom up.  Each key becomes a tuple of the entry tree, which
 * has the key's posting list or, if that is too long, the root of its posting tree.  One
 * page of each level of the entry tree is being filled.  When it is full, its last key goes
 * to the level above, with its block number.
 *
 * The root of the entry tree must be block 1.  So the first page of a level gets its block
 * number when the second one is begun; a page that remains alone is the root.
 *
 * The metapage and the root are in the buffer pool from the beginning, while the table is
 * scanned, as in PostgreSQL's build.  Functions in the index may query the table, and then
 * the planner reads the metapage, or may write to it, and then their rows are inserted.  All
 * other pages are written past the buffer pool.
 *
 * PostgreSQL's build inserts one key after the other and splits pages in the middle, so that
 * they are half full if keys come in order.  Here a tenth of each page but the first one of
 * a level is left free, if tuples are short.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "index/gin/gin.h"
#include "work.h"

/*
 * Bytes to leave free on each page of the entry tree, unless it would be more than the other
 * number: long posting lists take a third of a page.
 */
#define MIN_FREE_BYTES	(BLCKSZ / 10)
#define MAX_FREE_BYTES	(BLCKSZ / 4)

/* A posting list in a tuple has at least one byte for each TID but the first one. */
#define MAX_LIST_TIDS	((uint32) GinMaxItemSize)

/* ----------------------------------------------------------------
 *		the writer
 * ----------------------------------------------------------------
 */

/* The most bytes of a segment of a posting tree's leaf, with its header, as in PostgreSQL. */
#define MAX_SEGMENT_BYTES	384

/* The free bytes that a leaf must have before another segment is begun. */
#define MIN_SEGMENT_BYTES	32

/* Levels of a posting tree.  Each page above the leaves has hundreds of downlinks. */
#define MAX_LEVELS			9

/* A posting list that is being written. */
typedef struct GsTidList
{
	GinPostingList *list;		/* NULL if there is none */
	uint8	   *end;			/* of its bytes */
	uint8	   *limit;			/* up to which it can grow */
	uint64		last;			/* the TID that was added last */
} GsTidList;

/* A level of a posting tree, and the page that is being filled. */
typedef struct GsPostingLevel
{
	Page		page;
	BlockNumber block;
	Size		size;			/* bytes of its data; of a leaf without those
								 * of the list that is being written */
	uint64		last;			/* its greatest TID */
} GsPostingLevel;

/* A level of the entry tree, and the page that is being filled. */
typedef struct GsEntryLevel
{
	struct GsEntryLevel *parent;	/* NULL if there is none yet */
	uint32		flags;
	Page		page;
	BlockNumber block;			/* invalid for the first page */
} GsEntryLevel;

struct GsGinWriter
{
	Relation	index;
	MemoryContext context;
	MemoryContext key_context;	/* reset after each key */
	GinState   *state;
	GsTupleColumn column;		/* of the keys, if the index has only one */
	GsPageWriter *pages;
	GinStatsData stats;			/* nTotalPages: block numbers given to pages */
	GsEntryLevel *leaves;

	/* The current key: */
	const GsGinKey *key;
	union
	{
		IndexTupleData header;
		char		bytes[MAXALIGN(GinMaxItemSize)];
		double		force_align;
	}			tuple;			/* of it, if it is simple */
	bool		in_tree;		/* do its TIDs go to a posting tree? */
	uint32		ntids;			/* otherwise: its TIDs */
	uint64		tids[MAX_LIST_TIDS];

	/* Its posting tree, whose leaves are level 0: */
	IndexTuple	tree_tuple;		/* the tuple of the key */
	GsTidList	segment;		/* the last one of the leaf */
	int			nlevels;
	GsPostingLevel levels[MAX_LEVELS];
};

static Page
begin_page(GsGinWriter *writer, uint32 flags)
{
	Page		page = gpusort_page_writer_new_page(writer->pages);

	GinInitPage(page, flags, BLCKSZ);
	if ((flags & GIN_DATA) != 0)
		writer->stats.nDataPages++;
	else
		writer->stats.nEntryPages++;
	return page;
}

static BlockNumber
next_block(GsGinWriter *writer)
{
	return writer->stats.nTotalPages++;
}

static void
write_page(GsGinWriter *writer, BlockNumber block, Page page)
{
	gpusort_page_writer_put(writer->pages, block, page, NULL);
}

/* ----------------------------------------------------------------
 *		tuples of keys
 *
 * GinFormTuple() allocates memory, and looks at the key several times.  The tuples of most
 * indexes are simple: one column, a key that is short.  These are formed here.  PostgreSQL's
 * function forms all others.
 *
 *		header, key, padding to 8 bytes, posting list, padding to 8 bytes
 * ----------------------------------------------------------------
 */

/* Copy the key after the header.  Returns its size, or 0 if GinFormTuple() must form the tuple. */
static inline Size
put_key(GsGinWriter *writer)
{
	char	   *bytes = writer->tuple.bytes + sizeof(IndexTupleData);
	char	   *end;

	if (writer->key->category != GIN_CAT_NORM_KEY || !writer->state->oneCol)
		return 0;
	end = gpusort_put_value(&writer->column, bytes, writer->key->value);
	return end == NULL ? 0 : end - bytes;
}

/*
 * Returns the same bytes as GinFormTuple() for the current key with a posting list of list_bytes
 * bytes, or none if 'list' is NULL.  If the tuple is too long, raises PostgreSQL's error or, if
 * 'error' is false, returns NULL.  The tuple belongs to the writer until the next call, or was
 * allocated in the current memory context.
 */
static IndexTuple
form_tuple(GsGinWriter *writer, const char *list, Size list_bytes, bool error)
{
	const GsGinKey *key = writer->key;
	IndexTuple	tuple = &writer->tuple.header;
	char	   *bytes = writer->tuple.bytes;
	uint32		ntids = list == NULL ? 0 : writer->ntids;
	Size		key_bytes = put_key(writer);
	Size		used = sizeof(IndexTupleData) + key_bytes;
	Size		offset = MAXALIGN(used);
	Size		size = MAXALIGN(offset + list_bytes);

	if (key_bytes == 0)
		return GinFormTuple(writer->state, key->attnum, key->value, key->category,
							(Pointer) list, list_bytes, ntids, error);
	if (size > GinMaxItemSize)
		return NULL;			/* a list; no simple key is too long */
	memset(bytes + used, 0, offset - used);
	if (list_bytes > 0)
		memcpy(bytes + offset, list, list_bytes);
	memset(bytes + offset + list_bytes, 0, size - offset - list_bytes);
	tuple->t_info = size | (writer->column.length < 0 ? INDEX_VAR_MASK : 0);
	GinSetPostingOffset(tuple, offset);
	GinSetNPosting(tuple, ntids);
	return tuple;
}

/* ----------------------------------------------------------------
 *		posting lists, with the same bytes as those of ginCompressPostingList()
 * ----------------------------------------------------------------
 */

/* Begin a list with a TID, in memory for an even number of bytes. */
static void
begin_list(GsTidList *list, void *memory, Size bytes, uint64 tid)
{
	list->list = memory;
	gpusort_tid_set(&list->list->first, tid);
	list->end = list->list->bytes;
	list->limit = (uint8 *) memory + bytes;
	list->last = tid;
}

/* Add ascending TIDs as long as there is room.  Returns their number. */
static inline uint32
extend_list(GsTidList *list, const uint64 *tids, uint32 count)
{
	uint8	   *end = list->end;
	uint64		last = list->last;
	uint32		i;

	for (i = 0; i < count; i++)
	{
		if (likely(list->limit - end >= GPUSORT_VARBYTE_ROOM))
			end = gpusort_varbyte_write(end, tids[i] - last);
		else
		{
			uint8		bytes[GPUSORT_VARBYTE_ROOM];
			ptrdiff_t	length = gpusort_varbyte_write(bytes, tids[i] - last) - bytes;

			if (length > list->limit - end)
				break;
			memcpy(end, bytes, length);
			end += length;
		}
		last = tids[i];
	}
	list->end = end;
	list->last = last;
	return i;
}

/* Finish a list, padded to an even number of bytes.  Returns its size. */
static Size
finish_list(GsTidList *list)
{
	GinPostingList *finished = list->list;

	finished->nbytes = list->end - finished->bytes;
	if (finished->nbytes % 2 != 0)
		*list->end = 0;
	list->list = NULL;
	return SizeOfGinPostingList(finished);
}

/* ----------------------------------------------------------------
 *		the posting tree of a key that has many TIDs
 *
 * A leaf has segments, which are lists.  Pages are filled completely, as in PostgreSQL's build: a
 * table mostly grows at its end, and new TIDs go to the last leaf.
 *
 * The right bound of a page is its greatest TID, and none on the last page of a level.  Its
 * downlink has the same bound.
 * ----------------------------------------------------------------
 */

static void
begin_tree_page(GsGinWriter *writer, int k)
{
	GsPostingLevel *level = &writer->levels[k];

	level->page = begin_page(writer, k == 0 ? GIN_DATA | GIN_LEAF | GIN_COMPRESSED : GIN_DATA);
	level->block = next_block(writer);
	level->size = 0;
}

static void add_downlink(GsGinWriter *writer, int k, BlockNumber child, ItemPointerData bound);

/* Finish a page of a level.  'next' is the block of the next one, or invalid. */
static void
finish_tree_page(GsGinWriter *writer, int k, const GsPostingLevel *level, BlockNumber next)
{
	ItemPointerData bound;

	ItemPointerSetMin(&bound);
	if (next != InvalidBlockNumber)
		gpusort_tid_set(&bound, level->last);
	*GinDataPageGetRightBound(level->page) = bound;
	if (k > 0)
		GinPageGetOpaque(level->page)->maxoff = level->size / sizeof(PostingItem);
	GinPageGetOpaque(level->page)->rightlink = next;
	GinDataPageSetDataSize(level->page, level->size);
	if (next != InvalidBlockNumber || k + 1 < writer->nlevels)
		add_downlink(writer, k + 1, level->block, bound);
	write_page(writer, level->block, level->page);
}

/* Finish the page of a level, and begin the next one. */
static void
next_tree_page(GsGinWriter *writer, int k)
{
	GsPostingLevel full = writer->levels[k];

	begin_tree_page(writer, k);
	finish_tree_page(writer, k, &full, writer->levels[k].block);
}

static void
begin_tree_level(GsGinWriter *writer)
{
	if (writer->nlevels == MAX_LEVELS)
		elog(ERROR, "a posting tree has too many levels");
	begin_tree_page(writer, writer->nlevels++);
}

/* Add the downlink of a page to the level above it. */
static void
add_downlink(GsGinWriter *writer, int k, BlockNumber child, ItemPointerData bound)
{
	GsPostingLevel *level = &writer->levels[k];
	PostingItem *item;

	if (k == writer->nlevels)
		begin_tree_level(writer);
	else if (level->size + sizeof(PostingItem) > GinDataPageMaxDataSize)
		next_tree_page(writer, k);
	level->size += sizeof(PostingItem);
	item = GinDataPageGetPostingItem(level->page, level->size / sizeof(PostingItem));
	PostingItemSetBlockNumber(item, child);
	item->key = bound;
	level->last = gpusort_tid_number(&bound);
}

/* Finish the last segment of the leaf, if there is one. */
static void
finish_segment(GsGinWriter *writer)
{
	GsPostingLevel *leaf = &writer->levels[0];

	if (writer->segment.list == NULL)
		return;
	leaf->size += finish_list(&writer->segment);
	leaf->last = writer->segment.last;
}

/* Begin a segment with a TID, on a new leaf if necessary. */
static void
begin_segment(GsGinWriter *writer, uint64 tid)
{
	GsPostingLevel *leaf = &writer->levels[0];
	Size		room;

	finish_segment(writer);
	if (GinDataPageMaxDataSize - leaf->size < MIN_SEGMENT_BYTES)
		next_tree_page(writer, 0);
	room = Min(GinDataPageMaxDataSize - leaf->size, MAX_SEGMENT_BYTES);
	begin_list(&writer->segment, (char *) GinDataLeafPageGetPostingList(leaf->page) + leaf->size,
			   room & ~(Size) 1, tid);
}

/* Add ascending TIDs to the tree. */
static void
add_to_tree(GsGinWriter *writer, const uint64 *tids, uint32 count)
{
	for (uint32 i = 0; i < count;)
	{
		if (writer->segment.list != NULL)
			i += extend_list(&writer->segment, tids + i, count - i);
		if (i < count)
			begin_segment(writer, tids[i++]);
	}
	gpusort_work_add(count * sizeof(uint64));
}

/* Returns the block of the root. */
static BlockNumber
end_tree(GsGinWriter *writer)
{
	finish_segment(writer);
	for (int k = 0; k < writer->nlevels; k++)
		finish_tree_page(writer, k, &writer->levels[k], InvalidBlockNumber);
	return writer->levels[writer->nlevels - 1].block;
}

/* ----------------------------------------------------------------
 *		the entry tree
 * ----------------------------------------------------------------
 */

static GsEntryLevel *
begin_level(GsGinWriter *writer, uint32 flags)
{
	GsEntryLevel *level = MemoryContextAllocZero(writer->context, sizeof(GsEntryLevel));

	level->flags = flags;
	level->page = begin_page(writer, flags);
	level->block = InvalidBlockNumber;
	return level;
}

static IndexTuple
last_tuple(Page page)
{
	return (IndexTuple) PageGetItem(page,
									PageGetItemId(page, PageGetMaxOffsetNumber(page)));
}

/*
 * Returns the tuple for the level above with the key of a tuple, and a block.  Of a leaf's
 * tuple the posting list is left out.
 */
static IndexTuple
form_downlink(IndexTuple tuple, bool leaf, BlockNumber block)
{
	Size		size = IndexTupleSize(tuple);
	IndexTuple	downlink;

	if (leaf && !GinIsPostingTree(tuple))
		size = MAXALIGN(GinGetPostingOffset(tuple));
	downlink = palloc(size);
	memcpy(downlink, tuple, size);
	downlink->t_info = (tuple->t_info & ~INDEX_SIZE_MASK) | size;
	GinSetDownlink(downlink, block);
	return downlink;
}

static void add_to_level(GsGinWriter *writer, GsEntryLevel *level, IndexTuple tuple);

/* Finish the page of a level that has a level above it. */
static void
finish_page(GsGinWriter *writer, GsEntryLevel *level, BlockNumber next)
{
	IndexTuple	downlink = form_downlink(last_tuple(level->page),
										 (level->flags & GIN_LEAF) != 0, level->block);

	GinPageGetOpaque(level->page)->rightlink = next;
	add_to_level(writer, level->parent, downlink);
	pfree(downlink);
	write_page(writer, level->block, level->page);
}

/* Finish the page of a level, and begin the next one. */
static void
next_page(GsGinWriter *writer, GsEntryLevel *level)
{
	BlockNumber next;

	if (level->block == InvalidBlockNumber)
		level->block = next_block(writer);
	next = next_block(writer);
	if (level->parent == NULL)
		level->parent = begin_level(writer, 0);
	finish_page(writer, level, next);
	level->page = begin_page(writer, level->flags);
	level->block = next;
}

static void
add_to_level(GsGinWriter *writer, GsEntryLevel *level, IndexTuple tuple)
{
	Size		size = IndexTupleSize(tuple);
	Size		room = PageGetExactFreeSpace(level->page);
	Size		needed = MAXALIGN(size) + sizeof(ItemIdData);

	/*
	 * The first page of a level is filled completely, since it may remain the
	 * root.  A page of an upper level needs at least two tuples.
	 */
	if (room < needed ||
		(room < needed + MIN_FREE_BYTES && room <= MAX_FREE_BYTES &&
		 level->block != InvalidBlockNumber &&
		 PageGetMaxOffsetNumber(level->page) >= 2))
		next_page(writer, level);
	if (PageAddItem(level->page, (char *) tuple, size, InvalidOffsetNumber, false,
					false) == InvalidOffsetNumber)
		elog(ERROR, "could not add a key to a page of a GIN index");
}

/* ----------------------------------------------------------------
 *		keys
 * ----------------------------------------------------------------
 */

GsGinWriter *
gpusort_gin_writer_begin(const GsIndexBuild *build, GsGinOrder *order)
{
	GsGinWriter *writer = palloc0(sizeof(GsGinWriter));

	writer->index = build->index;
	writer->context = CurrentMemoryContext;
	writer->key_context = AllocSetContextCreate(CurrentMemoryContext,
												"pg_gpusort GIN key",
												ALLOCSET_DEFAULT_SIZES);
	writer->state = &order->state;
	writer->column = gpusort_tuple_column(order->state.tupdesc[0], 0);
	writer->pages = gpusort_page_writer_begin(build->index, gpusort_index_build_pages(build),
											  NULL);
	writer->stats.nTotalPages = GIN_ROOT_BLKNO + 1;
	writer->leaves = begin_level(writer, GIN_LEAF);
	return writer;
}

void
gpusort_gin_writer_begin_key(GsGinWriter *writer, const GsGinKey *key)
{
	writer->key = key;
	writer->in_tree = false;
	writer->ntids = 0;
}

/*
 * Write the TIDs collected so far to a posting tree.  The tuple comes first, since it raises
 * an error if the key is too long.
 */
static void
move_to_tree(GsGinWriter *writer)
{
	writer->tree_tuple = form_tuple(writer, NULL, 0, true);
	writer->in_tree = true;
	writer->nlevels = 0;
	begin_tree_level(writer);
	add_to_tree(writer, writer->tids, writer->ntids);
}

void
gpusort_gin_writer_add(GsGinWriter *writer, const uint64 *tids, uint32 count)
{
	MemoryContext caller = MemoryContextSwitchTo(writer->key_context);

	CHECK_FOR_INTERRUPTS();
	if (!writer->in_tree && count > MAX_LIST_TIDS - writer->ntids)
		move_to_tree(writer);
	if (writer->in_tree)
		add_to_tree(writer, tids, count);
	else
	{
		memcpy(writer->tids + writer->ntids, tids, count * sizeof(uint64));
		writer->ntids += count;
	}
	MemoryContextSwitchTo(caller);
}

/* Returns a tuple with the TIDs as a posting list, or NULL if that is too long. */
static IndexTuple
form_list_tuple(GsGinWriter *writer)
{
	PGAlignedBlock memory;
	GsTidList	list;

	begin_list(&list, memory.data, GinMaxItemSize, writer->tids[0]);
	if (extend_list(&list, writer->tids + 1, writer->ntids - 1) < writer->ntids - 1)
		return NULL;
	return form_tuple(writer, memory.data, finish_list(&list), false);
}

void
gpusort_gin_writer_end_key(GsGinWriter *writer)
{
	MemoryContext caller = MemoryContextSwitchTo(writer->key_context);
	IndexTuple	tuple = writer->in_tree ? NULL : form_list_tuple(writer);

	if (tuple == NULL)
	{
		BlockNumber root;

		if (!writer->in_tree)
			move_to_tree(writer);
		tuple = writer->tree_tuple;
		root = end_tree(writer);
		GinSetPostingTree(tuple, root);
	}
	add_to_level(writer, writer->leaves, tuple);
	writer->stats.nEntries++;
	gpusort_work_add(IndexTupleSize(tuple));
	MemoryContextSwitchTo(caller);
	MemoryContextReset(writer->key_context);
}

/* ----------------------------------------------------------------
 *		the metapage and the root
 * ----------------------------------------------------------------
 */

void
gpusort_gin_writer_create_pages(Relation index)
{
	Buffer		meta = GinNewBuffer(index);
	Buffer		root = GinNewBuffer(index);

	START_CRIT_SECTION();
	GinInitMetabuffer(meta);
	GinInitBuffer(root, GIN_LEAF);
	MarkBufferDirty(meta);
	MarkBufferDirty(root);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(root);
	UnlockReleaseBuffer(meta);
}

bool
gpusort_gin_writer_has_rows(Relation index)
{
	Buffer		root;
	bool		empty;

	/* Pending lists have pages of their own. */
	if (RelationGetNumberOfBlocks(index) > GIN_ROOT_BLKNO + 1)
		return true;
	root = ReadBuffer(index, GIN_ROOT_BLKNO);
	LockBuffer(root, GIN_SHARE);
	empty = PageIsEmpty(BufferGetPage(root));
	UnlockReleaseBuffer(root);
	return !empty;
}

void
gpusort_gin_writer_end_index(Relation index, const GinStatsData *stats, BlockNumber nblocks)
{
	ginUpdateStats(index, stats, true);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0, nblocks, true);
}

/* Set the root, which remains in the buffer pool. */
static void
write_root(GsGinWriter *writer, Page page)
{
	Buffer		buffer = ReadBuffer(writer->index, GIN_ROOT_BLKNO);

	LockBuffer(buffer, GIN_EXCLUSIVE);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buffer), page, BLCKSZ);
	MarkBufferDirty(buffer);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/* ----------------------------------------------------------------
 *		the end
 * ----------------------------------------------------------------
 */

/* Finish the last page of each level.  The highest one is the root. */
static void
finish_levels(GsGinWriter *writer)
{
	GsEntryLevel *level = writer->leaves;

	for (; level->parent != NULL; level = level->parent)
		finish_page(writer, level, InvalidBlockNumber);
	write_root(writer, level->page);
}

void
gpusort_gin_writer_abandon(GsGinWriter *writer)
{
	gpusort_page_writer_abandon(writer->pages);
}

void
gpusort_gin_writer_end(GsGinWriter *writer)
{
	finish_levels(writer);
	gpusort_gin_writer_end_index(writer->index, &writer->stats, GIN_ROOT_BLKNO + 1);
	gpusort_page_writer_end(writer->pages);
}
