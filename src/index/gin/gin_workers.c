/*-------------------------------------------------------------------------
 *
 * gin_workers.c
 *		Parallel workers that help to build a GIN index.
 *
 * Extraction takes most of the time of a build and is shared.  The leader alone merges the
 * runs and makes the pages, which all processes write.
 *
 * The scan must not begin in the middle of the table, as a synchronized scan would: the TIDs
 * of a process have to come in the order of their blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/gin.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "index/base/build_workers.h"
#include "index/gin/gin_collect.h"
#include "index/gin/gin_workers.h"
#include "work.h"

/* Keys of the parts of shared memory. */
#define KEY_SHARED		GPUSORT_BUILD_FIRST_KEY
#define KEY_SCAN		(GPUSORT_BUILD_FIRST_KEY + 1)
#define KEY_RESULTS		(GPUSORT_BUILD_FIRST_KEY + 2)

/* Set by the leader before it starts the workers. */
typedef struct GsGinShared
{
	Size		memory;			/* of each process */
	GsRunSetHandle runs;
} GsGinShared;

/* Set by a worker when it has read its rows. */
typedef struct GsGinResult
{
	GsGinRun	run;
	GsFallback	overflow;
	double		nlive;
	bool		broken_chains;
} GsGinResult;

struct GsGinWorkers
{
	GsBuildWorkers build;
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

/* check_function_callback: is the function not written in C? */
static bool
is_not_in_c(Oid function, void *context)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			language;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language != INTERNALlanguageId && language != ClanguageId;
}

/* Does an expression call a function that is not written in C? */
static bool
calls_others(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return check_functions_in_node(node, is_not_in_c, NULL) ||
		expression_tree_walker(node, calls_others, context);
}

/* Returns the function that compares keys of a column, from 0. */
static Oid
comparison_of(Relation index, int column)
{
	Oid			function = index_getprocid(index, column + 1, GIN_COMPARE_PROC);
	Oid			type = TupleDescAttr(RelationGetDescr(index), column)->atttypid;

	return OidIsValid(function) ? function :
		lookup_type_cache(type, TYPECACHE_CMP_PROC)->cmp_proc;
}

static bool
is_usable(Oid function)
{
	return OidIsValid(function) && func_parallel(function) == PROPARALLEL_SAFE &&
		!is_not_in_c(function, NULL);
}

/*
 * Can workers call the functions of the index?  Those in other languages than C are often
 * marked as parallel safe without being so, and must not let a build fail that PostgreSQL
 * does in one process.  Whether the others are marked, plan_create_index_workers() checks,
 * except for those of operator classes.
 */
static bool
is_for_workers(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!is_usable(comparison_of(index, i)) ||
			!is_usable(index_getprocid(index, i + 1, GIN_EXTRACTVALUE_PROC)))
			return false;
	return !calls_others((Node *) RelationGetIndexExpressions(index), NULL) &&
		!calls_others((Node *) RelationGetIndexPredicate(index), NULL);
}

/* Returns how many workers PostgreSQL plans or, before PostgreSQL 18, would plan for a btree. */
static int
plan_workers(Relation heap, Relation index, const IndexInfo *info)
{
	if (info->ii_ParallelWorkers > 0)
		return info->ii_ParallelWorkers;
	if (max_parallel_maintenance_workers == 0 || IsInParallelMode() ||
		RelationUsesLocalBuffers(heap) || !is_for_workers(index))
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
}

int
gpusort_gin_workers_plan(Relation heap, Relation index, const IndexInfo *info)
{
	return gpusort_build_workers_useful(heap, plan_workers(heap, index, info));
}

