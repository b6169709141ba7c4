/*-------------------------------------------------------------------------
 *
 * btree_loader.c
 *		Writes the pages of a new btree index from its tuples in index order.
 *
 * One page of each level is being filled.  It gets its block number when it is
 * begun.  When the next tuple does not fit, or would leave less free space
 * than the fillfactor requires, the page is finished.  Its last tuple is moved
 * to a new page, and a copy of that tuple becomes the high key.  On a leaf
 * page, the high key is truncated: it keeps only the columns that are needed
 * to tell it from the tuple before it.  The high key of a page is the low key
 * of the next page.  The low key is added to the level above, with the block
 * number of its page, as soon as that page is finished in turn.
 *
 * A page that is being filled has an unused first line pointer, for the high
 * key.  The last page of a level gets no high key, so its line pointers are
 * moved down by one.
 *
 * With deduplication, tuples with equal keys become one tuple with a posting
 * list of limited length.  A copy of the first tuple is kept, and the TIDs are
 * collected right after it, where the posting list has to be in the end.
 *
 * All of this follows PostgreSQL's own build to the byte, so that the index
 * does not depend on who built it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "catalog/storage.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "core/copy_bytes.h"
#include "index/btree_loader.h"
#include "index/page_writer.h"
#include "work.h"

/* A tuple that is larger than this might be too large for a btree. */
#define LONG_TUPLE_BYTES	(BLCKSZ / 4)

/*
 * The largest size of a tuple with a posting list and its line pointer: a
 * tenth of a page, so that pages can be filled to about the usual fillfactor.
 */
#define MAX_POSTING_BYTES \
	(MAXALIGN_DOWN(BLCKSZ * 10 / 100) - sizeof(ItemIdData))

/* The size of a tuple with a key of at most 8 bytes. */
#define SMALL_TUPLE_BYTES	16

/* A level of the tree, and the page that is being filled. */
typedef struct GsBtreeLevel
{
	struct GsBtreeLevel *parent;	/* NULL if there is none yet */
	uint32		height;			/* 0 = leaves */
	int			min_free;		/* bytes to leave free, from the fillfactor */
	int			reserved;		/* bytes that must stay free for a high key */

	Page		page;
	BlockNumber block;
	IndexTuple	low_key;		/* of the page; has memory for any tuple */
	int			last_posting;	/* bytes of the last tuple's posting list */
} GsBtreeLevel;

/* Tuples with equal keys. */
typedef struct GsBtreeDuplicates
{
	IndexTuple	tuple;			/* the first one, followed by the TIDs */
	Size		key_bytes;		/* of the tuple without the posting list */
	int			n_tids;			/* 0 if there is no tuple */
} GsBtreeDuplicates;

struct GsBtreeLoader
{
	MemoryContext context;
	MemoryContext page_context; /* reset after each page */
	Relation	heap;
	Relation	index;
	BTScanInsert key;
	GsPageWriter *writer;
	BlockNumber n_blocks;		/* block numbers given to pages so far */
	GsBtreeLevel *leaves;

	bool		deduplicate;
	bool		bytes_tell_keys;	/* do equal keys always have equal bytes? */
	bool		first_varies;	/* is the first key of variable length? */
	GsBtreeDuplicates duplicates;
};

static void add_to_level(GsBtreeLoader *loader, GsBtreeLevel *level,
						 IndexTuple tuple, int posting_bytes);

/* Returns a new page, with a line pointer for the high key. */
static Page
begin_page(GsBtreeLoader *loader, uint32 height)
{
	Page		page = gpusort_page_writer_new_page(loader->writer);
	BTPageOpaque opaque;

	_bt_pageinit(page, BLCKSZ);
	opaque = BTPageGetOpaque(page);
	opaque->btpo_prev = opaque->btpo_next = P_NONE;
	opaque->btpo_level = height;
	opaque->btpo_flags = height == 0 ? BTP_LEAF : 0;
	opaque->btpo_cycleid = 0;

	((PageHeader) page)->pd_lower += sizeof(ItemIdData);
	return page;
}

