/*-------------------------------------------------------------------------
 *
 * btree_workers.c
 *		Parallel workers that help with an index build.
 *
 * The processes take blocks of the table from a common counter, and add the rows to the leader's
 * sort (producer.h).  Rows of several
 * processes come in no particular order, so the TID is an additional sort key.  Without a
 * GPU, workers may still sort the last rows while the leader makes the first pages.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "index/base/build_workers.h"
#include "index/base/index_rows.h"
#include "index/btree/btree_private.h"
#include "sort/base/sort_stats.h"
#include "sort/producer.h"

/* Keys of the parts of shared memory. */
#define KEY_BLOCKS		GPUSORT_BUILD_FIRST_KEY
#define KEY_SNAPSHOT	(GPUSORT_BUILD_FIRST_KEY + 1)

PGDLLEXPORT void gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

GsBtreeWorkers *
gpusort_btree_workers_start(Relation heap, Relation index,
							const IndexInfo *info, GsHeapRows *rows,
							const GsSortSpec *spec,
							const GsParallelSort *parallel, int nworkers)
{
	GsBtreeWorkers *workers = palloc0(sizeof(GsBtreeWorkers));
	Snapshot	snapshot = gpusort_heap_rows_snapshot(rows);

	workers->rows = rows;
	gpusort_build_workers_create(&workers->build, "gpusort_btree_worker_main", nworkers);
	gpusort_build_workers_estimate(&workers->build, sizeof(GsHeapShare));
	if (snapshot != NULL)
		gpusort_build_workers_estimate(&workers->build, EstimateSnapshotSpace(snapshot));
	if (!gpusort_build_workers_allocate(&workers->build, heap, index, info, spec, parallel))
	{
		pfree(workers);
		return NULL;
	}
	gpusort_heap_rows_share(rows, gpusort_build_workers_make(&workers->build, KEY_BLOCKS,
															 sizeof(GsHeapShare)));
	if (snapshot != NULL)
		SerializeSnapshot(snapshot,
						  gpusort_build_workers_make(&workers->build, KEY_SNAPSHOT,
													 EstimateSnapshotSpace(snapshot)));
	gpusort_build_workers_launch(&workers->build);
	return workers;
}

void
gpusort_btree_workers_collect(GsBtreeWorkers *workers)
{
	if (!workers->collected)
		gpusort_heap_rows_unshare(workers->rows);
	workers->collected = true;
}

GsFallback
gpusort_btree_workers_await(GsBtreeWorkers *workers)
{
	(void) gpusort_build_workers_await(&workers->build);
	gpusort_btree_workers_collect(workers);
	return gpusort_parallel_sort_failure(workers->build.parallel);
}

void
gpusort_btree_workers_finish(GsBtreeWorkers *workers)
{
	gpusort_build_workers_finish(&workers->build);
	gpusort_btree_workers_collect(workers);
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* What this worker reads. */
typedef struct GsBtreeWorker
{
	IndexInfo  *info;
	GsHeapRows *rows;
	TupleTableSlot *slot;		/* for a row */
} GsBtreeWorker;

/* GsProducerNext */
static TupleTableSlot *
next_row(void *arg)
{
	GsBtreeWorker *worker = arg;
	TupleTableSlot *slot = worker->slot;
	GsHeapRow	row;

	if (!gpusort_heap_rows_next(worker->rows, &row, slot->tts_values,
								slot->tts_isnull))
	{
		gpusort_heap_rows_report(worker->rows);
		return NULL;
	}
	slot->tts_values[worker->info->ii_NumIndexAttrs] =
		gpusort_index_rows_pack_tid(&row);
	return slot;
}

/* Add this worker's share of the rows. */
static void
take_rows(GsBtreeWorker *worker, const GsBuildWorker *build)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort rows of a worker",
												  ALLOCSET_DEFAULT_SIZES);
	GsSortCounts page_scan = {.page_scans = 1};
	GsProducer	producer = {
		.parallel = build->parallel,
		.next = next_row,
		.arg = worker
	};

	if (!gpusort_index_rows_describe(build->index, true, &producer.spec))
		elog(ERROR, "no operators for an index build");
	gpusort_build_worker_describe(build, &producer.spec);
	worker->slot = MakeSingleTupleTableSlot(producer.spec.tupdesc, &TTSOpsVirtual);
	memset(worker->slot->tts_isnull, 0, producer.spec.tupdesc->natts * sizeof(bool));
	ExecStoreVirtualTuple(worker->slot);
	gpusort_stats_count_sort(build->parallel->gpu ? GS_KIND_GPU : GS_KIND_CPU, &page_scan);
	gpusort_producer_run(&producer, context);
	ExecDropSingleTupleTableSlot(worker->slot);
	MemoryContextDelete(context);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsBtreeWorker worker = {0};
	GsBuildWorker build;

	gpusort_build_worker_begin(&build, toc);
	worker.info = build.info;
	worker.rows = gpusort_heap_rows_join(build.heap, build.index, build.info,
										 shm_toc_lookup(toc, KEY_SNAPSHOT, true),
										 shm_toc_lookup(toc, KEY_BLOCKS, false));
	take_rows(&worker, &build);
	gpusort_heap_rows_end(worker.rows);
	gpusort_build_worker_end(&build);
}
