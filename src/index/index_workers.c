/*-------------------------------------------------------------------------
 *
 * index_workers.c
 *		Parallel workers that read a table for an index build.
 *
 * Processes take blocks of the table from a common counter.  What they read is put
 * into one GPU session, where it arrives in no particular order, or merged from
 * runs of all of them: either way, places of rows are one more sort key.
 *
 * Parallel mode ends before the index is written.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

#include "index/index_rows.h"
#include "index/index_workers.h"
#include "sort/gpu_session.h"
#include "sort/sort_session.h"

/* Parts of the shared memory. */
#define KEY_SHARED		UINT64CONST(1)
#define KEY_SNAPSHOT	UINT64CONST(2)
#define KEY_QUERY		UINT64CONST(3)
#define KEY_WAL_USAGE	UINT64CONST(4)
#define KEY_BUFFER_USAGE UINT64CONST(5)

/* For all processes. */
typedef struct GsWorkersShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	GsIntake	intake;
	GsHeapShare blocks;
	pg_atomic_uint32 failure;	/* GsFallback */
	GsSharedRun runs[FLEXIBLE_ARRAY_MEMBER];	/* of each worker */
} GsWorkersShared;

struct GsIndexWorkers
{
	ParallelContext *context;	/* NULL when they have ended */
	GsWorkersShared *shared;
	GsHeapRows *rows;
	GsFallback	failure;		/* when they have ended */
	GsSharedRun *runs;
	int			nworkers;
	WalUsage   *wal_usage;		/* of each worker */
	BufferUsage *buffer_usage;
};

PGDLLEXPORT void gpusort_index_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

static void
estimate_part(ParallelContext *context, Size size)
{
	shm_toc_estimate_chunk(&context->estimator, size);
	shm_toc_estimate_keys(&context->estimator, 1);
}

static void *
make_part(ParallelContext *context, uint64 key, Size size)
{
	void	   *part = shm_toc_allocate(context->toc, size);

	shm_toc_insert(context->toc, key, part);
	return part;
}

static Size
shared_size(int nworkers)
{
	return add_size(offsetof(GsWorkersShared, runs),
					mul_size(nworkers, sizeof(GsSharedRun)));
}

/* What pg_stat_activity shows for workers. */
static const char *
query_text(void)
{
	return debug_query_string != NULL ? debug_query_string : "";
}

static void
estimate_shared_memory(ParallelContext *context, Snapshot snapshot)
{
	estimate_part(context, shared_size(context->nworkers));
	estimate_part(context, strlen(query_text()) + 1);
	estimate_part(context, mul_size(sizeof(WalUsage), context->nworkers));
	estimate_part(context, mul_size(sizeof(BufferUsage), context->nworkers));
	if (snapshot != NULL)
		estimate_part(context, EstimateSnapshotSpace(snapshot));
}

static void
fill_shared_memory(GsIndexWorkers *workers, Snapshot snapshot)
{
	ParallelContext *context = workers->context;
	int			nworkers = context->nworkers;

	workers->shared = make_part(context, KEY_SHARED, shared_size(nworkers));
	memset(workers->shared, 0, shared_size(nworkers));
	pg_atomic_init_u32(&workers->shared->failure, GS_FALLBACK_NONE);
	workers->wal_usage = make_part(context, KEY_WAL_USAGE,
								   mul_size(sizeof(WalUsage), nworkers));
	workers->buffer_usage = make_part(context, KEY_BUFFER_USAGE,
									  mul_size(sizeof(BufferUsage), nworkers));
	strcpy(make_part(context, KEY_QUERY, strlen(query_text()) + 1),
		   query_text());
	if (snapshot != NULL)
		SerializeSnapshot(snapshot,
						  make_part(context, KEY_SNAPSHOT,
									EstimateSnapshotSpace(snapshot)));
}

static void
end_parallel(GsIndexWorkers *workers)
{
	DestroyParallelContext(workers->context);
	workers->context = NULL;
	ExitParallelMode();
}

GsIndexWorkers *
gpusort_index_workers_start(Relation heap, Relation index,
							const IndexInfo *info, GsHeapRows *rows,
							const GsIntake *intake, int nworkers)
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
		return NULL;
	}

	fill_shared_memory(workers, snapshot);
	workers->shared->heap = RelationGetRelid(heap);
	workers->shared->index = RelationGetRelid(index);
	workers->shared->concurrent = info->ii_Concurrent;
	workers->shared->intake = *intake;
	gpusort_heap_rows_share(rows, &workers->shared->blocks);
	LaunchParallelWorkers(context);
	return workers;
}