/*
 * Truncate a tuple of an upper level to its downlink.  It then sorts before
 * all other tuples.
 */
static void
set_minus_infinity(IndexTuple tuple)
{
	tuple->t_info = sizeof(IndexTupleData);
	BTreeTupleSetNAtts(tuple, 0, false);
}

static GsBtreeLevel *
begin_level(GsBtreeLoader *loader, uint32 height)
{
	GsBtreeLevel *level = MemoryContextAllocZero(loader->context,
												 sizeof(GsBtreeLevel));

	level->height = height;
	if (height == 0)
	{
		level->min_free = BTGetTargetPageFreeSpace(loader->index);
		level->reserved = MAXALIGN(sizeof(ItemPointerData));
	}
	else
		level->min_free = BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;

	level->page = begin_page(loader, height);
	level->block = loader->n_blocks++;
	level->low_key = MemoryContextAllocZero(loader->context, BLCKSZ);
	set_minus_infinity(level->low_key);
	return level;
}

/*
 * Copy a tuple.  The constant size lets the compiler copy the most common
 * tuples by one or two instructions.
 */
static inline void
copy_tuple(void *dest, const IndexTupleData *tuple, Size size)
{
	if (size == SMALL_TUPLE_BYTES)
		memcpy(dest, tuple, SMALL_TUPLE_BYTES);
	else
		gpusort_copy_bytes(dest, tuple, size);
}

/* Returns a line pointer. */
static inline ItemIdData
line_pointer(unsigned offset, Size size)
{
	ItemIdData	line;

	line.lp_off = offset;
	line.lp_flags = LP_NORMAL;
	line.lp_len = size;
	return line;
}

/*
 * Put a tuple at the end of a page's tuple space, and set a line pointer to
 * it.  The page must have room for it.
 */
static inline void
store_tuple(Page page, ItemId item, const IndexTupleData *tuple, Size size)
{
	PageHeader	header = (PageHeader) page;

	Assert(size == MAXALIGN(IndexTupleSize(tuple)));
	Assert(header->pd_upper >= header->pd_lower + size);

	/* ItemIdSetNormal() on the page would read and write it three times. */
	header->pd_upper -= size;
	*item = line_pointer(header->pd_upper, size);
	copy_tuple((char *) page + header->pd_upper, tuple, size);
}

static inline void
append_tuple(Page page, const IndexTupleData *tuple, Size size)
{
	PageHeader	header = (PageHeader) page;
	ItemId		item = (ItemId) ((char *) page + header->pd_lower);

	header->pd_lower += sizeof(ItemIdData);
	store_tuple(page, item, tuple, size);
}

static inline IndexTuple
tuple_at(Page page, OffsetNumber offset)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, offset));
}

/*
 * Does a tuple fit on the level's page?  The first two tuples always do,
 * whatever the fillfactor.  The posting list of the last tuple does not count
 * for the fillfactor, because it is truncated away if the tuple becomes the
 * high key.
 */
static inline bool
tuple_fits(const GsBtreeLevel *level, Size size)
{
	PageHeader	header = (PageHeader) level->page;
	int			room = (int) header->pd_upper - (int) header->pd_lower -
		(int) sizeof(ItemIdData);

	if (room < (int) size + level->reserved)
		return false;
	return room + level->last_posting >= level->min_free ||
		PageGetMaxOffsetNumber(level->page) <= P_FIRSTKEY;
}

/*
 * Add the downlink of a page to the level above.  Pages must be added in
 * order.
 */
static void
link_to_parent(GsBtreeLoader *loader, GsBtreeLevel *level, BlockNumber block)
{
	if (level->parent == NULL)
		level->parent = begin_level(loader, level->height + 1);
	BTreeTupleSetDownLink(level->low_key, block);
	add_to_level(loader, level->parent, level->low_key, 0);
}

