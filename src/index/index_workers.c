/*-------------------------------------------------------------------------
 *
 * index_workers.c
 *		Parallel workers that read a table for an index build.
 *
 * The processes take blocks of the table from a common counter, and put the
 * rows into one GPU session.  The rows arrive there in no particular order, so
 * the TID is an additional sort key.
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
#include "sort/base/sort_stats.h"
#include "sort/gpu/gpu_session.h"
#include "work.h"

/* Keys of the parts of shared memory. */
#define KEY_SHARED		UINT64CONST(1)
#define KEY_SNAPSHOT	UINT64CONST(2)
#define KEY_QUERY		UINT64CONST(3)
#define KEY_WAL_USAGE	UINT64CONST(4)
#define KEY_BUFFER_USAGE UINT64CONST(5)

/*
 * State shared by all processes.  The leader sets everything before it
 * launches the workers.  After that only 'blocks' and 'failure' change, by
 * atomic operations.
 */
typedef struct GsWorkersShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	GsClientHandle handle;
	GsHeapShare blocks;
	pg_atomic_uint32 failure;	/* GsFallback */
} GsWorkersShared;

struct GsIndexWorkers
{
	ParallelContext *context;
	GsWorkersShared *shared;
	GsHeapRows *rows;
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

/* Returns the query text that pg_stat_activity shows for workers. */
static const char *
query_text(void)
{
	return debug_query_string != NULL ? debug_query_string : "";
}

static void
estimate_shared_memory(ParallelContext *context, Snapshot snapshot)
{
	estimate_part(context, sizeof(GsWorkersShared));
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

	workers->shared = make_part(context, KEY_SHARED, sizeof(GsWorkersShared));
	memset(workers->shared, 0, sizeof(GsWorkersShared));
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
	ExitParallelMode();
}

GsIndexWorkers *
gpusort_index_workers_start(Relation heap, Relation index,
							const IndexInfo *info, GsHeapRows *rows,
							GsClientHandle handle, int nworkers)
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
	workers->shared->handle = handle;
	gpusort_heap_rows_share(rows, &workers->shared->blocks);
	LaunchParallelWorkers(context);
	return workers;
}

GsFallback
gpusort_index_workers_finish(GsIndexWorkers *workers)
{
	GsFallback	failure;

	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&workers->buffer_usage[i],
								&workers->wal_usage[i]);
	failure = (GsFallback) pg_atomic_read_u32(&workers->shared->failure);
	gpusort_heap_rows_unshare(workers->rows);
	end_parallel(workers);
	return failure;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* Read this worker's share of the table into the leader's GPU session. */
static void
add_rows(GsWorkersShared *shared, Relation heap, Relation index,
		 IndexInfo *info, GsHeapRows *rows)
{
	GsSortSpec	spec = {0};
	GsSortCounts page_scan = {.page_scans = 1};
	GsGpuSession *session;
	GsHeapRow	row;
	Datum		values[INDEX_MAX_KEYS + 1];
	bool		isnull[INDEX_MAX_KEYS + 1] = {false};
	GsFallback	reason;
	bool		added = true;

	if (!gpusort_index_rows_describe(index, true, &spec))
		elog(ERROR, "no operators for an index build");
	spec.key_plan = gpusort_key_plan_create(&spec.keys,
											GPUSORT_GPU_STRING_WORDS, &reason);
	session = gpusort_gpu_session_attach(&spec, shared->handle);
	gpusort_stats_count_sort(GS_KIND_GPU, &page_scan);
	while (added && gpusort_heap_rows_next(rows, &row, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		values[info->ii_NumIndexAttrs] = gpusort_index_rows_pack_tid(&row);
		added = gpusort_gpu_session_put(session, values, isnull);
	}
	if (!added || !gpusort_gpu_session_flush(session))
		pg_atomic_write_u32(&shared->failure,
							gpusort_gpu_session_failure(session));
}

/* Main function of a worker.  The parallel context finds it by its name. */
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

	/* Take the same locks as the leader. */
	heap = table_open(shared->heap, shared->concurrent ?
					  ShareUpdateExclusiveLock : ShareLock);
	index = index_open(shared->index, shared->concurrent ?
					   RowExclusiveLock : AccessExclusiveLock);
	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;

	InstrStartParallelQuery();
	rows = gpusort_heap_rows_join(heap, index, info, snapshot, &shared->blocks);
	add_rows(shared, heap, index, info, rows);
	gpusort_heap_rows_end(rows);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber],
						  &wal_usage[ParallelWorkerNumber]);

	index_close(index, NoLock);
	table_close(heap, NoLock);
}
