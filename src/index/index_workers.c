/*-------------------------------------------------------------------------
 *
 * index_workers.c
 *		Parallel workers that help with an index build.
 *
 * The processes take blocks of the table from a common counter.  They put the
 * rows into one GPU session or, without a GPU, sort them together.  Rows of several
 * processes come in no particular order, so the TID is an additional sort key.  Without a
 * GPU, workers may still sort the last rows while the leader makes the first pages.
 *
 * Then the workers write the pages that the leader makes, until it has made all.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"

#include "index/index_rows.h"
#include "index/index_workers.h"
#include "index/page_queue.h"
#include "index/shared_parts.h"
#include "sort/base/sort_stats.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/shared_sort.h"
#include "sort/sort.h"
#include "work.h"

/* Keys of the parts of shared memory. */
#define KEY_SHARED		UINT64CONST(1)
#define KEY_SNAPSHOT	UINT64CONST(2)
#define KEY_QUERY		UINT64CONST(3)
#define KEY_WAL_USAGE	UINT64CONST(4)
#define KEY_BUFFER_USAGE UINT64CONST(5)
#define KEY_RUNS		UINT64CONST(6)
#define KEY_PAGES		UINT64CONST(7)

/*
 * State shared by all processes.  The leader sets everything before it
 * launches the workers.  After that only the last four change, by atomic operations.
 */
typedef struct GsWorkersShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	GsIndexTarget target;
	double		expected_rows;	/* of each process */
	int			expected_width;
	Size		memory;			/* of each process */
	GsHeapShare blocks;
	pg_atomic_uint32 failure;	/* GsFallback */
	pg_atomic_uint32 n_done;	/* workers that have put or sorted all of
								 * their rows */
	ConditionVariable worker_done;
} GsWorkersShared;

struct GsIndexWorkers
{
	ParallelContext *context;
	GsWorkersShared *shared;
	GsHeapRows *rows;
	GsPageQueue *pages;
	bool		collected;
	GsSharedRun *runs;			/* of each worker; no rows if it wrote none */
	WalUsage   *wal_usage;		/* likewise */
	BufferUsage *buffer_usage;
	int			nruns;			/* those in 'runs', after waiting for them */
};

PGDLLEXPORT void gpusort_index_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

static void
estimate_shared_memory(ParallelContext *context, Snapshot snapshot)
{
	gpusort_shared_part_estimate(context, sizeof(GsWorkersShared));
	gpusort_shared_part_estimate(context, strlen(gpusort_shared_query_text()) + 1);
	gpusort_shared_part_estimate(context, mul_size(sizeof(GsSharedRun), context->nworkers));
	gpusort_shared_part_estimate(context, mul_size(sizeof(WalUsage), context->nworkers));
	gpusort_shared_part_estimate(context, mul_size(sizeof(BufferUsage), context->nworkers));
	gpusort_shared_part_estimate(context, gpusort_page_queue_bytes(true));
	if (snapshot != NULL)
		gpusort_shared_part_estimate(context, EstimateSnapshotSpace(snapshot));
}

static void
fill_shared_memory(GsIndexWorkers *workers, Relation index, Snapshot snapshot)
{
	ParallelContext *context = workers->context;
	int			nworkers = context->nworkers;

	workers->shared = gpusort_shared_part_make(context, KEY_SHARED, sizeof(GsWorkersShared));
	memset(workers->shared, 0, sizeof(GsWorkersShared));
	pg_atomic_init_u32(&workers->shared->failure, GS_FALLBACK_NONE);
	pg_atomic_init_u32(&workers->shared->n_done, 0);
	ConditionVariableInit(&workers->shared->worker_done);
	workers->pages =
		gpusort_page_queue_init(gpusort_shared_part_make(context, KEY_PAGES,
														 gpusort_page_queue_bytes(true)),
								true, RelationNeedsWAL(index));
	workers->runs = gpusort_shared_part_make(context, KEY_RUNS,
											 mul_size(sizeof(GsSharedRun), nworkers));
	memset(workers->runs, 0, mul_size(sizeof(GsSharedRun), nworkers));
	workers->wal_usage = gpusort_shared_part_make(context, KEY_WAL_USAGE,
												  mul_size(sizeof(WalUsage), nworkers));
	workers->buffer_usage = gpusort_shared_part_make(context, KEY_BUFFER_USAGE,
													 mul_size(sizeof(BufferUsage), nworkers));
	strcpy(gpusort_shared_part_make(context, KEY_QUERY, strlen(gpusort_shared_query_text()) + 1),
		   gpusort_shared_query_text());
	if (snapshot != NULL)
		SerializeSnapshot(snapshot,
						  gpusort_shared_part_make(context, KEY_SNAPSHOT,
												   EstimateSnapshotSpace(snapshot)));
}