/* Copy the last tuple of a full page to the empty one that follows it. */
static void
begin_with_last(GsBtreeLevel *level, IndexTuple last)
{
	if (level->height > 0)
	{
		IndexTupleData link = *last;

		set_minus_infinity(&link);
		append_tuple(level->page, &link, sizeof(IndexTupleData));
	}
	else
		append_tuple(level->page, last, IndexTupleSize(last));
}

/*
 * Turn the last tuple of a full page into its high key, and keep that as the low
 * key of the next page.
 */
static void
set_high_key(GsBtreeLoader *loader, GsBtreeLevel *level, Page page)
{
	PageHeader	header = (PageHeader) page;
	OffsetNumber last_offset = PageGetMaxOffsetNumber(page);
	IndexTuple	last = tuple_at(page, last_offset);
	Size		last_size = IndexTupleSize(last);
	IndexTuple	high_key = last;

	if (level->height == 0)
	{
		MemoryContext caller = MemoryContextSwitchTo(loader->page_context);

		high_key = _bt_truncate(loader->index,
								tuple_at(page, OffsetNumberPrev(last_offset)),
								last, loader->key);
		MemoryContextSwitchTo(caller);
	}
	memcpy(level->low_key, high_key, IndexTupleSize(high_key));
	MemoryContextReset(loader->page_context);

	header->pd_lower -= sizeof(ItemIdData);
	header->pd_upper += last_size;
	store_tuple(page, PageGetItemId(page, P_HIKEY), level->low_key,
				IndexTupleSize(level->low_key));
}

/* Write the level's page, and begin the next one with the last tuple. */
static void
finish_page(GsBtreeLoader *loader, GsBtreeLevel *level)
{
	Page		page = level->page;
	BlockNumber block = level->block;
	OffsetNumber last_offset = PageGetMaxOffsetNumber(page);

	CHECK_FOR_INTERRUPTS();
	Assert(last_offset > P_FIRSTKEY);

	/* Block numbers are given out in PostgreSQL's order. */
	level->page = begin_page(loader, level->height);
	level->block = loader->n_blocks++;
	link_to_parent(loader, level, block);

	begin_with_last(level, tuple_at(page, last_offset));
	set_high_key(loader, level, page);
	BTPageGetOpaque(page)->btpo_next = level->block;
	BTPageGetOpaque(level->page)->btpo_prev = block;
	gpusort_page_writer_put(loader->writer, block, page);
}

/* Add a tuple to a level.  'posting_bytes' is the size of its posting list. */
static inline void
add_to_level(GsBtreeLoader *loader, GsBtreeLevel *level, IndexTuple tuple,
			 int posting_bytes)
{
	Size		size = IndexTupleSize(tuple);

	if (unlikely(size > LONG_TUPLE_BYTES))
		_bt_check_third_page(loader->index, loader->heap, level->height == 0,
							 level->page, tuple);
	if (unlikely(!tuple_fits(level, size)))
		finish_page(loader, level);
	append_tuple(level->page, tuple, size);
	level->last_posting = posting_bytes;
}

/* Add the tuple that was kept, with the TIDs of all tuples equal to it. */
static inline void
add_duplicates(GsBtreeLoader *loader)
{
	GsBtreeDuplicates *duplicates = &loader->duplicates;
	IndexTuple	tuple = duplicates->tuple;
	int			posting_bytes = 0;

	if (duplicates->n_tids > 1)
	{
		Size		bytes = duplicates->key_bytes +
			duplicates->n_tids * sizeof(ItemPointerData);
		Size		aligned = MAXALIGN(bytes);

		memset((char *) tuple + bytes, 0, aligned - bytes);
		tuple->t_info = (tuple->t_info & ~INDEX_SIZE_MASK) | aligned;
		BTreeTupleSetPosting(tuple, duplicates->n_tids, duplicates->key_bytes);
		posting_bytes = aligned - duplicates->key_bytes;
	}
	add_to_level(loader, loader->leaves, tuple, posting_bytes);
}

