/*-------------------------------------------------------------------------
 *
 * gin_build.c
 *		Builds a GIN index: extracts keys, sorts them, writes pages.
 *
 * The keys of the table's rows are extracted and collected in memory, each once, with the TIDs
 * of its rows (gin_collect.c, gin_keys.c).  When memory is full, the keys are sorted and
 * written as a run.  In the end runs, those of workers too, and memory are merged
 * (gin_merge.c), and the index is written from the keys in order (gin_writer.c).
 *
 *		row --extractValue--> keys and TID --> gin_keys --> gin_runs
 *													 |			  |
 *				file, WAL <--page_writer-- gin_writer <-- gin_merge
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "index/base/build_workers.h"
#include "index/base/page_writer.h"
#include "index/gin/gin_build.h"
#include "index/gin/gin_collect.h"
#include "index/gin/gin_workers.h"
#include "index/gin/gin_writer.h"
#include "key/distrust.h"
#include "settings.h"
#include "sort/base/sort_stats.h"
#include "work.h"

/* The number of keys between two reports of progress. */
#define KEYS_PER_REPORT		1024

typedef struct GsGinBuild
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsGinWorkers *workers;		/* or NULL */
	GsGinRuns **of_workers;		/* the runs of each */
	uint32		nworkers;
	GsGinCollection *collection;	/* of this process */
	GsFallback	overflow;		/* why any process has runs for want of memory */
	double		nlive;			/* live rows of the table */
	double		nentries;		/* pairs of key and TID in the index */
	char	   *wrong_encoding; /* due to which keys are not in order, or NULL */
} GsGinBuild;

/* Returns GS_FALLBACK_NONE, or why the build is left to PostgreSQL. */
static GsFallback
check_build(const GsGinBuild *build)
{
	if (!gpusort_enable_index_build)
		return GS_FALLBACK_INDEX_DISABLED;
	if (build->heap->rd_tableam != GetHeapamTableAmRoutine())
		return GS_FALLBACK_TABLE_AM;
	if (!gpusort_build_rows_suffice(gpusort_build_rows_estimate(build->heap)))
		return GS_FALLBACK_FEW_INDEX_ROWS;
	if (gpusort_distrust_any() &&
		gpusort_gin_order_is_distrusted(gpusort_gin_order_create(build->index)))
		return GS_FALLBACK_WRONG_ORDER;
	return GS_FALLBACK_NONE;
}

/* Read the table and collect the keys of its rows, with workers if that is planned. */
static void
collect_keys(GsGinBuild *build)
{
	int			nworkers = gpusort_gin_workers_plan(build->heap, build->index, build->info);
	Size		memory = (Size) maintenance_work_mem * 1024 / (nworkers + 1);
	TableScanDesc scan = NULL;

	if (nworkers > 0)
		build->workers = gpusort_gin_workers_start(build->heap, build->index, build->info,
												   nworkers, memory);
	if (build->workers != NULL)
		scan = gpusort_gin_workers_scan(build->workers, build->heap);
	build->collection = gpusort_gin_collect(build->heap, build->index, build->info, scan,
											nworkers, memory);
	build->nlive = build->collection->nlive;
	build->overflow = build->collection->overflow;
	if (build->workers != NULL)
		gpusort_gin_workers_await(build->workers, build->info, &build->nlive,
								  &build->overflow);
}

/* ----------------------------------------------------------------
 *		checking the order
 *
 * There are far fewer keys than index entries, and each is compared several times while they are
 * merged.  So all of them are checked unless pg_gpusort.verify is off.
 * ----------------------------------------------------------------
 */

typedef struct GsGinCheck
{
	GsGinOrder *order;
	MemoryContext context;
	MemoryContext scratch;		/* for what comparisons leak */
	bool		enabled;

	/* The key before. */
	bool		has_key;
	GsGinKey	key;
	char	   *copy;			/* what its value points to */
	Size		copy_size;
} GsGinCheck;

