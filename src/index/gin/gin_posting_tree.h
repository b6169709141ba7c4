/*-------------------------------------------------------------------------
 *
 * gin_posting_tree.h
 *		Writes the posting tree of a key of a GIN index that has many TIDs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_POSTING_TREE_H
#define GPUSORT_GIN_POSTING_TREE_H

#include "index/base/page_writer.h"

/* Where the pages of an index go, and how many there are. */
typedef struct GsGinPages
{
	GsPageWriter *writer;
	BlockNumber n_blocks;		/* block numbers given to pages so far */
	BlockNumber n_entry_pages;
	BlockNumber n_data_pages;	/* of posting trees */
} GsGinPages;

typedef struct GsPostingTree GsPostingTree;

/* Create a writer of posting trees, one after the other, in the current memory context. */
extern GsPostingTree *gpusort_posting_tree_create(GsGinPages *pages);

/*
 * Begin a tree, add ascending TIDs, of which there is at least one, and end it.  Returns the
 * block of its root.
 */
extern void gpusort_posting_tree_begin(GsPostingTree *tree);
extern void gpusort_posting_tree_add(GsPostingTree *tree, const uint64 *tids, uint32 count);
extern BlockNumber gpusort_posting_tree_end(GsPostingTree *tree);

#endif							/* GPUSORT_GIN_POSTING_TREE_H */
