/*-------------------------------------------------------------------------
 *
 * gin_posting_tree.c
 *		Writes the posting tree of a key of a GIN index that has many TIDs.
 *
 * One page of each level is being filled, and has its block number.  A leaf has segments,
 * each with its first TID and the differences of the others, which are made in place.  Pages
 * are filled completely, as in PostgreSQL's build: a table mostly grows at its end, and new
 * TIDs go to the last leaf.
 *
 * The right bound of a page is its greatest TID, and none on the last page of a level.  Its
 * downlink has the same bound.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "index/gin/gin_private.h"
#include "work.h"

/* The most bytes of a segment, with its header, as in PostgreSQL. */
#define MAX_SEGMENT_BYTES	384

/* A segment is begun only if there is room for so many bytes. */
#define MIN_SEGMENT_BYTES	32

/* Levels above the leaves.  Each page has hundreds of downlinks. */
#define MAX_LEVELS			8

#define MAX_DOWNLINKS		((int) (GinDataPageMaxDataSize / sizeof(PostingItem)))

/* A level above the leaves. */
typedef struct GsPostingLevel
{
	Page		page;
	BlockNumber block;
	int			ndownlinks;
} GsPostingLevel;

struct GsPostingTree
{
	GsGinPages *pages;

	/* The leaf that is being filled, and its last segment. */
	Page		leaf;
	BlockNumber block;
	Size		used;			/* bytes of the leaf before that segment */
	GinPostingList *segment;	/* NULL if there is none */
	uint8	   *end;			/* of its bytes */
	uint8	   *limit;			/* up to which it can grow */
	uint64		last;			/* the TID that was added last */

	int			nlevels;
	GsPostingLevel levels[MAX_LEVELS];
};

GsPostingTree *
gpusort_posting_tree_create(GsGinPages *pages)
{
	GsPostingTree *tree = palloc0(sizeof(GsPostingTree));

	tree->pages = pages;
	return tree;
}

static Page
begin_page(GsPostingTree *tree, uint32 flags, BlockNumber *block)
{
	Page		page = gpusort_page_writer_new_page(tree->pages->writer);

	GinInitPage(page, flags, BLCKSZ);
	*block = tree->pages->n_blocks++;
	tree->pages->n_data_pages++;
	return page;
}

/* ----------------------------------------------------------------
 *		upper levels
 * ----------------------------------------------------------------
 */

static void add_downlink(GsPostingTree *tree, int k, BlockNumber child, ItemPointerData bound);

/* Finish the page of a level.  'next' is the block of the next one, or invalid. */
static void
finish_upper_page(GsPostingTree *tree, int k, BlockNumber next)
{
	GsPostingLevel *level = &tree->levels[k];
	ItemPointerData bound;

	ItemPointerSetMin(&bound);
	if (next != InvalidBlockNumber)
		bound = GinDataPageGetPostingItem(level->page, level->ndownlinks)->key;
	*GinDataPageGetRightBound(level->page) = bound;
	GinPageGetOpaque(level->page)->maxoff = level->ndownlinks;
	GinPageGetOpaque(level->page)->rightlink = next;
	GinDataPageSetDataSize(level->page, level->ndownlinks * sizeof(PostingItem));
	if (next != InvalidBlockNumber || k + 1 < tree->nlevels)
		add_downlink(tree, k + 1, level->block, bound);
	gpusort_page_writer_put(tree->pages->writer, level->block, level->page, NULL);
}

static void
begin_upper_page(GsPostingTree *tree, int k)
{
	GsPostingLevel *level = &tree->levels[k];

	level->page = begin_page(tree, GIN_DATA, &level->block);
	level->ndownlinks = 0;
}

/* Add the downlink of a page to the level above it. */
static void
add_downlink(GsPostingTree *tree, int k, BlockNumber child, ItemPointerData bound)
{
	GsPostingLevel *level = &tree->levels[k];
	PostingItem *item;

	if (k == tree->nlevels)
	{
		if (k == MAX_LEVELS)
			elog(ERROR, "a posting tree has too many levels");
		tree->nlevels++;
		begin_upper_page(tree, k);
	}
	else if (level->ndownlinks == MAX_DOWNLINKS)
	{
		GsPostingLevel full = *level;
		GsPostingLevel next;

		begin_upper_page(tree, k);
		next = *level;
		*level = full;
		finish_upper_page(tree, k, next.block);
		*level = next;
	}
	level->ndownlinks++;
	item = GinDataPageGetPostingItem(level->page, level->ndownlinks);
	PostingItemSetBlockNumber(item, child);
	item->key = bound;
}

/* ----------------------------------------------------------------
 *		leaves
 * ----------------------------------------------------------------
 */