static void
fill_shared_memory(GsGinWorkers *workers, Relation heap, int nworkers, Size memory)
{
	GsBuildWorkers *build = &workers->build;
	Size		scan_bytes = table_parallelscan_estimate(heap, workers->snapshot);
	GsGinShared *shared = gpusort_build_workers_make(build, KEY_SHARED, sizeof(GsGinShared));

	workers->runs = gpusort_run_set_handle(gpusort_run_set_create());
	shared->memory = memory;
	shared->runs = workers->runs;
	workers->scan = gpusort_build_workers_make(build, KEY_SCAN, scan_bytes);
	table_parallelscan_initialize(heap, workers->scan, workers->snapshot);
	workers->scan->phs_syncscan = false;
	workers->results = gpusort_build_workers_make(build, KEY_RESULTS,
												  mul_size(sizeof(GsGinResult), nworkers));
	memset(workers->results, 0, mul_size(sizeof(GsGinResult), nworkers));
}

static void
forget_snapshot(GsGinWorkers *workers)
{
	if (workers->snapshot != SnapshotAny)
		UnregisterSnapshot(workers->snapshot);
}

GsGinWorkers *
gpusort_gin_workers_start(Relation heap, Relation index, const IndexInfo *info,
						  int nworkers, Size memory)
{
	GsGinWorkers *workers = palloc0(sizeof(GsGinWorkers));
	GsBuildWorkers *build = &workers->build;

	gpusort_build_workers_create(build, "gpusort_gin_worker_main", nworkers);
	workers->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	gpusort_build_workers_estimate(build, sizeof(GsGinShared));
	gpusort_build_workers_estimate(build, table_parallelscan_estimate(heap, workers->snapshot));
	gpusort_build_workers_estimate(build, mul_size(sizeof(GsGinResult), nworkers));
	if (!gpusort_build_workers_allocate(build, heap, index, info))
	{
		forget_snapshot(workers);
		pfree(workers);
		return NULL;
	}
	fill_shared_memory(workers, heap, nworkers, memory);
	gpusort_build_workers_launch(build);
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
	const GsGinResult *results = workers->results;

	workers->nworkers = gpusort_build_workers_await(&workers->build);
	for (int i = 0; i < workers->nworkers; i++)
	{
		*nlive += results[i].nlive;
		info->ii_BrokenHotChain |= results[i].broken_chains;
		if (results[i].overflow != GS_FALLBACK_NONE)
			*overflow = results[i].overflow;
	}
}

GsPageQueue *
gpusort_gin_workers_pages(const GsGinWorkers *workers)
{
	return gpusort_build_workers_pages(&workers->build);
}

void
gpusort_gin_workers_finish(GsGinWorkers *workers)
{
	gpusort_build_workers_finish(&workers->build);
	forget_snapshot(workers);
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
write_keys(GsBuildWorker *worker, const GsGinShared *shared, GsGinResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort keys of a worker",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsRunTarget target = {.set = shared->runs,.producer = ParallelWorkerNumber};
	TableScanDesc scan = GPUSORT_BEGIN_SHARED_SCAN(worker->heap,
												   shm_toc_lookup(worker->toc, KEY_SCAN, false));
	GsGinCollection *collection = gpusort_gin_collect(worker->heap, worker->index, worker->info,
													  scan, -1, shared->memory);
	GsGinRuns  *runs = gpusort_gin_runs_create(collection->order, &target);

	gpusort_gin_merge_write(collection->order, collection->keys, collection->runs,
							collection->run_memory, runs);
	result->run = gpusort_gin_runs_get(runs, 0);
	result->overflow = collection->overflow;
	result->nlive = collection->nlive;
	result->broken_chains = worker->info->ii_BrokenHotChain;
	gpusort_gin_runs_end(runs);
	gpusort_gin_collection_end(collection);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsGinResult *results = shm_toc_lookup(toc, KEY_RESULTS, false);
	GsBuildWorker worker;

	gpusort_build_worker_begin(&worker, toc);
	write_keys(&worker, shm_toc_lookup(toc, KEY_SHARED, false),
			   &results[ParallelWorkerNumber]);
	gpusort_build_worker_end(&worker);
}
