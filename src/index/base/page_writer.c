/*-------------------------------------------------------------------------
 *
 * page_writer.c
 *		Writes finished pages of a new index.
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
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "catalog/storage.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#ifdef GPUSORT_HAVE_BULK_WRITE
#include "storage/bulk_write.h"
#endif
#include "storage/condition_variable.h"
#include "storage/smgr.h"
#include "storage/spin.h"
#include "utils/rel.h"

#include "index/base/page_writer.h"
#include "service/fault.h"
#include "sort/memory/shared_ranges.h"
#include "work.h"

/* ----------------------------------------------------------------
 *		the queue of pages on their way to the file
 *
 * Batches form a ring, and are handed over, taken and used again in this order.  They are
 * written in any order.
 *
 * A batch is one WAL record, since one record for many pages is smaller than one for each.
 * A worker may write WAL: a record with images of pages belongs to no transaction.
 *
 * The file grows by its last block, so that blocks between may be holes until they are
 * written, which all of them are before the build ends.
 * ----------------------------------------------------------------
 */

/* At most this many pages may be filled at a time. */
#define OPEN_PAGES		64

/* The number of pages that fit into a WAL record. */
#define BATCH_PAGES		XLR_MAX_BLOCK_ID

/* Batches in the ring: enough that a few workers and the leader seldom wait. */
#define SHARED_BATCHES	16
#define LOCAL_BATCHES	2

#define SHARED_PAGES	(OPEN_PAGES + SHARED_BATCHES * BATCH_PAGES)
#define LOCAL_PAGES		(OPEN_PAGES + LOCAL_BATCHES * BATCH_PAGES)

/* Direct I/O requires this alignment. */
#define PAGE_ALIGNMENT	4096

typedef struct GsPageBatch
{
	pg_atomic_uint32 written;	/* is it in the file? */
	int64		first_row;		/* position of the first one of which a tuple
								 * is lacking; PG_INT64_MAX if none is */
	int			n_pages;
	uint32		pages[BATCH_PAGES]; /* numbers */
	BlockNumber blocks[BATCH_PAGES];
	GsLeafFill	later[BATCH_PAGES];
} GsPageBatch;

struct GsPageQueue
{
	bool		use_wal;
	GsLeafForm	form;
	uint32		n_batches;
	uint32		n_pages;
	Size		first_page;		/* offset of the first page */

	/*
	 * Under 'mutex': batches handed over and taken so far, and whether that
	 * is all.
	 */
	slock_t		mutex;
	uint64		n_handed;
	uint64		n_taken;
	bool		closed;
	ConditionVariable batch_handed; /* or closed */
	ConditionVariable batch_written;

	/* Of the leader. */
	uint64		n_used_again;	/* batches whose pages are free again */
	BlockNumber n_blocks;		/* of the file */
	uint32		n_free;
	uint32		free[SHARED_PAGES];

	GsPageBatch batches[FLEXIBLE_ARRAY_MEMBER];
};

static Size
header_bytes(bool shared)
{
	return offsetof(GsPageQueue, batches) +
		(shared ? SHARED_BATCHES : LOCAL_BATCHES) * sizeof(GsPageBatch);
}

Size
gpusort_page_queue_bytes(bool shared)
{
	return header_bytes(shared) + PAGE_ALIGNMENT +
		(Size) (shared ? SHARED_PAGES : LOCAL_PAGES) * BLCKSZ;
}

static inline Page
page_with_number(GsPageQueue *queue, uint32 number)
{
	return (Page) ((char *) queue + queue->first_page + (Size) number * BLCKSZ);
}

static void
free_all_pages(GsPageQueue *queue)
{
	queue->n_free = queue->n_pages;
	for (uint32 i = 0; i < queue->n_pages; i++)
	{
		queue->free[i] = i;
		_bt_pageinit(page_with_number(queue, i), BLCKSZ);
	}
}

GsPageQueue *
gpusort_page_queue_init(void *memory, bool shared, bool use_wal)
{
	GsPageQueue *queue = memory;
	char	   *pages;

	memset(queue, 0, header_bytes(shared));
	queue->use_wal = use_wal;
	queue->n_batches = shared ? SHARED_BATCHES : LOCAL_BATCHES;
	queue->n_pages = shared ? SHARED_PAGES : LOCAL_PAGES;
	pages = (char *) TYPEALIGN(PAGE_ALIGNMENT, (char *) memory + header_bytes(shared));
	queue->first_page = pages - (char *) queue;
	SpinLockInit(&queue->mutex);
	ConditionVariableInit(&queue->batch_handed);
	ConditionVariableInit(&queue->batch_written);
	for (uint32 i = 0; i < queue->n_batches; i++)
	{
		pg_atomic_init_u32(&queue->batches[i].written, 0);
		queue->batches[i].first_row = PG_INT64_MAX;
	}
	free_all_pages(queue);
	return queue;
}

