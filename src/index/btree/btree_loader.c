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
 * Leaf tuples of rows in place are formed only when their page is written, if another process
 * can do that.  Here they only get their places on the page.
 *
 * All of this follows PostgreSQL's own build to the byte, so that the index
 * does not depend on who built it.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "core/copy_bytes.h"
#include "index/btree/btree.h"
#include "work.h"

/* A tuple that is larger than this might be too large for a btree. */
#define LONG_TUPLE_BYTES	(BLCKSZ / 4)

/* A level of the tree, and the page that is being filled. */
typedef struct GsBtreeLevel
{
	struct GsBtreeLevel *parent;	/* NULL if there is none yet */
	uint32		height;			/* 0 = leaves */
	GsPageRoom	room;

	Page		page;
	BlockNumber block;
	IndexTuple	low_key;		/* of the page; has memory for any tuple */
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

	/* Leaf tuples that are formed from rows in place. */
	const GsLeafForm *form;		/* NULL if they cannot be */
	bool		shared;			/* can other processes form them? */
	bool		defer;			/* may they form those being added? */
	GsLeafPage	leaf;			/* of the page in 'leaves' */

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
	BTPageOpaque opaque = BTPageGetOpaque(page);

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
		level->room.min_free = BTGetTargetPageFreeSpace(loader->index);
		level->room.reserved = MAXALIGN(sizeof(ItemPointerData));
	}
	else
		level->room.min_free = BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100;

	level->page = begin_page(loader, height);
	level->block = loader->n_blocks++;
	level->low_key = MemoryContextAllocZero(loader->context, BLCKSZ);
	set_minus_infinity(level->low_key);
	return level;
}

/*
 * Put a tuple at the end of a page's tuple space, and set a line pointer to
 * it.  The page must have room for it.
 */
static inline void
store_tuple(Page page, ItemId item, const IndexTupleData *tuple, Size size)
{
	PageHeader	header = (PageHeader) page;
	ItemIdData	line;

	Assert(size == MAXALIGN(IndexTupleSize(tuple)));
	Assert(header->pd_upper >= header->pd_lower + size);
	header->pd_upper -= size;
	/* On the page, this would read and write it three times. */
	ItemIdSetNormal(&line, header->pd_upper, size);
	*item = line;
	gpusort_copy_bytes((char *) page + header->pd_upper, tuple, size);
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

static inline bool
tuple_fits(const GsBtreeLevel *level, Size size)
{
	PageHeader	header = (PageHeader) level->page;

	return gpusort_page_has_room(&level->room, header->pd_lower, header->pd_upper, size);
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

	ItemIdSetUnused(PageGetItemId(page, last_offset));
	header->pd_lower -= sizeof(ItemIdData);
	header->pd_upper += last_size;
	store_tuple(page, PageGetItemId(page, P_HIKEY), level->low_key,
				IndexTupleSize(level->low_key));
}

/* Before a leaf tuple is added, or a page ends: no more rows in place are added here. */
static inline void
close_leaf(GsBtreeLoader *loader)
{
	if (loader->leaf.ngroups > 0)
		gpusort_leaf_page_close(&loader->leaf, loader->leaves->page, loader->form,
								loader->defer);
}

static void
put_page(GsBtreeLoader *loader, GsBtreeLevel *level, BlockNumber block, Page page)
{
	GsLeafFill *later = level->height == 0 ? &loader->leaf.later : NULL;

	gpusort_page_writer_put(loader->writer, block, page, later);
	if (later != NULL)
		later->rows.nrows = 0;
}

/* Write the level's page, and begin the next one with the last tuple. */
static void
finish_page(GsBtreeLoader *loader, GsBtreeLevel *level)
{
	Page		page = level->page;
	BlockNumber block = level->block;
	OffsetNumber last_offset = PageGetMaxOffsetNumber(page);

	CHECK_FOR_INTERRUPTS();
	if (level->height == 0)
		close_leaf(loader);
	Assert(last_offset > P_FIRSTKEY);

	/* Block numbers are given out in PostgreSQL's order. */
	level->page = begin_page(loader, level->height);
	level->block = loader->n_blocks++;
	link_to_parent(loader, level, block);

	begin_with_last(level, tuple_at(page, last_offset));
	set_high_key(loader, level, page);
	BTPageGetOpaque(page)->btpo_next = level->block;
	BTPageGetOpaque(level->page)->btpo_prev = block;
	put_page(loader, level, block, page);
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
	Assert(level->height > 0 || loader->leaf.ngroups == 0);
	append_tuple(level->page, tuple, size);
	level->room.last_posting = posting_bytes;
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
		gpusort_posting_finish(tuple, duplicates->key_bytes, duplicates->n_tids);
		posting_bytes = IndexTupleSize(tuple) - duplicates->key_bytes;
	}
	add_to_level(loader, loader->leaves, tuple, posting_bytes);
	duplicates->n_tids = 0;
}