/* Returns where the TIDs are collected. */
static inline ItemPointer
duplicate_tids(GsBtreeDuplicates *duplicates)
{
	return (ItemPointer) ((char *) duplicates->tuple + duplicates->key_bytes);
}

/* Keep a copy of a tuple, since equal ones may follow. */
static inline void
keep_tuple(GsBtreeDuplicates *duplicates, IndexTuple tuple)
{
	Size		size = IndexTupleSize(tuple);

	copy_tuple(duplicates->tuple, tuple, size);
	duplicates->key_bytes = size;
	duplicate_tids(duplicates)[0] = tuple->t_tid;
	duplicates->n_tids = 1;
}

/*
 * Do the keys of two tuples, including NULLs, have equal bytes?  Alignment
 * padding is zero and can be compared, too.
 */
static inline bool
equal_bytes(const IndexTupleData *a, const IndexTupleData *b)
{
	Size		size = IndexTupleSize(a);

	if (a->t_info != b->t_info)
		return false;
	if (size == SMALL_TUPLE_BYTES)
		return memcmp(a + 1, b + 1,
					  SMALL_TUPLE_BYTES - sizeof(IndexTupleData)) == 0;
	return memcmp(a + 1, b + 1, size - sizeof(IndexTupleData)) == 0;
}

/*
 * Does the first key, which is of variable length, differ between two tuples?
 * For speed, only short uncompressed values are compared.  Their header holds
 * their length.  If this returns false, the keys may be equal or not.
 */
static inline bool
first_differs(const IndexTupleData *a, const IndexTupleData *b)
{
	const char *first_a = (const char *) (a + 1);
	const char *first_b = (const char *) (b + 1);

	if (IndexTupleHasNulls(a) || IndexTupleHasNulls(b) ||
		!VARATT_IS_SHORT(first_a) || !VARATT_IS_SHORT(first_b))
		return false;
	return *first_a != *first_b ||
		memcmp(first_a, first_b, VARSIZE_SHORT(first_a)) != 0;
}

/*
 * Are two tuples equal in all keys?  The same value of variable length can be
 * stored in several ways, compressed or not.  Other values have only one
 * representation.
 */
static inline bool
equal_keys(GsBtreeLoader *loader, IndexTuple a, IndexTuple b)
{
	if (equal_bytes(a, b))
		return true;
	if (loader->bytes_tell_keys ||
		(loader->first_varies && first_differs(a, b)))
		return false;
	return _bt_keep_natts_fast(loader->index, a, b) >
		IndexRelationGetNumberOfKeyAttributes(loader->index);
}

/* Is there room in the posting list for one more TID? */
static inline bool
takes_tid(const GsBtreeDuplicates *duplicates)
{
	Size		bytes = duplicates->key_bytes +
		(duplicates->n_tids + 1) * sizeof(ItemPointerData);

	return MAXALIGN(bytes) <= MAX_POSTING_BYTES;
}

void
gpusort_btree_loader_add(GsBtreeLoader *loader, IndexTuple tuple)
{
	GsBtreeDuplicates *duplicates = &loader->duplicates;

	Assert(IndexTupleSize(tuple) == MAXALIGN(IndexTupleSize(tuple)));
	gpusort_work_add(GPUSORT_WORK_ROW + IndexTupleSize(tuple));
	if (!loader->deduplicate)
	{
		add_to_level(loader, loader->leaves, tuple, 0);
		return;
	}

	if (duplicates->n_tids > 0)
	{
		if (equal_keys(loader, duplicates->tuple, tuple) &&
			takes_tid(duplicates))
		{
			duplicate_tids(duplicates)[duplicates->n_tids++] = tuple->t_tid;
			return;
		}
		add_duplicates(loader);
	}
	keep_tuple(duplicates, tuple);
}

/*
 * Returns how many of the first rows can be added as they are: those without NULLs that are
 * not dead, and have other keys than the row after them.  So the last of all rows is not.
 */
