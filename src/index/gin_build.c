/*-------------------------------------------------------------------------
 *
 * gin_build.c
 *		Builds a GIN index: extracts keys, sorts them, writes pages.
 *
 * PostgreSQL scans the table and passes each row to us.  The operator class's function
 * extracts the keys of each column, which are collected in memory, each once, with the TIDs
 * of its rows (gin_keys.c).  When memory is full, the keys are sorted and written as a run.
 * In the end runs and memory are merged (gin_merge.c), and the index is written from the
 * keys in order (gin_writer.c).
 *
 *		row --extractValue--> keys and TID --> gin_keys --> gin_runs
 *													 |			  |
 *				file, WAL <--page_writer-- gin_writer <-- gin_merge
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/gin_private.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "index/gin_build.h"
#include "index/gin_merge.h"
#include "index/gin_writer.h"
#include "index/index_rows.h"
#include "settings.h"
#include "sort/requirement.h"
#include "work.h"

/* The part of maintenance_work_mem that buffers of runs have. */
#define RUN_MEMORY_PART		8

/* Keys of a column of most rows fit into so many. */
#define FIRST_KEYS			64

/* The memory that extraction keeps from row to row. */
#define EXTRACTION_BYTES	((Size) 64 * 1024)

/* The number of keys between two reports of progress. */
#define KEYS_PER_REPORT		1024

typedef struct GsGinBuild
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsGinOrder *order;
	GsGinKeys  *keys;
	GsGinRuns  *runs;
	GsFallback	overflow;		/* why there are runs */
	MemoryContext row_context;	/* reset after each row */
	GsGinKey   *row_keys;		/* of a column of the row */
	uint32		max_row_keys;
	double		nlive;			/* live rows of the table */
	double		nentries;		/* pairs of key and TID in the index */
} GsGinBuild;

/* Returns GS_FALLBACK_NONE, or why the build is left to PostgreSQL. */
static GsFallback
check_build(const GsGinBuild *build)
{
	if (!gpusort_enable_index_build)
		return GS_FALLBACK_INDEX_DISABLED;
	if (build->heap->rd_tableam != GetHeapamTableAmRoutine())
		return GS_FALLBACK_TABLE_AM;
	if (!gpusort_index_rows_suffice(gpusort_index_rows_estimate(build->heap)))
		return GS_FALLBACK_FEW_INDEX_ROWS;

	/* PostgreSQL 18 and later plan workers for it; ours are all serial. */
	if (build->info->ii_ParallelWorkers > 0)
		return GS_FALLBACK_GIN_WORKERS;
	return GS_FALLBACK_NONE;
}

/* ----------------------------------------------------------------
 *		extracting keys
 * ----------------------------------------------------------------
 */

static void
write_run(GsGinBuild *build)
{
	gpusort_gin_keys_sort(build->keys);
	gpusort_gin_runs_write(build->runs, build->keys);
	gpusort_gin_keys_reset(build->keys);
}

/* Make room for so many keys of a row. */
static void
reserve_row_keys(GsGinBuild *build, uint32 count)
{
	if (count <= build->max_row_keys)
		return;
	build->max_row_keys = Max(count, build->max_row_keys * 2);
	build->row_keys = repalloc_huge(build->row_keys,
									build->max_row_keys * sizeof(GsGinKey));
}

/*
 * Set the keys of a value by the operator class's function alone.  PostgreSQL sorts the keys
 * of each row and drops equal ones.  Where these have equal bytes that is not needed, since
 * they have the same record.  Returns their number.
 */
static uint32
extract_directly(GsGinBuild *build, OffsetNumber attnum, Datum value)
{
	GinState   *state = &build->order->state;
	int32		count = 0;
	bool	   *nulls = NULL;
	Datum	   *values = (Datum *)
		DatumGetPointer(FunctionCall3Coll(&state->extractValueFn[attnum - 1],
										  state->supportCollation[attnum - 1],
										  value, PointerGetDatum(&count),
										  PointerGetDatum(&nulls)));

	if (values == NULL || count <= 0)
	{
		build->row_keys[0].category = GIN_CAT_EMPTY_ITEM;
		return 1;
	}
	reserve_row_keys(build, count);
	for (int32 i = 0; i < count; i++)
	{
		build->row_keys[i].value = values[i];
		build->row_keys[i].category = nulls != NULL && nulls[i] ? GIN_CAT_NULL_KEY :
			GIN_CAT_NORM_KEY;
	}
	return count;
}

/* Set the keys of a value as PostgreSQL does.  Returns their number. */
static uint32
extract_distinct(GsGinBuild *build, OffsetNumber attnum, Datum value, bool isnull)
{
	int32		count;
	GinNullCategory *categories;
	Datum	   *values = ginExtractEntries(&build->order->state, attnum, value, isnull,
										   &count, &categories);

	reserve_row_keys(build, count);
	for (int32 i = 0; i < count; i++)
	{
		build->row_keys[i].value = values[i];
		build->row_keys[i].category = categories[i];
	}
	return count;
}

