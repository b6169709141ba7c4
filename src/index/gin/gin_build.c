/*-------------------------------------------------------------------------
 *
 * gin_build.c
 *		Builds a GIN index: extracts keys, sorts them, writes pages.
 *
 * The keys of the table's rows are extracted and collected in memory, each once, with the TIDs
 * of its rows (gin_collect.c, gin_keys.c).  When memory is full, and in the end, they are added to
 * a sort, as rows of a key and TIDs.  The index is written from the keys in order (gin_reader.c,
 * gin_writer.c).
 *
 *		row --extractValue--> keys and TID --> gin_keys --> sort
 *															 |
 *				file, WAL <--page_writer-- gin_writer <-- gin_reader
 *
 * With workers, each process reads a share of the table and collects the keys there.  All of them
 * sort these together.  Then the workers write pages, which the leader alone makes.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/progress.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "index/base/build_workers.h"
#include "index/gin/gin_build.h"
#include "index/gin/gin_private.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "sort/producer.h"
#include "work.h"

/* The number of keys between two reports of progress. */
#define KEYS_PER_REPORT		1024

/* Keys of the parts of shared memory. */
#define KEY_SCAN		GPUSORT_BUILD_FIRST_KEY
#define KEY_RESULTS		(GPUSORT_BUILD_FIRST_KEY + 1)

/* Set by a worker when it has read its rows, before it sorts them with the others. */
typedef struct GsGinResult
{
	double		nlive;
	bool		broken_chains;
} GsGinResult;

/* In the leader. */
typedef struct GsGinWorkers
{
	GsBuildWorkers build;
	Snapshot	snapshot;		/* SnapshotAny, or registered */
	ParallelTableScanDesc scan;
	GsGinResult *results;		/* of each worker */
} GsGinWorkers;

typedef struct GsGinBuild
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsGinOrder *order;
	int			nworkers;		/* that may be started */
	GsSortSpec	spec;
	GsSort	   *sort;
	GsGinWorkers *workers;		/* or NULL */
	GsProgress *progress;
	int64		ncollected;		/* pairs of key and TID, of this process */
	double		nlive;			/* live rows of the table */
	double		nentries;		/* pairs of key and TID in the index */
	char	   *wrong_encoding; /* due to which keys are not in order, or NULL */
} GsGinBuild;

PGDLLEXPORT void gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		which builds are ours, and how many workers they have
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
count_planned_workers(const GsGinBuild *build)
{
	Relation	heap = build->heap;

	if (build->info->ii_ParallelWorkers > 0)
		return build->info->ii_ParallelWorkers;
	if (max_parallel_maintenance_workers == 0 || IsInParallelMode() ||
		RelationUsesLocalBuffers(heap) || !is_for_workers(build->index))
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(build->index));
}

/* Returns how many workers to start; none without memory that processes share. */
static int
plan_workers(const GsGinBuild *build)
{
	if (gpusort_warm_memory_shared_limit() == 0)
		return 0;
	return gpusort_build_workers_useful(build->heap, count_planned_workers(build));
}