/* Create a check in the current memory context. */
static GsGinCheck *
create_check(GsGinOrder *order)
{
	GsGinCheck *check = palloc0(sizeof(GsGinCheck));

	check->order = order;
	check->enabled = gpusort_verify != GS_VERIFY_OFF;
	check->context = CurrentMemoryContext;
	check->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort order check",
										   ALLOCSET_SMALL_SIZES);
	return check;
}

/*
 * Is a key after the one before?  Keys of a column without an encoding are sorted by the same
 * comparison, and not compared.
 */
static bool
is_in_order(const GsGinCheck *check, const GsGinKey *key)
{
	const GsGinKey *before = &check->key;
	MemoryContext caller;
	int			cmp;

	if (before->attnum == key->attnum && before->category == key->category &&
		check->order->columns[key->attnum - 1].encoding.kind == GS_ENCODE_NONE)
		return true;
	CHECK_FOR_INTERRUPTS();
	caller = MemoryContextSwitchTo(check->scratch);
	cmp = ginCompareAttEntries(&check->order->state,
							   before->attnum, before->value, before->category,
							   key->attnum, key->value, key->category);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(check->scratch);
	return cmp < 0;
}

static void
keep_key(GsGinCheck *check, const GsGinKey *key)
{
	const GsGinColumn *column = &check->order->columns[key->attnum - 1];
	Size		size;

	check->has_key = true;
	check->key = *key;
	if (key->category != GIN_CAT_NORM_KEY || column->attbyval)
		return;
	size = datumGetSize(key->value, false, column->attlen);
	gpusort_work_add(size);
	if (size > check->copy_size)
	{
		if (check->copy != NULL)
			pfree(check->copy);
		check->copy_size = size * 2;
		check->copy = MemoryContextAllocHuge(check->context, check->copy_size);
	}
	memcpy(check->copy, DatumGetPointer(key->value), size);
	check->key.value = PointerGetDatum(check->copy);
}

/* Is a key in order, as far as that is checked? */
static bool
check_key(GsGinCheck *check, const GsGinKey *key)
{
	if (!check->enabled)
		return true;
	if (check->has_key && !is_in_order(check, key))
		return false;
	keep_key(check, key);
	return true;
}

/*
 * Distrust the encoding of a key.  Returns a text that describes it, in the current memory
 * context.
 */
static char *
distrust_encoding(const GsGinCheck *check, const GsGinKey *key)
{
	const GsGinColumn *column = &check->order->columns[key->attnum - 1];

	return gpusort_key_encoding_distrust(column->operator, column->collation);
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

/* Begin to merge this process's keys and runs with the runs of workers. */
static GsGinMerge *
begin_merge(GsGinBuild *build)
{
	GsGinCollection *collection = build->collection;

	if (build->workers != NULL)
		build->nworkers = gpusort_gin_workers_open(build->workers, collection->order,
												   &build->of_workers);
	return gpusort_gin_merge_begin(collection->order, collection->keys, collection->runs,
								   build->of_workers, build->nworkers,
								   collection->run_memory * (build->nworkers + 1));
}

/*
 * Write the index from its keys in order.  Returns false, with nothing written, if they are not
 * in order.
 */
static bool
write_index(GsGinBuild *build, GsGinMerge *merge)
{
	GsPageQueue *queue = build->workers == NULL ? NULL :
		gpusort_gin_workers_pages(build->workers);
	GsGinWriter *writer = gpusort_gin_writer_begin(build->index, build->collection->order,
												   queue);
	GsProgress *progress = build->collection->progress;
	GsGinCheck *check = create_check(build->collection->order);
	uint64		tids[GPUSORT_TID_BATCH];
	uint64		nkeys = 0;
	GsGinKey	key;

	while (gpusort_gin_merge_next(merge, &key))
	{
		uint32		count;

		CHECK_FOR_INTERRUPTS();
		if (unlikely(!check_key(check, &key)))
		{
			build->wrong_encoding = distrust_encoding(check, &key);
			gpusort_gin_writer_abandon(writer);
			gpusort_wrong_order_truncate(build->index);
			return false;
		}
		gpusort_gin_writer_begin_key(writer, &key);
		while ((count = gpusort_gin_merge_tids(merge, tids)) > 0)
		{
			gpusort_gin_writer_add(writer, tids, count);
			build->nentries += count;
		}
		gpusort_gin_writer_end_key(writer);
		progress->rows_returned = (int64) build->nentries;
		if (++nkeys % KEYS_PER_REPORT == 0)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
										 (int64) build->nentries);
	}
	gpusort_gin_writer_end(writer);
	return true;
}

