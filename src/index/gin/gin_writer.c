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

#include "access/tupmacs.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "index/base/index_rows.h"
#include "index/gin/gin_private.h"
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
 *		tuples of keys
 *
 * GinFormTuple() allocates memory, and looks at the key several times.  The tuples of most
 * indexes are simple: one column, a key that is passed by value or is a short string.  These
 * are formed here.  PostgreSQL's function forms all others.
 *
 *		header, key, padding to 8 bytes, posting list, padding to 8 bytes
 * ----------------------------------------------------------------
 */

/* What the keys of the index's only column are. */
typedef enum GsGinTupleKind
{
	GS_GIN_TUPLE_OTHER,			/* or there are several columns */
	GS_GIN_TUPLE_BY_VALUE,
	GS_GIN_TUPLE_STRING			/* short ones get a header of one byte */
} GsGinTupleKind;

typedef struct GsGinTupleForm
{
	GsGinOrder *order;
	GsGinTupleKind kind;
	int16		attlen;
	union
	{
		IndexTupleData header;
		char		bytes[MAXALIGN(GinMaxItemSize)];
	}			tuple;
} GsGinTupleForm;

/* Prepare to form tuples of an index, in the current memory context. */
static GsGinTupleForm *
create_form(GsGinOrder *order)
{
	GsGinTupleForm *form = palloc0(sizeof(GsGinTupleForm));
	Form_pg_attribute att = TupleDescAttr(order->state.tupdesc[0], 0);

	form->order = order;
	if (!order->state.oneCol)
		form->kind = GS_GIN_TUPLE_OTHER;
	else if (att->attbyval)
		form->kind = GS_GIN_TUPLE_BY_VALUE;
	else if (att->attlen == -1 && att->attstorage != TYPSTORAGE_PLAIN)
		form->kind = GS_GIN_TUPLE_STRING;
	form->attlen = att->attlen;
	return form;
}

/* Copy the key after the header.  Returns its size, or 0 if GinFormTuple() must form the tuple. */
static inline Size
put_key(GsGinTupleForm *form, const GsGinKey *key)
{
	char	   *bytes = form->tuple.bytes + sizeof(IndexTupleData);
	const struct varlena *value = (const struct varlena *) DatumGetPointer(key->value);
	char	   *end;

	if (key->category != GIN_CAT_NORM_KEY || form->kind == GS_GIN_TUPLE_OTHER)
		return 0;
	if (form->kind == GS_GIN_TUPLE_BY_VALUE)
	{
		store_att_byval(bytes, key->value, form->attlen);
		return form->attlen;
	}
	end = gpusort_put_short_value(bytes, value, true);
	return end == NULL ? 0 : end - bytes;
}

/*
 * Returns the same bytes as GinFormTuple() for a key with a posting list of list_bytes bytes and
 * ntids TIDs.  'list' is NULL if there is no such list.  If the tuple is too long, raises
 * PostgreSQL's error or, if 'error' is false, returns NULL.  The tuple belongs to the form until
 * the next call, or was allocated in the current memory context.
 */
static IndexTuple
form_key_tuple(GsGinTupleForm *form, const GsGinKey *key, const char *list, Size list_bytes,
			   uint32 ntids, bool error)
{
	IndexTuple	tuple = &form->tuple.header;
	Size		key_bytes = put_key(form, key);
	Size		offset = MAXALIGN(sizeof(IndexTupleData) + key_bytes);
	Size		size = MAXALIGN(offset + list_bytes);
	Size		used = sizeof(IndexTupleData) + key_bytes;

	if (key_bytes == 0)
		return GinFormTuple(&form->order->state, key->attnum, key->value, key->category,
							(Pointer) list, list_bytes, ntids, error);
	if (size > GinMaxItemSize)
		return NULL;			/* a list; no simple key is too long */
	memset(form->tuple.bytes + used, 0, offset - used);
	if (list_bytes > 0)
		memcpy(form->tuple.bytes + offset, list, list_bytes);
	memset(form->tuple.bytes + offset + list_bytes, 0, size - offset - list_bytes);
	tuple->t_info = size | (form->kind == GS_GIN_TUPLE_STRING ? INDEX_VAR_MASK : 0);
	GinSetPostingOffset(tuple, offset);
	GinSetNPosting(tuple, ntids);
	return tuple;
}