static inline GsPageBatch *
batch_with_number(GsPageQueue *queue, uint64 number)
{
	return &queue->batches[number % queue->n_batches];
}

/* ----------------------------------------------------------------
 *		writing batches
 * ----------------------------------------------------------------
 */

/*
 * Log the pages of a batch.  Then the WAL writer is told that there is WAL to be written.  It
 * writes as much as there is at a time.  By itself it wakes up only now and then, and
 * whoever finds all WAL buffers in use has to write one of them, while the others wait.
 */
static void
log_batch(Relation index, GsPageBatch *batch, Page *pages)
{
	log_newpages(GPUSORT_RELATION_LOCATOR(index), MAIN_FORKNUM, batch->n_pages,
				 batch->blocks, pages, true);
	XLogSetAsyncXactLSN(XactLastRecEnd);
}

/* Form the tuples that pages of a batch lack. */
static void
form_tuples(GsPageQueue *queue, GsPageBatch *batch)
{
	for (int i = 0; i < batch->n_pages; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_page_fill(&queue->form, &batch->later[i],
						  page_with_number(queue, batch->pages[i]));
	}
}

/*
 * Write the pages of a batch.  Blocks are not registered for the next checkpoint's sync,
 * since the file is synced at the end of the build.
 */
static void
write_batch(GsPageQueue *queue, Relation index, GsPageBatch *batch)
{
	Page		pages[BATCH_PAGES];

	form_tuples(queue, batch);
	for (int i = 0; i < batch->n_pages; i++)
		pages[i] = page_with_number(queue, batch->pages[i]);

	/* This sets the LSNs of the pages, so it comes before their checksums. */
	if (queue->use_wal)
		log_batch(index, batch, pages);
	for (int i = 0; i < batch->n_pages; i++)
	{
		PageSetChecksum(pages[i], batch->blocks[i]);
		smgrwrite(RelationGetSmgr(index), MAIN_FORKNUM, batch->blocks[i],
				  (char *) pages[i], true);

		/*
		 * For the leader this would take longer, as the page is not in its
		 * cache.
		 */
		_bt_pageinit(pages[i], BLCKSZ);
	}
	pg_memory_barrier();
	pg_atomic_write_u32(&batch->written, 1);
}

/* Take the next batch, if there is one.  Sets *closed to whether there will be no more. */
static GsPageBatch *
take_batch(GsPageQueue *queue, bool *closed)
{
	GsPageBatch *batch = NULL;

	SpinLockAcquire(&queue->mutex);
	if (queue->n_taken < queue->n_handed)
		batch = batch_with_number(queue, queue->n_taken++);
	*closed = queue->closed;
	SpinLockRelease(&queue->mutex);
	return batch;
}

void
gpusort_page_queue_work(GsPageQueue *queue, Relation index)
{
	for (;;)
	{
		bool		closed;
		GsPageBatch *batch = take_batch(queue, &closed);

		CHECK_FOR_INTERRUPTS();
		if (batch != NULL)
		{
			gpusort_fault_host_late();
			write_batch(queue, index, batch);
			ConditionVariableSignal(&queue->batch_written);
		}
		else if (closed)
			break;
		else
			ConditionVariableSleep(&queue->batch_handed, gpusort_shared_wait_event());
	}
	ConditionVariableCancelSleep();
}

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

/* The batch to which pages are added.  Its place in the ring is free. */
static inline GsPageBatch *
open_batch(GsPageQueue *queue)
{
	return batch_with_number(queue, queue->n_handed);
}

/* Free the pages of batches that have been written. */
static void
use_again(GsPageQueue *queue)
{
	while (queue->n_used_again < queue->n_handed)
	{
		GsPageBatch *batch = batch_with_number(queue, queue->n_used_again);

		if (pg_atomic_read_u32(&batch->written) == 0)
			break;
		pg_memory_barrier();
		for (int i = 0; i < batch->n_pages; i++)
			queue->free[queue->n_free++] = batch->pages[i];
		batch->n_pages = 0;
		batch->first_row = PG_INT64_MAX;
		pg_atomic_write_u32(&batch->written, 0);
		queue->n_used_again++;
	}
}

/*
 * Write batches that nobody has taken, and wait for the others, until the first n that were
 * ever handed over are written.
 */
static void
write_first(GsPageQueue *queue, Relation index, uint64 n)
{
	use_again(queue);
	while (queue->n_used_again < n)
	{
		bool		closed;
		GsPageBatch *batch = take_batch(queue, &closed);

		CHECK_FOR_INTERRUPTS();
		if (batch != NULL)
			write_batch(queue, index, batch);
		else
			ConditionVariableSleep(&queue->batch_written, gpusort_shared_wait_event());
		use_again(queue);
	}
	ConditionVariableCancelSleep();
}