/*
 * Insert the keys into an index that has rows of its own already, as PostgreSQL's build does
 * with all keys.
 */
static void
insert_keys(GsGinBuild *build, GsGinMerge *merge)
{
	GinStatsData stats = {.nEntryPages = 1};
	uint64		tids[GPUSORT_TID_BATCH];
	ItemPointerData items[GPUSORT_TID_BATCH];
	GsGinKey	key;

	while (gpusort_gin_merge_next(merge, &key))
	{
		uint32		count;

		while ((count = gpusort_gin_merge_tids(merge, tids)) > 0)
		{
			CHECK_FOR_INTERRUPTS();
			gpusort_work_add(count * sizeof(uint64));
			for (uint32 i = 0; i < count; i++)
				gpusort_tid_set(&items[i], tids[i]);
			ginEntryInsert(&build->collection->order->state, key.attnum, key.value,
						   key.category, items, count, &stats);
			build->nentries += count;
		}
	}
	stats.nTotalPages = RelationGetNumberOfBlocks(build->index);
	gpusort_gin_writer_end_index(build->index, &stats, stats.nTotalPages);
}

/* Make the index of the keys that were collected.  Returns false as above. */
static bool
load_index(GsGinBuild *build)
{
	GsGinMerge *merge = begin_merge(build);
	GsProgress *progress = build->collection->progress;
	bool		written = true;

	progress->rows_sorted = progress->rows_read;
	progress->phase = GS_PHASE_RETURNING;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
								 gpusort_gin_keys_entries(build->collection->keys));

	/* Functions in the index may have changed rows of the table. */
	if (gpusort_gin_writer_has_rows(build->index))
		insert_keys(build, merge);
	else
		written = write_index(build, merge);
	progress->rows_returned = (int64) build->nentries;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) build->nentries);
	return written;
}

/* Returns GS_FALLBACK_NONE, or with nothing written the reason why PostgreSQL builds the index. */
static GsFallback
build_index(GsGinBuild *build)
{
	bool		written;
	GsSortReport report = {.kind = GS_KIND_CPU};
	GsSortCounts counts = {.index_builds = 1};

	gpusort_gin_writer_create_pages(build->index);
	collect_keys(build);
	if (build->overflow != GS_FALLBACK_NONE)
	{
		report.kind = GS_KIND_EXTERNAL;
		report.fallback = build->overflow;
		gpusort_stats_count_fallback(build->overflow);
	}
	gpusort_requirement_check(&report);
	written = load_index(build);
	if (build->workers != NULL)
		gpusort_gin_workers_finish(build->workers);
	gpusort_gin_collection_end(build->collection);
	for (uint32 i = 0; i < build->nworkers; i++)
		gpusort_gin_runs_end(build->of_workers[i]);
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
	GsGinBuild	build = {.heap = heap,.index = index,.info = info};
	GsFallback	reason = check_build(&build);
	MemoryContext context;
	MemoryContext caller;
	IndexBuildResult *result;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	if (reason != GS_FALLBACK_NONE)
	{
		gpusort_requirement_leave(GS_LEFT_INDEX_BUILD, reason);
		return NULL;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN build",
									ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	reason = build_index(&build);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	if (reason != GS_FALLBACK_NONE)
	{
		gpusort_requirement_leave(GS_LEFT_INDEX_BUILD, reason);
		return NULL;
	}

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = build.nlive;
	result->index_tuples = build.nentries;
	return result;
}
