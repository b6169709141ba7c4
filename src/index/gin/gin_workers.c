/*-------------------------------------------------------------------------
 *
 * gin_workers.c
 *		Parallel workers that help to build a GIN index.
 *
 * All processes extract keys, sort them together and write pages.  The leader alone makes the
 * pages.
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
#include "sort/base/warm_memory.h"
#include "work.h"

/* Keys of the parts of shared memory. */
#define KEY_SCAN		GPUSORT_BUILD_FIRST_KEY
#define KEY_RESULTS		(GPUSORT_BUILD_FIRST_KEY + 1)

/* Set by a worker when it has read its rows, before it sorts them with the others. */
struct GsGinResult
{
	double		nlive;
	bool		broken_chains;
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
	if (gpusort_warm_memory_shared_limit() == 0)
		return 0;
	return gpusort_build_workers_useful(heap, plan_workers(heap, index, info));
}

static void
fill_shared_memory(GsGinWorkers *workers, Relation heap, int nworkers)
{
	GsBuildWorkers *build = &workers->build;
	Size		scan_bytes = table_parallelscan_estimate(heap, workers->snapshot);

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
						  const GsSortSpec *spec, const GsParallelSort *parallel, int nworkers)
{
	GsGinWorkers *workers = palloc0(sizeof(GsGinWorkers));
	GsBuildWorkers *build = &workers->build;

	gpusort_build_workers_create(build, "gpusort_gin_worker_main", nworkers);
	workers->snapshot = info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	gpusort_build_workers_estimate(build, table_parallelscan_estimate(heap, workers->snapshot));
	gpusort_build_workers_estimate(build, mul_size(sizeof(GsGinResult), nworkers));
	if (!gpusort_build_workers_allocate(build, heap, index, info, spec, parallel))
	{
		forget_snapshot(workers);
		pfree(workers);
		return NULL;
	}
	fill_shared_memory(workers, heap, nworkers);
	gpusort_build_workers_launch(build);
	return workers;
}

TableScanDesc
gpusort_gin_workers_scan(GsGinWorkers *workers, Relation heap)
{
	return GPUSORT_BEGIN_SHARED_SCAN(heap, workers->scan);
}

void
gpusort_gin_workers_collect(const GsGinWorkers *workers, IndexInfo *info, double *nlive)
{
	const GsGinResult *results = workers->results;

	for (int i = 0; i < workers->build.context->nworkers_launched; i++)
	{
		*nlive += results[i].nlive;
		info->ii_BrokenHotChain |= results[i].broken_chains;
	}
}

void
gpusort_gin_workers_finish(GsGinWorkers *workers)
{
	gpusort_build_workers_finish(&workers->build);
	forget_snapshot(workers);
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* Collect the keys of this worker's share of the table, in this context. */
static void
collect_keys(GsBuildWorker *worker, GsProducer *producer, GsSort *sort, GsGinOrder *order,
			 GsGinResult *result)
{
	ParallelTableScanDesc scan = shm_toc_lookup(worker->toc, KEY_SCAN, false);
	GsGinCollection collection = {
		.heap = worker->heap,
		.index = worker->index,
		.info = worker->info,
		.scan = GPUSORT_BEGIN_SHARED_SCAN(worker->heap, scan),
		.order = order,
		.spec = &producer->spec,
		.sort = sort
	};

	gpusort_gin_collect(&collection, -1);
	result->nlive = collection.nlive;
	result->broken_chains = worker->info->ii_BrokenHotChain;
}

/* Take part in the sort of all processes, in this context. */
static void
sort_keys(GsBuildWorker *worker, GsGinResult *result)
{
	GsGinOrder *order = gpusort_gin_order_create(worker->index);
	GsProducer	producer = {.parallel = worker->parallel};
	GsSort	   *sort;

	gpusort_gin_describe_sort(order, &producer.spec);
	gpusort_build_worker_describe(worker, &producer.spec);
	sort = gpusort_producer_begin(&producer, CurrentMemoryContext);
	if (sort == NULL)
		return;
	collect_keys(worker, &producer, sort, order, result);
	gpusort_producer_end(&producer, sort);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort keys of a worker",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsGinResult *results = shm_toc_lookup(toc, KEY_RESULTS, false);
	GsBuildWorker worker;

	gpusort_build_worker_begin(&worker, toc);
	sort_keys(&worker, &results[ParallelWorkerNumber]);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	gpusort_build_worker_end(&worker);
}
