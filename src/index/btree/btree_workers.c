/*-------------------------------------------------------------------------
 *
 * btree_workers.c
 *		Parallel workers that help with an index build.
 *
 * The processes take blocks of the table from a common counter.  They put the
 * rows into one GPU session or, without a GPU, sort them together.  Rows of several
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
#include "index/btree/btree_workers.h"
#include "sort/base/sort_stats.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort.h"
#include "sort/team.h"
#include "work.h"

/* Keys of the parts of shared memory. */
#define KEY_SHARED		GPUSORT_BUILD_FIRST_KEY
#define KEY_SNAPSHOT	(GPUSORT_BUILD_FIRST_KEY + 1)
#define KEY_RUNS		(GPUSORT_BUILD_FIRST_KEY + 2)

/*
 * State shared by all processes.  The leader sets everything before it
 * launches the workers.  After that only the last two change, by atomic operations.
 */
typedef struct GsWorkersShared
{
	GsBtreeTarget target;
	double		expected_rows;	/* of each process */
	int			expected_width;
	Size		memory;			/* of each process */
	GsHeapShare blocks;
	pg_atomic_uint32 failure;	/* GsFallback */
} GsWorkersShared;

struct GsBtreeWorkers
{
	GsBuildWorkers build;
	GsWorkersShared *shared;
	GsHeapRows *rows;
	bool		collected;
	GsSharedRun *runs;			/* of each worker; no rows if it wrote none */
	int			nruns;			/* those in 'runs', after waiting for them */
};

PGDLLEXPORT void gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

static void
fill_shared_memory(GsBtreeWorkers *workers, const GsSortSpec *spec,
				   const GsBtreeTarget *target, int nworkers)
{
	Snapshot	snapshot = gpusort_heap_rows_snapshot(workers->rows);
	GsWorkersShared *shared = gpusort_build_workers_make(&workers->build, KEY_SHARED,
														 sizeof(GsWorkersShared));

	shared->target = *target;
	shared->expected_rows = spec->expected_rows / (nworkers + 1);
	shared->expected_width = spec->expected_width;
	shared->memory = spec->memory;
	gpusort_heap_rows_share(workers->rows, &shared->blocks);
	pg_atomic_init_u32(&shared->failure, GS_FALLBACK_NONE);
	workers->shared = shared;
	workers->runs = gpusort_build_workers_make(&workers->build, KEY_RUNS,
											   mul_size(sizeof(GsSharedRun), nworkers));
	memset(workers->runs, 0, mul_size(sizeof(GsSharedRun), nworkers));
	if (snapshot != NULL)
		SerializeSnapshot(snapshot,
						  gpusort_build_workers_make(&workers->build, KEY_SNAPSHOT,
													 EstimateSnapshotSpace(snapshot)));
}