/* The first byte of the leaf behind its segments, but for the last one. */
static inline char *
leaf_end(const GsPostingTree *tree)
{
	return (char *) GinDataLeafPageGetPostingList(tree->leaf) + tree->used;
}

static void
begin_leaf(GsPostingTree *tree)
{
	tree->leaf = begin_page(tree, GIN_DATA | GIN_LEAF | GIN_COMPRESSED, &tree->block);
	tree->used = 0;
	tree->segment = NULL;
}

/* Finish the last segment of the leaf. */
static void
finish_segment(GsPostingTree *tree)
{
	GinPostingList *segment = tree->segment;

	if (segment == NULL)
		return;
	segment->nbytes = tree->end - segment->bytes;

	/*
	 * The byte of padding is 0: the whole page was, and nothing else is
	 * written there.
	 */
	tree->used += SizeOfGinPostingList(segment);
	tree->segment = NULL;
}

/* Finish the leaf.  'next' is the block of the next one, or invalid. */
static void
finish_leaf(GsPostingTree *tree, Page leaf, BlockNumber block, BlockNumber next)
{
	ItemPointerData bound;

	ItemPointerSetMin(&bound);
	if (next != InvalidBlockNumber)
		gpusort_tid_set(&bound, tree->last);
	*GinDataPageGetRightBound(leaf) = bound;
	GinPageGetOpaque(leaf)->rightlink = next;
	GinDataPageSetDataSize(leaf, tree->used);
	if (next != InvalidBlockNumber || tree->nlevels > 0)
		add_downlink(tree, 0, block, bound);
	gpusort_page_writer_put(tree->pages->writer, block, leaf, NULL);
}

/* Begin a segment with a TID, on a new leaf if necessary. */
static void
begin_segment(GsPostingTree *tree, uint64 tid)
{
	Size		room = GinDataPageMaxDataSize - tree->used;
	GinPostingList *segment;

	if (room < MIN_SEGMENT_BYTES)
	{
		Page		leaf = tree->leaf;
		BlockNumber block = tree->block;
		BlockNumber next;
		Page		next_leaf = begin_page(tree, GIN_DATA | GIN_LEAF | GIN_COMPRESSED, &next);

		finish_leaf(tree, leaf, block, next);
		tree->leaf = next_leaf;
		tree->block = next;
		tree->used = 0;
		room = GinDataPageMaxDataSize;
	}
	room = Min(room, MAX_SEGMENT_BYTES);
	segment = (GinPostingList *) leaf_end(tree);
	gpusort_tid_set(&segment->first, tid);
	tree->segment = segment;
	tree->end = segment->bytes;

	/* The bytes are padded to an even number. */
	tree->limit = (uint8 *) segment + (room & ~(Size) 1);
}

void
gpusort_posting_tree_begin(GsPostingTree *tree)
{
	tree->nlevels = 0;
	begin_leaf(tree);
}

/*
 * Add TIDs to the last segment, of which there is one, as long as there is room for any
 * difference.  Returns their number.
 */
static inline uint32
fill_segment(GsPostingTree *tree, const uint64 *tids, uint32 count)
{
	const uint8 *limit = tree->limit - GPUSORT_VARBYTE_ROOM;
	uint8	   *end = tree->end;
	uint64		last = tree->last;
	uint32		i = 0;

	for (; i < count && end <= limit; i++)
	{
		end = gpusort_varbyte_write(end, tids[i] - last);
		last = tids[i];
	}
	tree->end = end;
	tree->last = last;
	return i;
}

/* Add a TID to the last segment, if there is one and it fits, or begin one with it. */
static void
add_tid(GsPostingTree *tree, uint64 tid)
{
	uint8		bytes[GPUSORT_VARBYTE_ROOM];
	Size		length = gpusort_varbyte_write(bytes, tid - tree->last) - bytes;

	if (tree->segment != NULL && tree->end + length <= tree->limit)
	{
		memcpy(tree->end, bytes, length);
		tree->end += length;
	}
	else
	{
		finish_segment(tree);
		begin_segment(tree, tid);
	}
	tree->last = tid;
}

void
gpusort_posting_tree_add(GsPostingTree *tree, const uint64 *tids, uint32 count)
{
	for (uint32 i = 0; i < count;)
	{
		if (tree->segment != NULL)
			i += fill_segment(tree, tids + i, count - i);
		if (i < count)
			add_tid(tree, tids[i++]);
	}
	gpusort_work_add(count * sizeof(uint64));
}

BlockNumber
gpusort_posting_tree_end(GsPostingTree *tree)
{
	BlockNumber root;

	finish_segment(tree);
	finish_leaf(tree, tree->leaf, tree->block, InvalidBlockNumber);
	root = tree->block;
	for (int k = 0; k < tree->nlevels; k++)
	{
		root = tree->levels[k].block;
		finish_upper_page(tree, k, InvalidBlockNumber);
	}
	return root;
}
