/*-------------------------------------------------------------------------
 *
 * page_writer.c
 *		Writes finished pages of a new index, or leaves the index to PostgreSQL.
 *
 * PostgreSQL 17 and later have functions by which one process writes pages (bulk_write.h).
 * In older versions the index build does it itself.  Several processes need the queue of
 * page_queue.c, which also serves one process of an older version.  The file is the same in
 * the end.
 *
 * WAL-logging the pages is not enough.  A checkpoint that began while the
 * pages were being written did not know of them, and recovery after a crash
 * starts after their WAL records.  So the file is synced at the end, or, from 17 on, left to
 * the next checkpoint if none has begun since the first page.  An index
 * that needs no WAL because it is new in this transaction is synced at commit;
 * one that is unlogged or temporary does not survive a crash.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "catalog/storage.h"
#include "storage/bufmgr.h"
#ifdef GPUSORT_HAVE_BULK_WRITE
#include "storage/bulk_write.h"
#endif
#include "storage/smgr.h"
#include "utils/rel.h"

#include "index/base/page_writer.h"

struct GsPageWriter
{
	Relation	index;
	GsPageQueue *queue;			/* NULL if PostgreSQL's functions write */
#ifdef GPUSORT_HAVE_BULK_WRITE
	BulkWriteState *bulk;
#endif
};

GsPageWriter *
gpusort_page_writer_begin(Relation index, GsPageQueue *queue)
{
	GsPageWriter *writer = palloc(sizeof(GsPageWriter));

	writer->index = index;
	writer->queue = queue;
#ifdef GPUSORT_HAVE_BULK_WRITE
	writer->bulk = smgr_bulk_start_rel(index, MAIN_FORKNUM);
#else
	if (queue == NULL)
		writer->queue = gpusort_page_queue_init(palloc(gpusort_page_queue_bytes(false)),
												false, RelationNeedsWAL(index));
#endif
	return writer;
}

Page
gpusort_page_writer_new_page(GsPageWriter *writer)
{
#ifdef GPUSORT_HAVE_BULK_WRITE
	if (writer->queue == NULL)
	{
		Page		page = (Page) smgr_bulk_get_buf(writer->bulk);

		_bt_pageinit(page, BLCKSZ);
		return page;
	}
#endif
	return gpusort_page_queue_new_page(writer->queue);
}

void
gpusort_page_writer_put(GsPageWriter *writer, BlockNumber block, Page page,
						const GsPageFills *later)
{
#ifdef GPUSORT_HAVE_BULK_WRITE
	if (writer->queue == NULL)
	{
		Assert(later == NULL || later->n == 0);
		smgr_bulk_write(writer->bulk, block, (BulkWriteBuffer) page, true);
		return;
	}
#endif
	gpusort_page_queue_put(writer->queue, writer->index, block, page, later);
}

void
gpusort_page_writer_recall(GsPageWriter *writer, int64 position)
{
	if (writer->queue != NULL)
		gpusort_page_queue_recall(writer->queue, writer->index, position);
}

void
gpusort_page_writer_end(GsPageWriter *writer)
{
	if (writer->queue != NULL)
		gpusort_page_queue_flush(writer->queue, writer->index);
#ifdef GPUSORT_HAVE_BULK_WRITE
	/* This syncs the file as well, whoever has written it. */
	smgr_bulk_finish(writer->bulk);
#else
	if (RelationNeedsWAL(writer->index))
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
#endif
}

void
gpusort_page_writer_abandon(GsPageWriter *writer)
{
	if (writer->queue != NULL)
		gpusort_page_queue_discard(writer->queue);
}

/* ----------------------------------------------------------------
 *		if rows or keys are not in order
 * ----------------------------------------------------------------
 */

void
gpusort_wrong_order_truncate(Relation index)
{
	if (RelationGetNumberOfBlocks(index) > 0)
		RelationTruncate(index, 0);
}

void
gpusort_wrong_order_warn(Relation index, const char *encoding)
{
	ereport(WARNING,
			(errmsg("rows of index \"%s\" were not sorted into the right order, so PostgreSQL builds it",
					RelationGetRelationName(index)),
			 errdetail("They were sorted by type %s.", encoding),
			 errhint("Check other indexes of this type with amcheck.")));
}
