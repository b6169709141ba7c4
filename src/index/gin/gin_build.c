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
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "index/base/build_workers.h"
#include "index/base/page_writer.h"
#include "index/gin/gin_build.h"
#include "index/gin/gin_collect.h"
#include "index/gin/gin_reader.h"
#include "index/gin/gin_tids.h"
#include "index/gin/gin_workers.h"
#include "index/gin/gin_writer.h"
#include "settings.h"
#include "sort/base/sort_stats.h"
#include "sort/producer.h"
#include "sort/sort.h"
#include "work.h"

/* The number of keys between two reports of progress. */
#define KEYS_PER_REPORT		1024

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

/* Describe the sort.  Returns GS_FALLBACK_NONE, or why the build is left to PostgreSQL. */
static GsFallback
describe_sort(GsGinBuild *build)
{
	GsFallback	reason;

	build->order = gpusort_gin_order_create(build->index);
	build->nworkers = gpusort_gin_workers_plan(build->heap, build->index, build->info);
	gpusort_gin_describe_sort(build->order, &build->spec);
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

/* Returns GS_FALLBACK_NONE, or why the build is left to PostgreSQL. */
static GsFallback
check_build(GsGinBuild *build)
{
	if (!gpusort_enable_index_build)
		return GS_FALLBACK_INDEX_DISABLED;
	if (build->heap->rd_tableam != GetHeapamTableAmRoutine())
		return GS_FALLBACK_TABLE_AM;
	if (!gpusort_build_rows_suffice(build->index, gpusort_build_rows_estimate(build->heap)))
		return GS_FALLBACK_FEW_INDEX_ROWS;
	return describe_sort(build);
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/* Start workers, if they are planned. */
static void
start_workers(GsGinBuild *build)
{
	GsParallelSort parallel;

	if (build->nworkers > 0 && gpusort_parallel_sort_open(&parallel, build->sort, false, 0))
		build->workers =
			gpusort_gin_workers_start(build->heap, build->index, build->info, &build->spec,
									  &parallel, build->nworkers);
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
		collection.scan = gpusort_gin_workers_scan(build->workers, build->heap);
	gpusort_gin_collect(&collection, build->nworkers);
	build->progress = collection.progress;
	build->nlive = collection.nlive;
	build->ncollected = collection.nentries;
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
	gpusort_gin_workers_collect(build->workers, build->info, &build->nlive);
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
		gpusort_gin_workers_finish(build->workers);
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
	GsFallback	reason = check_build(&build);
	IndexBuildResult *result;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
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