static void
end_parallel(GsIndexWorkers *workers)
{
	DestroyParallelContext(workers->context);
	ExitParallelMode();
}

GsIndexWorkers *
gpusort_index_workers_start(Relation heap, Relation index,
							const IndexInfo *info, GsHeapRows *rows,
							const GsSortSpec *spec,
							const GsIndexTarget *target, int nworkers)
{
	GsIndexWorkers *workers = palloc0(sizeof(GsIndexWorkers));
	Snapshot	snapshot = gpusort_heap_rows_snapshot(rows);
	ParallelContext *context;

	EnterParallelMode();
	context = CreateParallelContext("pg_gpusort", "gpusort_index_worker_main",
									nworkers);
	workers->context = context;
	workers->rows = rows;
	estimate_shared_memory(context, snapshot);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		end_parallel(workers);
		pfree(workers);
		return NULL;
	}

	fill_shared_memory(workers, index, snapshot);
	workers->shared->heap = RelationGetRelid(heap);
	workers->shared->index = RelationGetRelid(index);
	workers->shared->concurrent = info->ii_Concurrent;
	workers->shared->target = *target;
	workers->shared->expected_rows = spec->expected_rows / (nworkers + 1);
	workers->shared->expected_width = spec->expected_width;
	workers->shared->memory = spec->memory;
	gpusort_heap_rows_share(rows, &workers->shared->blocks);
	LaunchParallelWorkers(context);
	return workers;
}

void
gpusort_index_workers_collect(GsIndexWorkers *workers)
{
	if (!workers->collected)
		gpusort_heap_rows_unshare(workers->rows);
	workers->collected = true;
}

/* Keep the runs of those workers that have written any. */
static void
keep_runs(GsIndexWorkers *workers)
{
	int			nworkers = workers->context->nworkers;
	GsSharedRun *runs = palloc(nworkers * sizeof(GsSharedRun));

	for (int i = 0; i < nworkers; i++)
		if (workers->runs[i].nrows > 0)
			runs[workers->nruns++] = workers->runs[i];
	workers->runs = runs;
}

GsFallback
gpusort_index_workers_await(GsIndexWorkers *workers)
{
	GsWorkersShared *shared = workers->shared;
	ParallelContext *context = workers->context;

	/* This raises an error if one of them could not start. */
	WaitForParallelWorkersToAttach(context);
	while (pg_atomic_read_u32(&shared->n_done) < context->nworkers_launched)
		ConditionVariableSleep(&shared->worker_done, gpusort_shared_wait_event());
	ConditionVariableCancelSleep();
	pg_read_barrier();
	gpusort_index_workers_collect(workers);
	keep_runs(workers);
	return (GsFallback) pg_atomic_read_u32(&shared->failure);
}

GsPageQueue *
gpusort_index_workers_pages(const GsIndexWorkers *workers)
{
	return workers->context->nworkers_launched > 0 ? workers->pages : NULL;
}

void
gpusort_index_workers_finish(GsIndexWorkers *workers)
{
	gpusort_page_queue_close(workers->pages);
	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&workers->buffer_usage[i],
								&workers->wal_usage[i]);
	gpusort_index_workers_collect(workers);
	end_parallel(workers);
}