static uint32
count_plain(const GsWordTuple *form, const GsWordRows *rows, uint32 most)
{
	uint32		n = 0;

	if (most == 0 || gpusort_word_row_has_null(rows, 0))
		return 0;
	while (n < most)
	{
		const Datum *row = gpusort_word_row(rows, n);

		if (gpusort_word_row_has_null(rows, n + 1) || gpusort_word_tuple_is_dead(form, row) ||
			gpusort_word_tuple_equal(form, row, gpusort_word_row(rows, n + 1)))
			break;
		n++;
	}
	return n;
}

/* Is the tuple that was kept equal to that of a row? */
static bool
is_kept(const GsBtreeLoader *loader, const GsWordTuple *form, const Datum *row)
{
	PGAlignedBlock memory;
	IndexTuple	tuple = (IndexTuple) memory.data;

	if (loader->duplicates.n_tids == 0)
		return false;
	memset(tuple, 0, form->size);
	gpusort_word_tuple_form(form, row, tuple);
	return equal_bytes(loader->duplicates.tuple, tuple);
}

/* Put the tuples of the first n rows on a leaf page, which must have room for them. */
static void
append_words(Page page, const GsWordTuple *form, const GsWordRows *rows, uint32 n)
{
	PageHeader	header = (PageHeader) page;
	ItemId		item = (ItemId) ((char *) page + header->pd_lower);
	unsigned	offset = header->pd_upper;

	for (uint32 i = 0; i < n; i++)
	{
		const Datum *row = gpusort_word_row(rows, i);

		offset -= form->size;
		item[i] = line_pointer(offset, form->size);
		gpusort_word_tuple_form(form, row, (IndexTuple) ((char *) page + offset));
		gpusort_word_tuple_set_tid(form, row, (IndexTuple) ((char *) page + offset));
	}
	header->pd_lower += n * sizeof(ItemIdData);
	header->pd_upper = offset;
}

/* Returns how many tuples of a size fit on the level's page, which has one at least. */
static uint32
count_fitting(const GsBtreeLevel *level, Size size)
{
	PageHeader	header = (PageHeader) level->page;
	Size		bytes = size + sizeof(ItemIdData);
	int			room = (int) header->pd_upper - (int) header->pd_lower -
		(int) sizeof(ItemIdData);
	int			before_last = room - Max((int) size + level->reserved, level->min_free);

	/* A tuple is added as long as there is so much room before it. */
	return before_last < 0 ? 0 : before_last / bytes + 1;
}

uint32
gpusort_btree_loader_add_words(GsBtreeLoader *loader, const GsWordTuple *form,
							   const GsWordRows *rows)
{
	GsBtreeLevel *level = loader->leaves;
	uint32		added = 0;

	/* Deduplication looks at the row after each, so that one stays behind. */
	if (rows->nrows < 2 || (loader->deduplicate &&
							is_kept(loader, form, gpusort_word_row(rows, 0))))
		return 0;
	while (added < rows->nrows - 1)
	{
		GsWordRows	rest = *rows;
		uint32		fitting;
		uint32		n;

		rest.first = (const char *) gpusort_word_row(rows, added);
		rest.nrows -= added;
		fitting = Max(1, count_fitting(level, form->size));
		n = count_plain(form, &rest, Min(fitting, rest.nrows - 1));
		if (n == 0)
			break;
		if (loader->duplicates.n_tids > 0)
		{
			/* The page may have less room after this. */
			add_duplicates(loader);
			loader->duplicates.n_tids = 0;
			continue;
		}
		if (!tuple_fits(level, form->size))
			finish_page(loader, level);
		n = Min(n, Max(1, count_fitting(level, form->size)));
		append_words(level->page, form, &rest, n);
		level->last_posting = 0;
		gpusort_work_add(n * (GPUSORT_WORK_ROW + form->size));
		added += n;
	}
	return added;
}

/*
 * Do equal keys always have equal bytes?  Values of fixed length and C strings
 * have only one representation.
 */
