/*-------------------------------------------------------------------------
 *
 * gin_workers.c
 *		Parallel workers that help to build a GIN index.
 *
 * Extraction takes most of the time of a build and is shared.  The leader alone merges the
 * runs and makes the pages.
 *
 * The scan must not begin in the middle of the table, as a synchronized scan would: the TIDs
 * of a process have to come in the order of their blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/gin.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_proc.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "index/gin_collect.h"
#include "index/gin_workers.h"
#include "index/shared_parts.h"
#include "work.h"

/* Keys of the parts of shared memory. */
#define KEY_SHARED		UINT64CONST(1)
#define KEY_SCAN		UINT64CONST(2)
#define KEY_QUERY		UINT64CONST(3)
#define KEY_RESULTS		UINT64CONST(4)

/* Set by the leader before it starts the workers. */
typedef struct GsGinShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	Size		memory;			/* of each process */
	GsRunSetHandle runs;
} GsGinShared;

/* Set by a worker before it ends. */
typedef struct GsGinResult
{
	GsGinRun	run;
	GsFallback	overflow;
	double		nlive;
	bool		broken_chains;
	WalUsage	wal_usage;
	BufferUsage buffer_usage;
} GsGinResult;

struct GsGinWorkers
{
	ParallelContext *context;	/* NULL when they have ended */
	Snapshot	snapshot;		/* SnapshotAny, or registered */
	ParallelTableScanDesc scan;
	GsRunSetHandle runs;
	GsGinResult *results;
	GsRunTarget *targets;
	int			nworkers;		/* that have started */
};

PGDLLEXPORT void gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

/* Can workers call the functions of the index's operator classes? */
static bool
is_parallel_safe(Relation index)
{
	const int	functions[] = {GIN_COMPARE_PROC, GIN_EXTRACTVALUE_PROC};

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		for (int k = 0; k < lengthof(functions); k++)
		{
			Oid			function = index_getprocid(index, i + 1, functions[k]);

			if (OidIsValid(function) && func_parallel(function) != PROPARALLEL_SAFE)
				return false;
		}
	return true;
}

int
gpusort_gin_workers_plan(Relation heap, Relation index, const IndexInfo *info)
{
	if (info->ii_ParallelWorkers > 0)
		return info->ii_ParallelWorkers;
	if (max_parallel_maintenance_workers == 0 || IsInParallelMode() ||
		RelationUsesLocalBuffers(heap) || !is_parallel_safe(index))
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
}

static void
end_parallel(GsGinWorkers *workers)
{
	if (workers->snapshot != SnapshotAny)
		UnregisterSnapshot(workers->snapshot);
	DestroyParallelContext(workers->context);
	workers->context = NULL;
	ExitParallelMode();
}

static void
fill_shared_memory(GsGinWorkers *workers, Relation heap, Relation index,
				   const IndexInfo *info, Size memory)
{
	ParallelContext *context = workers->context;
	GsGinShared *shared = gpusort_shared_part_make(context, KEY_SHARED, sizeof(GsGinShared));

	workers->runs = gpusort_run_set_handle(gpusort_run_set_create());
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = info->ii_Concurrent;
	shared->memory = memory;
	shared->runs = workers->runs;
	workers->scan = gpusort_shared_part_make(context, KEY_SCAN,
											 table_parallelscan_estimate(heap, workers->snapshot));
	table_parallelscan_initialize(heap, workers->scan, workers->snapshot);
	workers->scan->phs_syncscan = false;
	workers->results = gpusort_shared_part_make(context, KEY_RESULTS,
												context->nworkers * sizeof(GsGinResult));
	memset(workers->results, 0, context->nworkers * sizeof(GsGinResult));
	strcpy(gpusort_shared_part_make(context, KEY_QUERY, strlen(gpusort_shared_query_text()) + 1),
		   gpusort_shared_query_text());
}