/* ----------------------------------------------------------------
 *		the entry tree
 * ----------------------------------------------------------------
 */

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
	GsGinTupleForm *form;
	GsGinPages	pages;
	GsPostingTree *tree;
	GsEntryLevel *leaves;
	uint64		nkeys;

	/* The current key: */
	const GsGinKey *key;
	bool		in_tree;		/* do its TIDs go to a posting tree? */
	IndexTuple	tree_tuple;		/* if so: its tuple */
	uint32		ntids;			/* otherwise: its TIDs */
	uint64		tids[MAX_LIST_TIDS];
};

/* ----------------------------------------------------------------
 *		the entry tree
 * ----------------------------------------------------------------
 */

static Page
begin_page(GsGinWriter *writer, uint32 flags)
{
	Page		page = gpusort_page_writer_new_page(writer->pages.writer);

	GinInitPage(page, flags, BLCKSZ);
	writer->pages.n_entry_pages++;
	return page;
}

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

static void
write_page(GsGinWriter *writer, BlockNumber block, Page page)
{
	gpusort_page_writer_put(writer->pages.writer, block, page, NULL);
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
		level->block = writer->pages.n_blocks++;
	next = writer->pages.n_blocks++;
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
gpusort_gin_writer_begin(Relation index, GsGinOrder *order, GsPageQueue *queue)
{
	GsGinWriter *writer = palloc0(sizeof(GsGinWriter));

	writer->index = index;
	writer->context = CurrentMemoryContext;
	writer->key_context = AllocSetContextCreate(CurrentMemoryContext,
												"pg_gpusort GIN key",
												ALLOCSET_DEFAULT_SIZES);
	writer->form = create_form(order);
	writer->pages.writer = gpusort_page_writer_begin(index, queue);
	writer->pages.n_blocks = GIN_ROOT_BLKNO + 1;
	writer->tree = gpusort_posting_tree_create(&writer->pages);
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

/* Form the tuple of the current key. */
static IndexTuple
form_tuple(GsGinWriter *writer, const char *list, Size size, bool error)
{
	return form_key_tuple(writer->form, writer->key, list, size,
						  list == NULL ? 0 : writer->ntids, error);
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
	gpusort_posting_tree_begin(writer->tree);
	gpusort_posting_tree_add(writer->tree, writer->tids, writer->ntids);
}

void
gpusort_gin_writer_add(GsGinWriter *writer, const uint64 *tids, uint32 count)
{
	MemoryContext caller = MemoryContextSwitchTo(writer->key_context);

	CHECK_FOR_INTERRUPTS();
	if (!writer->in_tree && count > MAX_LIST_TIDS - writer->ntids)
		move_to_tree(writer);
	if (writer->in_tree)
		gpusort_posting_tree_add(writer->tree, tids, count);
	else
	{
		memcpy(writer->tids + writer->ntids, tids, count * sizeof(uint64));
		writer->ntids += count;
	}
	MemoryContextSwitchTo(caller);
}

/*
 * Returns a tuple with the TIDs as a posting list, or NULL if that is too long.  Its bytes are
 * padded to an even number.
 */
static IndexTuple
form_list_tuple(GsGinWriter *writer)
{
	PGAlignedBlock memory;
	GinPostingList *list = (GinPostingList *) memory.data;
	const uint8 *limit = (uint8 *) memory.data + GinMaxItemSize - GPUSORT_VARBYTE_ROOM;
	uint8	   *end = list->bytes;

	gpusort_tid_set(&list->first, writer->tids[0]);
	for (uint32 i = 1; i < writer->ntids; i++)
	{
		if (end > limit)
			return NULL;
		end = gpusort_varbyte_write(end, writer->tids[i] - writer->tids[i - 1]);
	}
	list->nbytes = end - list->bytes;
	*end = 0;
	return form_tuple(writer, memory.data, SizeOfGinPostingList(list), false);
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
		root = gpusort_posting_tree_end(writer->tree);
		GinSetPostingTree(tuple, root);
	}
	add_to_level(writer, writer->leaves, tuple);
	writer->nkeys++;
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
	gpusort_page_writer_abandon(writer->pages.writer);
}

void
gpusort_gin_writer_end(GsGinWriter *writer)
{
	GinStatsData stats = {0};

	finish_levels(writer);
	stats.nTotalPages = writer->pages.n_blocks;
	stats.nEntryPages = writer->pages.n_entry_pages;
	stats.nDataPages = writer->pages.n_data_pages;
	stats.nEntries = (int64) writer->nkeys;
	gpusort_gin_writer_end_index(writer->index, &stats, GIN_ROOT_BLKNO + 1);
	gpusort_page_writer_end(writer->pages.writer);
}