/* Keep a copy of a tuple, without its TID, since equal ones may follow. */
static inline void
keep_tuple(GsBtreeDuplicates *duplicates, IndexTuple tuple)
{
	Size		size = IndexTupleSize(tuple);

	gpusort_copy_bytes(duplicates->tuple, tuple, size);
	duplicates->key_bytes = size;
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

/* Add a TID to the tuple that was kept, and that to its page if no other fits. */
static inline void
add_tid(GsBtreeLoader *loader, ItemPointerData tid)
{
	GsBtreeDuplicates *duplicates = &loader->duplicates;
	ItemPointer tids = (ItemPointer) ((char *) duplicates->tuple + duplicates->key_bytes);

	tids[duplicates->n_tids++] = tid;
	if (!gpusort_posting_fits(duplicates->key_bytes, duplicates->n_tids + 1))
		add_duplicates(loader);
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
	if (duplicates->n_tids > 0 && !equal_keys(loader, duplicates->tuple, tuple))
		add_duplicates(loader);
	if (duplicates->n_tids == 0)
		keep_tuple(duplicates, tuple);
	add_tid(loader, tuple->t_tid);
}

/* Is the tuple that was kept equal to that of a row? */
static bool
is_kept(GsBtreeLoader *loader, const char *row)
{
	union
	{
		char		data[GPUSORT_LEAF_TUPLE_BYTES];
		IndexTupleData tuple;
		double		force_align;
	}			memory = {{0}};

	gpusort_leaf_form_tuple(loader->form, row, &memory.tuple);
	return equal_keys(loader, loader->duplicates.tuple, &memory.tuple);
}

/*
 * Let the first rows share the tuple that was kept, and add it if there are others after
 * them.  Returns the first of the others.
 */
static GsRowPlace
add_to_kept(GsBtreeLoader *loader, const GsRowsInPlace *rows)
{
	GsRowPlace	place = gpusort_first_place(rows);

	while (loader->duplicates.n_tids > 0 &&
		   gpusort_leaf_key_bytes(loader->form, rows, place) > 0)
	{
		if (is_kept(loader, place.row))
		{
			add_tid(loader, gpusort_leaf_tid(loader->form, place.row));
			place = gpusort_next_place(rows, place);
		}
		else
			add_duplicates(loader);
	}
	return place;
}

uint32
gpusort_btree_loader_add_rows(GsBtreeLoader *loader, const GsRowsInPlace *rows, int64 position,
							  const char **last)
{
	GsBtreeLevel *level = loader->leaves;
	GsRowPlace	place;
	bool		full;

	loader->defer = loader->shared && rows->lasting;
	place = add_to_kept(loader, rows);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		full = gpusort_leaf_page_add(&loader->leaf, level->page, &level->room, loader->form,
									 rows, position, &place);
		if (loader->leaf.ngroups > 0)
			*last = loader->leaf.last.row;
		if (!full)
			break;
		finish_page(loader, level);
	}
	close_leaf(loader);
	return place.number;
}

void
gpusort_btree_loader_recall(GsBtreeLoader *loader, int64 position)
{
	GsLeafFill *later = &loader->leaf.later;

	if (later->rows.nrows > 0 && later->position < position)
		gpusort_page_fill(loader->form, later, loader->leaves->page);
	gpusort_page_writer_recall(loader->writer, position);
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

/* Returns the form of leaf tuples, or NULL if they are not formed from rows in place. */
static const GsLeafForm *
make_leaf_form(GsBtreeLoader *loader, const GsIndexBuild *build)
{
	GsLeafForm *form = palloc(sizeof(GsLeafForm));
	bool		unique = build->info->ii_Unique;

	/* Keys of a unique index that have other bytes must be different. */
	if (unique && !_bt_allequalimage(build->index, false))
		return NULL;
	if (!gpusort_leaf_form_init(form, build->index, &build->spec, loader->deduplicate, unique))
		return NULL;
	return form;
}

GsBtreeLoader *
gpusort_btree_loader_begin(const GsIndexBuild *build)
{
	Relation	index = build->index;
	GsPageQueue *queue = gpusort_index_build_pages(build);
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
	loader->heap = build->heap;
	loader->index = index;
	loader->key = _bt_mkscankey(index, NULL);
	loader->key->allequalimage = all_equal_image;
	/* As in PostgreSQL, a unique index gets no posting lists. */
	loader->deduplicate = all_equal_image && !build->info->ii_Unique &&
		BTGetDeduplicateItems(index);
	loader->form = make_leaf_form(loader, build);
	loader->shared = queue != NULL;
	loader->writer = gpusort_page_writer_begin(index, queue, loader->form);
	loader->n_blocks = BTREE_METAPAGE + 1;
	loader->leaves = begin_level(loader, 0);
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
		if (level == loader->leaves)
			gpusort_page_fill(loader->form, &loader->leaf.later, level->page);
		remove_high_key(level->page);
		put_page(loader, level, level->block, level->page);

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
	gpusort_page_writer_put(loader->writer, BTREE_METAPAGE, page, NULL);
}

const GsLeafForm *
gpusort_btree_loader_form(const GsBtreeLoader *loader)
{
	return loader->form;
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
	gpusort_page_writer_abandon(loader->writer);
	MemoryContextDelete(loader->context);
}