/* Make the file long enough for a batch. */
static void
extend_file(GsPageQueue *queue, Relation index, const GsPageBatch *batch)
{
	PGIOAlignedBlock zeros;
	BlockNumber last = 0;

	for (int i = 0; i < batch->n_pages; i++)
		last = Max(last, batch->blocks[i]);
	if (last < queue->n_blocks)
		return;
	memset(&zeros, 0, sizeof(zeros));
	smgrextend(RelationGetSmgr(index), MAIN_FORKNUM, last, zeros.data, true);
	queue->n_blocks = last + 1;
}

/* Hand the open batch over, and open the next one. */
static void
hand_over(GsPageQueue *queue, Relation index)
{
	extend_file(queue, index, open_batch(queue));
	SpinLockAcquire(&queue->mutex);
	queue->n_handed++;
	SpinLockRelease(&queue->mutex);
	ConditionVariableSignal(&queue->batch_handed);
	/* One must stay open. */
	if (queue->n_handed >= queue->n_batches)
		write_first(queue, index, queue->n_handed - queue->n_batches + 1);
	else
		use_again(queue);
}

void
gpusort_page_queue_close(GsPageQueue *queue)
{
	SpinLockAcquire(&queue->mutex);
	queue->closed = true;
	SpinLockRelease(&queue->mutex);
	ConditionVariableBroadcast(&queue->batch_handed);
}

/* ----------------------------------------------------------------
 *		writing, in the leader
 * ----------------------------------------------------------------
 */

struct GsPageWriter
{
	Relation	index;
	GsPageQueue *queue;
#ifdef GPUSORT_HAVE_BULK_WRITE
	BulkWriteState *bulk;		/* writes nothing, but knows of checkpoints */
#endif
};

GsPageWriter *
gpusort_page_writer_begin(Relation index, GsPageQueue *queue, const GsLeafForm *form)
{
	GsPageWriter *writer = palloc(sizeof(GsPageWriter));

	writer->index = index;
	writer->queue = queue;
	if (queue == NULL)
		writer->queue = gpusort_page_queue_init(palloc(gpusort_page_queue_bytes(false)),
												false, RelationNeedsWAL(index));
	if (form != NULL)
		writer->queue->form = *form;
#ifdef GPUSORT_HAVE_BULK_WRITE
	writer->bulk = smgr_bulk_start_rel(index, MAIN_FORKNUM);
#endif
	return writer;
}

Page
gpusort_page_writer_new_page(GsPageWriter *writer)
{
	GsPageQueue *queue = writer->queue;

	/* The pages of all full batches leave some. */
	Assert(queue->n_free > 0);
	return page_with_number(queue, queue->free[--queue->n_free]);
}

void
gpusort_page_writer_put(GsPageWriter *writer, BlockNumber block, Page page,
						const GsLeafFill *later)
{
	GsPageQueue *queue = writer->queue;
	GsPageBatch *batch = open_batch(queue);

	batch->later[batch->n_pages].rows.nrows = 0;
	if (later != NULL && later->rows.nrows > 0)
	{
		batch->later[batch->n_pages] = *later;
		batch->first_row = Min(batch->first_row, later->position);
	}
	batch->pages[batch->n_pages] = ((char *) page - (char *) page_with_number(queue, 0)) / BLCKSZ;
	batch->blocks[batch->n_pages] = block;
	if (++batch->n_pages == BATCH_PAGES)
		hand_over(queue, writer->index);
}

void
gpusort_page_writer_recall(GsPageWriter *writer, int64 position)
{
	GsPageQueue *queue = writer->queue;
	uint64		n = queue->n_handed;

	if (open_batch(queue)->first_row < position)
	{
		form_tuples(queue, open_batch(queue));
		open_batch(queue)->first_row = PG_INT64_MAX;
	}
	while (n > queue->n_used_again && batch_with_number(queue, n - 1)->first_row >= position)
		n--;
	write_first(queue, writer->index, n);
}

void
gpusort_page_writer_end(GsPageWriter *writer)
{
	GsPageQueue *queue = writer->queue;

	if (open_batch(queue)->n_pages > 0)
		hand_over(queue, writer->index);
	write_first(queue, writer->index, queue->n_handed);
#ifdef GPUSORT_HAVE_BULK_WRITE
	/* This syncs the file, although others have written it. */
	smgr_bulk_finish(writer->bulk);
#else
	if (RelationNeedsWAL(writer->index))
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
#endif
}

void
gpusort_page_writer_abandon(GsPageWriter *writer)
{
	GsPageQueue *queue = writer->queue;
	bool		closed;
	GsPageBatch *batch;

	while ((batch = take_batch(queue, &closed)) != NULL)
		pg_atomic_write_u32(&batch->written, 1);
	for (use_again(queue); queue->n_used_again < queue->n_handed; use_again(queue))
		ConditionVariableSleep(&queue->batch_written, gpusort_shared_wait_event());
	ConditionVariableCancelSleep();
	open_batch(queue)->n_pages = 0;
	open_batch(queue)->first_row = PG_INT64_MAX;
	free_all_pages(queue);
	queue->n_blocks = 0;
}