GsBtreeWorkers *
gpusort_btree_workers_start(Relation heap, Relation index,
							const IndexInfo *info, GsHeapRows *rows,
							const GsSortSpec *spec,
							const GsBtreeTarget *target, int nworkers)
{
	GsBtreeWorkers *workers = palloc0(sizeof(GsBtreeWorkers));
	Snapshot	snapshot = gpusort_heap_rows_snapshot(rows);

	workers->rows = rows;
	gpusort_build_workers_create(&workers->build, "gpusort_btree_worker_main", nworkers);
	gpusort_build_workers_estimate(&workers->build, sizeof(GsWorkersShared));
	gpusort_build_workers_estimate(&workers->build, mul_size(sizeof(GsSharedRun), nworkers));
	if (snapshot != NULL)
		gpusort_build_workers_estimate(&workers->build, EstimateSnapshotSpace(snapshot));
	if (!gpusort_build_workers_allocate(&workers->build, heap, index, info))
	{
		pfree(workers);
		return NULL;
	}
	fill_shared_memory(workers, spec, target, nworkers);
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

/* Keep the runs of those workers that have written any. */
static void
keep_runs(GsBtreeWorkers *workers, int nworkers)
{
	GsSharedRun *runs = palloc(Max(nworkers, 1) * sizeof(GsSharedRun));

	for (int i = 0; i < nworkers; i++)
		if (workers->runs[i].nrows > 0)
			runs[workers->nruns++] = workers->runs[i];
	workers->runs = runs;
}

GsFallback
gpusort_btree_workers_await(GsBtreeWorkers *workers)
{
	int			nworkers = gpusort_build_workers_await(&workers->build);

	gpusort_btree_workers_collect(workers);
	keep_runs(workers, nworkers);
	return (GsFallback) pg_atomic_read_u32(&workers->shared->failure);
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

const GsSharedRun *
gpusort_btree_workers_run(const GsBtreeWorkers *workers, int number)
{
	return number < workers->nruns ? &workers->runs[number] : NULL;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* What this worker reads, and where it puts it. */
typedef struct GsBtreeWorker
{
	GsWorkersShared *shared;
	IndexInfo  *info;
	GsHeapRows *rows;
	GsSortSpec	spec;
	TupleTableSlot *slot;		/* for a row */
} GsBtreeWorker;

/* Returns the next row of this worker's share of the table, or NULL. */
static TupleTableSlot *
next_row(GsBtreeWorker *worker)
{
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

static const GsKeyPlan *
make_key_plan(const GsBtreeWorker *worker, int string_words)
{
	return gpusort_sort_plan_leader_keys(&worker->spec, string_words);
}

/* Put the rows into the leader's GPU sessions, and leave these. */
static void
fill_gpu_session(GsBtreeWorker *worker)
{
	GsWorkersShared *shared = worker->shared;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort session of a worker",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsGpuSession *session;
	TupleTableSlot *slot;
	bool		added = true;

	worker->spec.key_plan = make_key_plan(worker, GPUSORT_GPU_STRING_WORDS);
	session = gpusort_gpu_session_attach(&worker->spec, shared->target.handle);
	while (added && (slot = next_row(worker)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		added = gpusort_gpu_session_put(session, slot->tts_values,
										slot->tts_isnull);
	}
	if (!added || !gpusort_gpu_session_flush_shared(session))
		pg_atomic_write_u32(&shared->failure,
							gpusort_gpu_session_failure(session));
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Sort the rows together with the other processes, or else write them as a run. */
static void
sort_rows(GsBtreeWorker *worker, GsSharedRun *run)
{
	GsWorkersShared *shared = worker->shared;
	GsSortSpec *spec = &worker->spec;
	GsRunTarget target = {
		.set = shared->target.runs,
		.producer = ParallelWorkerNumber
	};
	TupleTableSlot *slot;
	GsSort	   *sort;

	spec->team = shared->target.team;
	spec->process = ParallelWorkerNumber + 1;
	spec->memory = shared->memory;
	spec->key_plan = make_key_plan(worker, spec->team == NULL ? 1 :
								   gpusort_team_string_words(spec->team));
	spec->target = &target;
	spec->nested = true;
	spec->index_build = true;
	spec->expected_rows = shared->expected_rows;
	spec->expected_width = shared->expected_width;
	sort = gpusort_sort_begin(spec);
	if (gpusort_sort_attach(sort))
	{
		while ((slot = next_row(worker)) != NULL)
		{
			CHECK_FOR_INTERRUPTS();
			(void) gpusort_sort_add(sort, slot);
		}
		if (!gpusort_sort_finish(sort))
			elog(ERROR, "rows of a sort are lost without a GPU");
		*run = *gpusort_sort_shared_run(sort);
	}
	gpusort_sort_end(sort);
}

static void
take_rows(GsBtreeWorker *worker, Relation index, GsSharedRun *run)
{
	GsSortCounts page_scan = {.page_scans = 1};
	bool		gpu = worker->shared->target.gpu;

	if (!gpusort_index_rows_describe(index, true, &worker->spec))
		elog(ERROR, "no operators for an index build");
	worker->slot = MakeSingleTupleTableSlot(worker->spec.tupdesc, &TTSOpsVirtual);
	memset(worker->slot->tts_isnull, 0, worker->spec.tupdesc->natts * sizeof(bool));
	ExecStoreVirtualTuple(worker->slot);
	gpusort_stats_count_sort(gpu ? GS_KIND_GPU : GS_KIND_CPU, &page_scan);
	if (gpu)
		fill_gpu_session(worker);
	else
		sort_rows(worker, run);
	ExecDropSingleTupleTableSlot(worker->slot);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsWorkersShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	GsSharedRun *runs = shm_toc_lookup(toc, KEY_RUNS, false);
	GsBtreeWorker worker = {.shared = shared};
	GsBuildWorker build;

	gpusort_build_worker_begin(&build, toc);
	worker.info = build.info;
	worker.rows = gpusort_heap_rows_join(build.heap, build.index, build.info,
										 shm_toc_lookup(toc, KEY_SNAPSHOT, true),
										 &shared->blocks);
	take_rows(&worker, build.index, &runs[ParallelWorkerNumber]);
	gpusort_heap_rows_end(worker.rows);
	gpusort_build_worker_end(&build);
}