/* Fetch values that are stored out of line, which rarely happens to keys. */
static void
fetch_values(GsGinBuild *build, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		GsGinKey   *key = &build->row_keys[i];
		struct varlena *value = (struct varlena *) DatumGetPointer(key->value);

		if (key->category == GIN_CAT_NORM_KEY && VARATT_IS_EXTERNAL(value))
			key->value = PointerGetDatum(detoast_external_attr(value));
	}
}

static void
add_column(GsGinBuild *build, OffsetNumber attnum, Datum value, bool isnull, uint64 tid)
{
	const GsGinColumn *column = &build->order->columns[attnum - 1];
	uint32		count;

	if (column->bytes_tell_keys && !isnull)
		count = extract_directly(build, attnum, value);
	else
		count = extract_distinct(build, attnum, value, isnull);
	for (uint32 i = 0; i < count; i++)
		build->row_keys[i].attnum = attnum;
	if (column->attlen == -1)
		fetch_values(build, count);

	/* The second time, all memory is free. */
	for (int attempt = 0;
		 !gpusort_gin_keys_add(build->keys, build->row_keys, count, tid);
		 attempt++)
	{
		if (attempt == 2)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("The keys of a row do not fit into \"maintenance_work_mem\".")));
		build->overflow = GS_FALLBACK_MAINTENANCE_MEM;
		write_run(build);
	}
}

/* IndexBuildCallback */
static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	GsGinBuild *build = arg;
	MemoryContext caller = MemoryContextSwitchTo(build->row_context);

	for (int i = 0; i < build->info->ii_NumIndexAttrs; i++)
	{
		add_column(build, i + 1, values[i], isnull[i], gpusort_tid_number(tid));
		MemoryContextReset(build->row_context);
	}
	MemoryContextSwitchTo(caller);
}

/* Read the table and collect the keys of its rows, sorted. */
static void
collect_keys(GsGinBuild *build)
{
	Size		memory = (Size) maintenance_work_mem * 1024;

	build->order = gpusort_gin_order_create(build->index);
	build->keys = gpusort_gin_keys_create(build->order, memory - memory / RUN_MEMORY_PART);
	build->runs = gpusort_gin_runs_create(build->order);
	build->max_row_keys = FIRST_KEYS;
	build->row_keys = palloc(FIRST_KEYS * sizeof(GsGinKey));
	build->row_context = AllocSetContextCreate(CurrentMemoryContext,
											   "pg_gpusort GIN extraction",
											   EXTRACTION_BYTES, EXTRACTION_BYTES,
											   ALLOCSET_DEFAULT_MAXSIZE);

	/* TIDs have to come in order, so the scan begins with the first block. */
	build->nlive = table_index_build_scan(build->heap, build->index, build->info, false,
										  true, add_row, build, NULL);
	gpusort_gin_keys_sort(build->keys);
	if (gpusort_gin_keys_lacked_memory(build->keys))
		build->overflow = GS_FALLBACK_OUT_OF_MEMORY;
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

static void
write_index(GsGinBuild *build)
{
	Size		memory = (Size) maintenance_work_mem * 1024 / RUN_MEMORY_PART;
	GsGinMerge *merge = gpusort_gin_merge_begin(build->order, build->keys, build->runs,
												memory);
	GsGinWriter *writer = gpusort_gin_writer_begin(build->index, build->order);
	uint64		tids[GPUSORT_TID_BATCH];
	uint64		nkeys = 0;
	GsGinKey	key;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
								 gpusort_gin_keys_entries(build->keys));
	while (gpusort_gin_merge_next(merge, &key))
	{
		uint32		count;

		CHECK_FOR_INTERRUPTS();
		gpusort_gin_writer_begin_key(writer, &key);
		while ((count = gpusort_gin_merge_tids(merge, tids)) > 0)
		{
			gpusort_gin_writer_add(writer, tids, count);
			build->nentries += count;
		}
		gpusort_gin_writer_end_key(writer);
		if (++nkeys % KEYS_PER_REPORT == 0)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
										 (int64) build->nentries);
	}
	gpusort_gin_writer_end(writer);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) build->nentries);
}

static void
build_index(GsGinBuild *build)
{
	GsSortReport report = {.kind = GS_KIND_CPU};
	GsSortCounts counts = {.index_builds = 1};

	collect_keys(build);
	if (build->overflow != GS_FALLBACK_NONE)
	{
		report.kind = GS_KIND_EXTERNAL;
		report.fallback = build->overflow;
		gpusort_stats_count_fallback(build->overflow);
	}
	gpusort_requirement_check(&report);
	write_index(build);
	gpusort_gin_runs_end(build->runs);
	gpusort_stats_count_sort(report.kind, &counts);
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
	build_index(&build);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = build.nlive;
	result->index_tuples = build.nentries;
	return result;
}