/* Describe the sort.  Returns GS_FALLBACK_NONE, or why the build is left to PostgreSQL. */
static GsFallback
describe_sort(GsGinBuild *build)
{
	GsFallback	reason;

	build->order = gpusort_gin_order_create(build->index);
	build->nworkers = plan_workers(build);
	gpusort_gin_order_describe(build->order, &build->spec);
	build->spec.memory = (Size) maintenance_work_mem * 1024 / (build->nworkers + 1) /
		GPUSORT_GIN_SORT_PART;
	build->spec.expected_rows = gpusort_build_rows_estimate(build->heap);
	if (build->nworkers > 0)
		build->spec.processes = build->nworkers + 1;
	reason = gpusort_sort_plan_keys(&build->spec);

	/* The reader compares all keys. */
	build->spec.check = NULL;

	/* Keys without an encoding are sorted by comparisons. */
	return reason == GS_FALLBACK_TYPE ? GS_FALLBACK_NONE : reason;
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/*
 * Fill the shared memory.  The scan must not begin in the middle of the table, as a synchronized
 * scan would: the TIDs of a process have to come in the order of their blocks.
 */
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

/* Start the planned workers.  Returns NULL if none are available. */
static GsGinWorkers *
start_planned_workers(const GsGinBuild *build, const GsParallelSort *parallel)
{
	GsGinWorkers *workers = palloc0(sizeof(GsGinWorkers));
	GsBuildWorkers *base = &workers->build;

	gpusort_build_workers_create(base, "gpusort_gin_worker_main", build->nworkers);
	workers->snapshot = build->info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	gpusort_build_workers_estimate(base,
								   table_parallelscan_estimate(build->heap, workers->snapshot));
	gpusort_build_workers_estimate(base, mul_size(sizeof(GsGinResult), build->nworkers));
	if (!gpusort_build_workers_allocate(base, build->heap, build->index, build->info,
										&build->spec, parallel))
	{
		forget_snapshot(workers);
		pfree(workers);
		return NULL;
	}
	fill_shared_memory(workers, build->heap, build->nworkers);
	gpusort_build_workers_launch(base);
	return workers;
}

/* Start workers, if they are planned. */
static void
start_workers(GsGinBuild *build)
{
	GsParallelSort parallel;

	if (build->nworkers > 0 && gpusort_parallel_sort_open(&parallel, build->sort, 0))
		build->workers = start_planned_workers(build, &parallel);
}

/* Read this process's share of the table and add its keys to the sort. */
static void
collect_keys(GsGinBuild *build)
{
	GsGinCollection collection = {
		.heap = build->heap,
		.index = build->index,
		.info = build->info,
		.order = build->order,
		.spec = &build->spec,
		.sort = build->sort
	};

	if (build->workers != NULL)
		collection.scan = GPUSORT_BEGIN_SHARED_SCAN(build->heap, build->workers->scan);
	gpusort_gin_collect(&collection, build->nworkers);
	build->progress = collection.progress;
	build->nlive = collection.nlive;
	build->ncollected = collection.nentries;
}

/* When all processes have read their rows: add what the workers have found out. */
static void
add_results(GsGinBuild *build)
{
	const GsGinResult *results = build->workers->results;

	for (int i = 0; i < build->workers->build.context->nworkers_launched; i++)
	{
		build->nlive += results[i].nlive;
		build->info->ii_BrokenHotChain |= results[i].broken_chains;
	}
}

/* Have all processes collect keys and sort them. */
static void
sort_together(GsGinBuild *build)
{
	GsProducer	producer = {
		.spec = build->spec,
		.sort = build->sort,
		.parallel = build->workers->build.parallel
	};

	if (gpusort_producer_begin(&producer, CurrentMemoryContext) == NULL)
		elog(ERROR, "workers have sorted the keys of a GIN index alone");
	collect_keys(build);
	gpusort_producer_end(&producer, build->sort);
	if (!producer.ahead)
		(void) gpusort_build_workers_await(&build->workers->build);
	add_results(build);
}

/* Read the table and sort its keys. */
static void
sort_keys(GsGinBuild *build)
{
	build->sort = gpusort_sort_begin(&build->spec);
	start_workers(build);
	if (build->workers != NULL)
		sort_together(build);
	else
		collect_keys(build);
	if (!gpusort_sort_finish(build->sort))
		elog(ERROR, "keys of a GIN index are lost");
	build->progress->rows_sorted = build->progress->rows_read;
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

/*
 * Write the index from its keys in order.  Returns false, with nothing written, if they are not
 * in order.
 */
static bool
write_index(GsGinBuild *build, GsGinReader *reader)
{
	GsPageQueue *queue = build->workers == NULL ? NULL :
		gpusort_build_workers_pages(&build->workers->build);
	GsGinWriter *writer = gpusort_gin_writer_begin(build->index, build->order, queue);
	uint64		nkeys = 0;
	GsGinKey	key;

	while (gpusort_gin_reader_next(reader, &key))
	{
		const uint64 *tids;
		uint32		count;

		CHECK_FOR_INTERRUPTS();
		gpusort_gin_writer_begin_key(writer, &key);
		while ((count = gpusort_gin_reader_tids(reader, &tids)) > 0)
		{
			gpusort_gin_writer_add(writer, tids, count);
			build->nentries += count;
		}
		gpusort_gin_writer_end_key(writer);
		build->progress->rows_returned = (int64) build->nentries;
		if (++nkeys % KEYS_PER_REPORT == 0)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
										 (int64) build->nentries);
	}
	build->wrong_encoding = gpusort_gin_reader_wrong_encoding(reader);
	if (build->wrong_encoding != NULL)
	{
		gpusort_gin_writer_abandon(writer);
		gpusort_wrong_order_truncate(build->index);
		return false;
	}
	gpusort_gin_writer_end(writer);
	return true;
}

/*
 * Insert the keys into an index that has rows of its own already, as PostgreSQL's build does
 * with all keys.
 */
static void
insert_keys(GsGinBuild *build, GsGinReader *reader)
{
	GinStatsData stats = {.nEntryPages = 1};
	ItemPointerData items[GPUSORT_GIN_READER_TIDS];
	GsGinKey	key;

	while (gpusort_gin_reader_next(reader, &key))
	{
		const uint64 *tids;
		uint32		count;

		while ((count = gpusort_gin_reader_tids(reader, &tids)) > 0)
		{
			CHECK_FOR_INTERRUPTS();
			gpusort_work_add(count * sizeof(uint64));
			for (uint32 i = 0; i < count; i++)
				gpusort_tid_set(&items[i], tids[i]);
			ginEntryInsert(&build->order->state, key.attnum, key.value, key.category,
						   items, count, &stats);
			build->nentries += count;
		}
	}
	stats.nTotalPages = RelationGetNumberOfBlocks(build->index);
	gpusort_gin_writer_end_index(build->index, &stats, stats.nTotalPages);
}

/* Make the index of the keys that were sorted.  Returns false as above. */
static bool
load_index(GsGinBuild *build)
{
	GsGinReader *reader = gpusort_gin_reader_begin(build->order, build->sort,
												   build->spec.tupdesc);
	bool		written = true;

	build->progress->phase = GS_PHASE_RETURNING;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, build->ncollected);

	/* Functions in the index may have changed rows of the table. */
	if (gpusort_gin_writer_has_rows(build->index))
		insert_keys(build, reader);
	else
		written = write_index(build, reader);
	build->progress->rows_returned = (int64) build->nentries;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) build->nentries);
	return written;
}