const GsSharedRun *
gpusort_index_workers_run(const GsIndexWorkers *workers, int number)
{
	return number < workers->nruns ? &workers->runs[number] : NULL;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* What this worker reads, and where it puts it. */
typedef struct GsIndexWorker
{
	GsWorkersShared *shared;
	IndexInfo  *info;
	GsHeapRows *rows;
	GsSortSpec	spec;
	TupleTableSlot *slot;		/* for a row */
} GsIndexWorker;

/* GsInput.next: returns the next row of this worker's share of the table. */
static TupleTableSlot *
next_row(void *arg)
{
	GsIndexWorker *worker = arg;
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
make_key_plan(const GsIndexWorker *worker, int string_words)
{
	GsFallback	reason;

	return gpusort_key_plan_create(&worker->spec.keys, string_words, &reason);
}

/* Put the rows into the leader's GPU session, and leave that. */
static void
fill_gpu_session(GsIndexWorker *worker)
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
		added = gpusort_gpu_session_put(session, slot->tts_values, slot->tts_isnull);
	}
	if (!added || !gpusort_gpu_session_flush(session))
		pg_atomic_write_u32(&shared->failure,
							gpusort_gpu_session_failure(session));
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Sort the rows together with the other processes, or else write them as a run. */
static void
sort_rows(GsIndexWorker *worker, GsSharedRun *run)
{
	GsWorkersShared *shared = worker->shared;
	GsSortSpec *spec = &worker->spec;
	GsRunTarget target = {
		.set = shared->target.runs,
		.producer = ParallelWorkerNumber
	};
	GsSort	   *sort;

	spec->shared = shared->target.shared;
	spec->process = ParallelWorkerNumber + 1;
	spec->key_plan = make_key_plan(worker, spec->shared == NULL ? 1 :
								   gpusort_shared_sort_string_words(spec->shared));
	spec->input.next = next_row;
	spec->input.arg = worker;
	spec->target = &target;
	spec->nested = true;
	spec->index_build = true;
	spec->memory = shared->memory;
	spec->expected_rows = shared->expected_rows;
	spec->expected_width = shared->expected_width;
	sort = gpusort_sort_begin(spec);
	if (gpusort_sort_attach(sort))
	{
		gpusort_sort_perform(sort);
		*run = *gpusort_sort_shared_run(sort);
	}
	gpusort_sort_end(sort);
}

static void
take_rows(GsIndexWorker *worker, Relation index, GsSharedRun *run)
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
gpusort_index_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsWorkersShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	void	   *snapshot = shm_toc_lookup(toc, KEY_SNAPSHOT, true);
	WalUsage   *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	GsSharedRun *runs = shm_toc_lookup(toc, KEY_RUNS, false);
	GsIndexWorker worker = {.shared = shared};
	Relation	heap;
	Relation	index;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, false);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* Take the same locks as the leader. */
	heap = table_open(shared->heap, shared->concurrent ?
					  ShareUpdateExclusiveLock : ShareLock);
	index = index_open(shared->index, shared->concurrent ?
					   RowExclusiveLock : AccessExclusiveLock);
	worker.info = BuildIndexInfo(index);
	worker.info->ii_Concurrent = shared->concurrent;

	InstrStartParallelQuery();
	worker.rows = gpusort_heap_rows_join(heap, index, worker.info, snapshot,
										 &shared->blocks);
	take_rows(&worker, index, &runs[ParallelWorkerNumber]);
	gpusort_heap_rows_end(worker.rows);
	pg_write_barrier();
	pg_atomic_fetch_add_u32(&shared->n_done, 1);
	ConditionVariableSignal(&shared->worker_done);
	gpusort_page_queue_work(shm_toc_lookup(toc, KEY_PAGES, false), index);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber],
						  &wal_usage[ParallelWorkerNumber]);

	index_close(index, NoLock);
	table_close(heap, NoLock);
}
