/*-------------------------------------------------------------------------
 *
 * btree_writer.c
 *		Writes finished pages of a new btree index: WAL, checksums, the file.
 *
 * PostgreSQL 17 and later have functions that do this (bulk_write.h).  In
 * older versions the index build does it itself, and so does this file.  Pages
 * are collected into batches, because one WAL record for many pages is smaller
 * than one record for each.  The file is the same in the end.
 *
 * WAL-logging the pages is not enough.  A checkpoint that began while the
 * pages were being written did not know of them, and recovery after a crash
 * starts after their WAL records.  So the file is synced at the end.  An index
 * that needs no WAL because it is new in this transaction is synced at commit;
 * one that is unlogged or temporary does not survive a crash.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef GPUSORT_HAVE_BULK_WRITE
#include "storage/bulk_write.h"
#else
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#endif

#include "index/btree_writer.h"

#ifdef GPUSORT_HAVE_BULK_WRITE

struct GsBtreeWriter
{
	BulkWriteState *bulk;
};

GsBtreeWriter *
gpusort_btree_writer_begin(Relation index)
{
	GsBtreeWriter *writer = palloc(sizeof(GsBtreeWriter));

	writer->bulk = smgr_bulk_start_rel(index, MAIN_FORKNUM);
	return writer;
}

Page
gpusort_btree_writer_new_page(GsBtreeWriter *writer)
{
	return (Page) smgr_bulk_get_buf(writer->bulk);
}

void
gpusort_btree_writer_put(GsBtreeWriter *writer, BlockNumber block, Page page)
{
	smgr_bulk_write(writer->bulk, block, (BulkWriteBuffer) page, true);
}

void
gpusort_btree_writer_end(GsBtreeWriter *writer)
{
	smgr_bulk_finish(writer->bulk);
}

#else

/* The number of pages that fit into a WAL record. */
#define BATCH_PAGES		XLR_MAX_BLOCK_ID

/* Direct I/O requires this alignment. */
#define PAGE_ALIGNMENT	4096

/* A page that has been written, and can be used again. */
typedef struct GsUnusedPage
{
	struct GsUnusedPage *next;
} GsUnusedPage;

struct GsBtreeWriter
{
	MemoryContext context;
	Relation	index;
	bool		use_wal;
	BlockNumber n_blocks;		/* of the file */
	Page		zero_page;		/* NULL until needed */
	GsUnusedPage *unused;

	/* The pages of the batch. */
	int			n_pages;
	Page		pages[BATCH_PAGES];
	BlockNumber blocks[BATCH_PAGES];
};

GsBtreeWriter *
gpusort_btree_writer_begin(Relation index)
{
	GsBtreeWriter *writer = palloc0(sizeof(GsBtreeWriter));

	writer->context = CurrentMemoryContext;
	writer->index = index;
	writer->use_wal = RelationNeedsWAL(index);
	return writer;
}

/* The memory of a page is freed only with the context. */
static Page
allocate_page(GsBtreeWriter *writer)
{
	char	   *memory = MemoryContextAlloc(writer->context,
											BLCKSZ + PAGE_ALIGNMENT);

	return (Page) TYPEALIGN(PAGE_ALIGNMENT, memory);
}

Page
gpusort_btree_writer_new_page(GsBtreeWriter *writer)
{
	GsUnusedPage *page = writer->unused;

	if (page == NULL)
		return allocate_page(writer);
	writer->unused = page->next;
	return (Page) page;
}

/*
 * Extend the file with zeros up to 'block', as PostgreSQL does, so that the
 * file system allocates the blocks in order.  They are overwritten later.
 */
static void
extend_to(GsBtreeWriter *writer, BlockNumber block)
{
	if (writer->zero_page == NULL)
	{
		writer->zero_page = allocate_page(writer);
		memset(writer->zero_page, 0, BLCKSZ);
	}
	while (writer->n_blocks < block)
		smgrextend(RelationGetSmgr(writer->index), MAIN_FORKNUM,
				   writer->n_blocks++, (char *) writer->zero_page, true);
}

/*
 * Write a page without registering the block for the next checkpoint's sync,
 * since the file is synced at the end of the build.
 */
static void
write_page(GsBtreeWriter *writer, BlockNumber block, Page page)
{
	PageSetChecksumInplace(page, block);
	if (block < writer->n_blocks)
	{
		smgrwrite(RelationGetSmgr(writer->index), MAIN_FORKNUM, block,
				  (char *) page, true);
		return;
	}

	if (block > writer->n_blocks)
		extend_to(writer, block);
	smgrextend(RelationGetSmgr(writer->index), MAIN_FORKNUM, block,
			   (char *) page, true);
	writer->n_blocks++;
}

static void
write_pages(GsBtreeWriter *writer)
{
	/*
	 * This sets the LSNs of the pages, so it must come before their
	 * checksums.
	 */
	if (writer->use_wal)
		log_newpages(GPUSORT_RELATION_LOCATOR(writer->index), MAIN_FORKNUM,
					 writer->n_pages, writer->blocks, writer->pages, true);

	for (int i = 0; i < writer->n_pages; i++)
	{
		GsUnusedPage *unused = (GsUnusedPage *) writer->pages[i];

		write_page(writer, writer->blocks[i], writer->pages[i]);
		unused->next = writer->unused;
		writer->unused = unused;
	}
	writer->n_pages = 0;
}

void
gpusort_btree_writer_put(GsBtreeWriter *writer, BlockNumber block, Page page)
{
	writer->blocks[writer->n_pages] = block;
	writer->pages[writer->n_pages] = page;
	if (++writer->n_pages == BATCH_PAGES)
		write_pages(writer);
}

void
gpusort_btree_writer_end(GsBtreeWriter *writer)
{
	if (writer->n_pages > 0)
		write_pages(writer);
	if (writer->use_wal)
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
}

#endif							/* GPUSORT_HAVE_BULK_WRITE */