/* Returns GS_FALLBACK_NONE, or with nothing written the reason why PostgreSQL builds the index. */
static GsFallback
build_index(GsGinBuild *build)
{
	bool		written;
	GsSortReport report;
	GsSortCounts counts = {.index_builds = 1};

	gpusort_gin_writer_create_pages(build->index);
	sort_keys(build);
	gpusort_sort_report(build->sort, &report);
	gpusort_requirement_check(&report);
	written = load_index(build);
	if (!written)
		gpusort_sort_stop(build->sort);
	if (build->workers != NULL)
	{
		gpusort_build_workers_finish(&build->workers->build);
		forget_snapshot(build->workers);
	}
	gpusort_sort_end(build->sort);
	if (written)
	{
		gpusort_stats_count_sort(report.kind, &counts);
		return GS_FALLBACK_NONE;
	}
	gpusort_wrong_order_warn(build->index, build->wrong_encoding);

	/* PostgreSQL's build looks for broken HOT chains itself. */
	build->info->ii_BrokenHotChain = false;
	return GS_FALLBACK_WRONG_ORDER;
}

IndexBuildResult *
gpusort_gin_build(Relation heap, Relation index, IndexInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort GIN build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsGinBuild	build = {.heap = heap,.index = index,.info = info};
	GsFallback	reason = gpusort_build_check(heap, index);
	IndexBuildResult *result;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	if (reason == GS_FALLBACK_NONE)
		reason = describe_sort(&build);
	if (reason == GS_FALLBACK_NONE)
		reason = build_index(&build);
	if (reason != GS_FALLBACK_NONE)
		gpusort_requirement_leave(GS_LEFT_INDEX_BUILD, reason);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	if (reason != GS_FALLBACK_NONE)
		return NULL;

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = build.nlive;
	result->index_tuples = build.nentries;
	return result;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* Collect the keys of this worker's share of the table, in this context. */
static void
collect_share(GsBuildWorker *worker, GsProducer *producer, GsSort *sort, GsGinOrder *order,
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
sort_share(GsBuildWorker *worker, GsGinResult *result)
{
	GsGinOrder *order = gpusort_gin_order_create(worker->index);
	GsProducer	producer = {.parallel = worker->parallel};
	GsSort	   *sort;

	gpusort_gin_order_describe(order, &producer.spec);
	gpusort_build_worker_describe(worker, &producer.spec);
	sort = gpusort_producer_begin(&producer, CurrentMemoryContext);
	if (sort == NULL)
		return;
	collect_share(worker, &producer, sort, order, result);
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
	sort_share(&worker, &results[ParallelWorkerNumber]);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	gpusort_build_worker_end(&worker);
}
