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
#define KEY_SHARED		GPUSORT_BUILD_FIRST_KEY
#define KEY_SNAPSHOT	(GPUSORT_BUILD_FIRST_KEY + 1)

/*
 * State shared by all processes.  The leader sets everything before it
 * launches the workers.  After that only 'blocks' and the failure change, by atomic operations.
 */
typedef struct GsWorkersShared
{
	GsParallelSort parallel;
	double		expected_rows;	/* of each process */
	int			expected_width;
	Size		memory;			/* of each process */
	GsHeapShare blocks;
} GsWorkersShared;

struct GsBtreeWorkers
{
	GsBuildWorkers build;
	GsWorkersShared *shared;
	GsHeapRows *rows;
	bool		collected;
};

PGDLLEXPORT void gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

static void
fill_shared_memory(GsBtreeWorkers *workers, const GsSortSpec *spec,
				   const GsParallelSort *parallel, int nworkers)
{
	Snapshot	snapshot = gpusort_heap_rows_snapshot(workers->rows);
	GsWorkersShared *shared = gpusort_build_workers_make(&workers->build, KEY_SHARED,
														 sizeof(GsWorkersShared));

	shared->parallel = *parallel;
	shared->expected_rows = spec->expected_rows / (nworkers + 1);
	shared->expected_width = spec->expected_width;
	shared->memory = spec->memory;
	gpusort_heap_rows_share(workers->rows, &shared->blocks);
	workers->shared = shared;
	if (snapshot != NULL)
		SerializeSnapshot(snapshot,
						  gpusort_build_workers_make(&workers->build, KEY_SNAPSHOT,
													 EstimateSnapshotSpace(snapshot)));
}

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
	gpusort_build_workers_estimate(&workers->build, sizeof(GsWorkersShared));
	if (snapshot != NULL)
		gpusort_build_workers_estimate(&workers->build, EstimateSnapshotSpace(snapshot));
	if (!gpusort_build_workers_allocate(&workers->build, heap, index, info))
	{
		pfree(workers);
		return NULL;
	}
	fill_shared_memory(workers, spec, parallel, nworkers);
	gpusort_build_workers_launch(&workers->build);
	return workers;
}

GsParallelSort *
gpusort_btree_workers_parallel(const GsBtreeWorkers *workers)
{
	return &workers->shared->parallel;
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
	return gpusort_parallel_sort_failure(&workers->shared->parallel);
}

GsPageQueue *
gpusort_btree_workers_pages(const GsBtreeWorkers *workers)
{
	return gpusort_build_workers_pages(&workers->build);
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

static void
describe_sort(Relation index, const GsWorkersShared *shared, GsSortSpec *spec)
{
	if (!gpusort_index_rows_describe(index, true, spec))
		elog(ERROR, "no operators for an index build");
	spec->memory = shared->memory;
	spec->index_build = true;
	spec->expected_rows = shared->expected_rows;
	spec->expected_width = shared->expected_width;
}

/* Add this worker's share of the rows. */
static void
take_rows(GsBtreeWorker *worker, Relation index, GsWorkersShared *shared)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort rows of a worker",
												  ALLOCSET_DEFAULT_SIZES);
	GsSortCounts page_scan = {.page_scans = 1};
	GsProducer	producer = {
		.parallel = &shared->parallel,
		.next = next_row,
		.arg = worker
	};

	describe_sort(index, shared, &producer.spec);
	worker->slot = MakeSingleTupleTableSlot(producer.spec.tupdesc, &TTSOpsVirtual);
	memset(worker->slot->tts_isnull, 0, producer.spec.tupdesc->natts * sizeof(bool));
	ExecStoreVirtualTuple(worker->slot);
	gpusort_stats_count_sort(shared->parallel.gpu ? GS_KIND_GPU : GS_KIND_CPU, &page_scan);
	gpusort_producer_run(&producer, context);
	ExecDropSingleTupleTableSlot(worker->slot);
	MemoryContextDelete(context);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsWorkersShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	GsBtreeWorker worker = {0};
	GsBuildWorker build;

	gpusort_build_worker_begin(&build, toc);
	worker.info = build.info;
	worker.rows = gpusort_heap_rows_join(build.heap, build.index, build.info,
										 shm_toc_lookup(toc, KEY_SNAPSHOT, true),
										 &shared->blocks);
	take_rows(&worker, build.index, shared);
	gpusort_heap_rows_end(worker.rows);
	gpusort_build_worker_end(&build);
}