GsGinWorkers *
gpusort_gin_workers_start(Relation heap, Relation index, const IndexInfo *info,
						  int nworkers, Size memory)
{
	GsGinWorkers *workers = palloc0(sizeof(GsGinWorkers));
	ParallelContext *context;

	EnterParallelMode();
	context = CreateParallelContext("pg_gpusort", "gpusort_gin_worker_main", nworkers);
	workers->context = context;
	workers->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	gpusort_shared_part_estimate(context, sizeof(GsGinShared));
	gpusort_shared_part_estimate(context, table_parallelscan_estimate(heap, workers->snapshot));
	gpusort_shared_part_estimate(context, strlen(gpusort_shared_query_text()) + 1);
	gpusort_shared_part_estimate(context, mul_size(sizeof(GsGinResult), nworkers));
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		end_parallel(workers);
		pfree(workers);
		return NULL;
	}
	fill_shared_memory(workers, heap, index, info, memory);
	LaunchParallelWorkers(context);
	return workers;
}

TableScanDesc
gpusort_gin_workers_scan(GsGinWorkers *workers, Relation heap)
{
	return GPUSORT_BEGIN_SHARED_SCAN(heap, workers->scan);
}

void
gpusort_gin_workers_await(GsGinWorkers *workers, IndexInfo *info, double *nlive,
						  GsFallback *overflow)
{
	GsGinResult *results;

	WaitForParallelWorkersToFinish(workers->context);
	workers->nworkers = workers->context->nworkers_launched;
	results = palloc(Max(workers->nworkers, 1) * sizeof(GsGinResult));
	memcpy(results, workers->results, workers->nworkers * sizeof(GsGinResult));
	workers->results = results;
	for (int i = 0; i < workers->nworkers; i++)
	{
		InstrAccumParallelQuery(&results[i].buffer_usage, &results[i].wal_usage);
		*nlive += results[i].nlive;
		info->ii_BrokenHotChain |= results[i].broken_chains;
		if (results[i].overflow != GS_FALLBACK_NONE)
			*overflow = results[i].overflow;
	}
	end_parallel(workers);
}

uint32
gpusort_gin_workers_open(GsGinWorkers *workers, GsGinOrder *order, GsGinRuns ***runs)
{
	*runs = palloc(Max(workers->nworkers, 1) * sizeof(GsGinRuns *));
	workers->targets = palloc(Max(workers->nworkers, 1) * sizeof(GsRunTarget));
	for (int i = 0; i < workers->nworkers; i++)
	{
		workers->targets[i].set = workers->runs;
		workers->targets[i].producer = i;
		(*runs)[i] = gpusort_gin_runs_open(order, &workers->targets[i],
										   &workers->results[i].run);
	}
	return workers->nworkers;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* Collect the keys of this worker's share of the table, and write them as one run. */
static void
write_keys(const GsGinShared *shared, Relation heap, Relation index, TableScanDesc scan,
		   GsGinResult *result)
{
	IndexInfo  *info = BuildIndexInfo(index);
	GsRunTarget target = {.set = shared->runs,.producer = ParallelWorkerNumber};
	GsGinCollection *collection;
	GsGinRuns  *runs;

	info->ii_Concurrent = shared->concurrent;
	collection = gpusort_gin_collect(heap, index, info, scan, false, shared->memory);
	runs = gpusort_gin_runs_create(collection->order, &target);
	gpusort_gin_merge_write(collection->order, collection->keys, collection->runs,
							collection->run_memory, runs);
	result->run = gpusort_gin_runs_get(runs, 0);
	result->overflow = collection->overflow;
	result->nlive = collection->nlive;
	result->broken_chains = info->ii_BrokenHotChain;
	gpusort_gin_runs_end(runs);
	gpusort_gin_collection_end(collection);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc)
{
	const GsGinShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	GsGinResult *results = shm_toc_lookup(toc, KEY_RESULTS, false);
	GsGinResult *result = &results[ParallelWorkerNumber];
	Relation	heap;
	Relation	index;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, false);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* Take the same locks as the leader. */
	heap = table_open(shared->heap, shared->concurrent ?
					  ShareUpdateExclusiveLock : ShareLock);
	index = index_open(shared->index, shared->concurrent ?
					   RowExclusiveLock : AccessExclusiveLock);
	InstrStartParallelQuery();
	write_keys(shared, heap, index,
			   GPUSORT_BEGIN_SHARED_SCAN(heap, shm_toc_lookup(toc, KEY_SCAN, false)),
			   result);
	InstrEndParallelQuery(&result->buffer_usage, &result->wal_usage);
	index_close(index, NoLock);
	table_close(heap, NoLock);
}