/* Keep what the workers said, for when their shared memory is gone. */
static void
take_results(GsIndexWorkers *workers)
{
	GsWorkersShared *shared = workers->shared;
	Size		runs_size;

	workers->failure = (GsFallback) pg_atomic_read_u32(&shared->failure);
	workers->nworkers = workers->context->nworkers;
	runs_size = workers->nworkers * sizeof(GsSharedRun);
	workers->runs = palloc(runs_size);
	memcpy(workers->runs, shared->runs, runs_size);
}

void
gpusort_index_workers_finish(GsIndexWorkers *workers)
{
	ParallelContext *context = workers->context;

	if (context == NULL)
		return;
	WaitForParallelWorkersToFinish(context);
	for (int i = 0; i < context->nworkers_launched; i++)
		InstrAccumParallelQuery(&workers->buffer_usage[i],
								&workers->wal_usage[i]);
	take_results(workers);
	gpusort_heap_rows_unshare(workers->rows);
	end_parallel(workers);
}

GsFallback
gpusort_index_workers_failure(const GsIndexWorkers *workers)
{
	return workers->failure;
}

const GsSharedRun *
gpusort_index_workers_run(const GsIndexWorkers *workers, int number)
{
	return number < workers->nworkers ? &workers->runs[number] : NULL;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* Put rows into the leader's GPU session as long as there are any. */
static void
fill_gpu_session(GsWorkersShared *shared, const GsSessionSpec *spec,
				 GsHeapRows *rows)
{
	TupleTableSlot *slot = gpusort_index_rows_slot(spec);
	GsGpuSession *session = gpusort_gpu_session_attach(spec,
													   shared->intake.handle);
	bool		added = true;

	while (added && gpusort_index_rows_next(rows, slot))
		added = gpusort_gpu_session_put(session, slot->tts_values,
										slot->tts_isnull);
	if (!added || !gpusort_gpu_session_flush(session))
		pg_atomic_write_u32(&shared->failure,
							gpusort_gpu_session_failure(session));
}

/* The input of a worker's own sort. */
typedef struct GsWorkerInput
{
	GsHeapRows *rows;
	TupleTableSlot *slot;
} GsWorkerInput;

/* GsInput.next */
static TupleTableSlot *
next_row(void *arg)
{
	GsWorkerInput *input = arg;

	return gpusort_index_rows_next(input->rows, input->slot) ? input->slot :
		NULL;
}

/* Sort rows, and write them as a run. */
static void
write_run(GsWorkersShared *shared, GsSessionSpec *spec, GsHeapRows *rows)
{
	GsWorkerInput input = {.rows = rows,.slot = gpusort_index_rows_slot(spec)};
	GsRunTarget target = {
		.set = shared->intake.runs,
		.producer = ParallelWorkerNumber
	};
	GsSortSession *session;

	spec->memory = shared->intake.memory;
	spec->input.next = next_row;
	spec->input.arg = &input;
	spec->target = &target;
	spec->nested = true;
	spec->index_build = true;
	session = gpusort_session_begin(spec);
	gpusort_session_sort(session);
	shared->runs[ParallelWorkerNumber] = *gpusort_session_shared_run(session);
	gpusort_session_end(session);
}

/* Read rows, and put them where they are to go. */
static void
take_rows(GsWorkersShared *shared, Relation index, GsHeapRows *rows)
{
	bool		gpu = shared->intake.kind == GS_INTAKE_GPU;
	GsSessionSpec spec = {0};
	GsSortCounts page_scan = {.page_scans = 1};
	GsFallback	reason;

	if (!gpusort_index_rows_describe(index, true, &spec))
		elog(ERROR, "no operators for an index build");
	spec.key_plan = gpusort_key_plan_create(&spec.keys,
											gpu ? GPUSORT_GPU_STRING_WORDS : 1,
											&reason);
	if (spec.key_plan == NULL)
		elog(ERROR, "keys of an index cannot be encoded");
	gpusort_stats_count_sort(gpu ? GS_SESSION_GPU : GS_SESSION_CPU, &page_scan);
	if (gpu)
		fill_gpu_session(shared, &spec, rows);
	else
		write_run(shared, &spec, rows);
}

/* What a worker does; found by its name. */
void
gpusort_index_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsWorkersShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	void	   *snapshot = shm_toc_lookup(toc, KEY_SNAPSHOT, true);
	WalUsage   *wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsHeapRows *rows;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, false);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* The locks that the leader has. */
	heap = table_open(shared->heap, shared->concurrent ?
					  ShareUpdateExclusiveLock : ShareLock);
	index = index_open(shared->index, shared->concurrent ?
					   RowExclusiveLock : AccessExclusiveLock);
	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;

	InstrStartParallelQuery();
	rows = gpusort_heap_rows_join(heap, info, snapshot, &shared->blocks);
	take_rows(shared, index, rows);
	gpusort_heap_rows_end(rows);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber],
						  &wal_usage[ParallelWorkerNumber]);

	index_close(index, NoLock);
	table_close(heap, NoLock);
}