static bool
bytes_tell_keys(Relation index)
{
	TupleDesc	columns = RelationGetDescr(index);
	int			n_keys = IndexRelationGetNumberOfKeyAttributes(index);

	for (int i = 0; i < n_keys; i++)
		if (TupleDescAttr(columns, i)->attlen == -1)
			return false;
	return true;
}

GsBtreeLoader *
gpusort_btree_loader_begin(Relation heap, Relation index, bool unique,
						   GsPageQueue *queue)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort btree loader",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsBtreeLoader *loader = palloc0(sizeof(GsBtreeLoader));
	bool		all_equal_image = _bt_allequalimage(index, true);

	loader->context = context;
	loader->page_context = AllocSetContextCreate(context,
												 "pg_gpusort btree page",
												 ALLOCSET_DEFAULT_SIZES);
	loader->heap = heap;
	loader->index = index;
	loader->key = _bt_mkscankey(index, NULL);
	loader->key->allequalimage = all_equal_image;
	loader->writer = gpusort_page_writer_begin(index, queue);

	loader->n_blocks = BTREE_METAPAGE + 1;
	loader->leaves = begin_level(loader, 0);

	loader->deduplicate = all_equal_image && !unique &&
		BTGetDeduplicateItems(index);
	loader->bytes_tell_keys = bytes_tell_keys(index);
	loader->first_varies = TupleDescAttr(RelationGetDescr(index), 0)->attlen == -1;
	/* Room for the longest possible tuple, and a TID. */
	loader->duplicates.tuple = palloc(INDEX_SIZE_MASK +
									  MAXALIGN(sizeof(ItemPointerData)));
	MemoryContextSwitchTo(caller);
	return loader;
}

/* Remove the line pointer for a high key from a page that gets none. */
static void
remove_high_key(Page page)
{
	PageHeader	header = (PageHeader) page;
	int			n_tuples = PageGetMaxOffsetNumber(page) - P_HIKEY;

	memmove(PageGetItemId(page, P_HIKEY), PageGetItemId(page, P_FIRSTKEY),
			n_tuples * sizeof(ItemIdData));
	header->pd_lower -= sizeof(ItemIdData);
}

/* Finish the last page of each level.  Returns the root. */
static GsBtreeLevel *
finish_levels(GsBtreeLoader *loader)
{
	GsBtreeLevel *level = loader->leaves;

	for (;;)
	{
		if (level->parent != NULL)
			link_to_parent(loader, level, level->block);
		else
			BTPageGetOpaque(level->page)->btpo_flags |= BTP_ROOT;
		remove_high_key(level->page);
		gpusort_page_writer_put(loader->writer, level->block, level->page);

		if (level->parent == NULL)
			return level;
		level = level->parent;
	}
}

static void
put_metapage(GsBtreeLoader *loader, BlockNumber root, uint32 height)
{
	Page		page = gpusort_page_writer_new_page(loader->writer);

	_bt_initmetapage(page, root, height, loader->key->allequalimage);
	gpusort_page_writer_put(loader->writer, BTREE_METAPAGE, page);
}

void
gpusort_btree_loader_end(GsBtreeLoader *loader)
{
	MemoryContext context = loader->context;

	if (loader->duplicates.n_tids > 0)
		add_duplicates(loader);

	/* An index without tuples has no root, and its only leaf is not written. */
	if (PageGetMaxOffsetNumber(loader->leaves->page) < P_FIRSTKEY)
		put_metapage(loader, P_NONE, 0);
	else
	{
		GsBtreeLevel *root = finish_levels(loader);

		put_metapage(loader, root->block, root->height);
	}
	gpusort_page_writer_end(loader->writer);
	MemoryContextDelete(context);
}

void
gpusort_btree_loader_abandon(GsBtreeLoader *loader)
{
	Relation	index = loader->index;

	gpusort_page_writer_abandon(loader->writer);
	MemoryContextDelete(loader->context);
	if (RelationGetNumberOfBlocks(index) > 0)
		RelationTruncate(index, 0);
}
