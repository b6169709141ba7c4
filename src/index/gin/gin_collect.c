/*-------------------------------------------------------------------------
 *
 * gin_collect.c
 *		Reads a table, or a process's share of it, and collects the keys of a GIN index.
 *
 * PostgreSQL scans the table and passes each row to us.  The operator class's function
 * extracts the keys of each column.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/gin_private.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "utils/memutils.h"

#include "index/base/build_workers.h"
#include "index/gin/gin_collect.h"
#include "work.h"

/* The part of the memory that buffers of runs have. */
#define RUN_MEMORY_PART		8

/* The least memory of a process, for the first block of keys and some more. */
#define MIN_MEMORY			((Size) 256 * 1024)

/* Keys of a column of most rows fit into so many. */
#define FIRST_KEYS			64

/* The number of rows between two reports of the memory. */
#define ROWS_PER_REPORT		1024

/* The memory that extraction keeps from row to row. */
#define EXTRACTION_BYTES	((Size) 64 * 1024)

typedef struct GsGinCollector
{
	GsGinCollection *collection;
	GsGinOrder *order;
	int			ncolumns;
	MemoryContext row_context;	/* reset after each row */
	GsGinKey   *row_keys;		/* of a column of the row */
	uint32		max_row_keys;
} GsGinCollector;

/* ----------------------------------------------------------------
 *		extracting keys
 * ----------------------------------------------------------------
 */

/* For the view of progress. */
static void
show_memory(GsGinCollection *collection)
{
	collection->progress->memory_bytes = gpusort_gin_keys_bytes(collection->keys);
	collection->progress->file_bytes = gpusort_gin_runs_bytes(collection->runs);
}

static void
write_run(GsGinCollector *collector)
{
	GsGinCollection *collection = collector->collection;

	collection->progress->phase = GS_PHASE_WRITING_RUN;
	show_memory(collection);
	gpusort_gin_keys_sort(collection->keys);
	gpusort_gin_merge_write(collection->order, collection->keys, NULL, 0,
							collection->runs);
	gpusort_gin_keys_reset(collection->keys);
	collection->progress->phase = GS_PHASE_READING;
	show_memory(collection);
}

/* Write a key that has no room even among no others as a run of its own. */
static void
write_long_key(GsGinCollector *collector, GsGinKey *key, uint64 tid)
{
	GsGinRuns  *runs = collector->collection->runs;

	key->word = key->category != GIN_CAT_NORM_KEY ? 0 :
		gpusort_gin_order_word(collector->order, key->attnum, key->value);
	gpusort_gin_runs_begin_run(runs);
	gpusort_gin_runs_begin_key(runs, key);
	gpusort_gin_runs_add(runs, &tid, 1);
	gpusort_gin_runs_end_key(runs);
	gpusort_gin_runs_end_run(runs);
}

/* Make room for so many keys of a row. */
static void
reserve_row_keys(GsGinCollector *collector, uint32 count)
{
	if (count <= collector->max_row_keys)
		return;
	collector->max_row_keys = Max(count, collector->max_row_keys * 2);
	collector->row_keys = repalloc_huge(collector->row_keys,
										collector->max_row_keys * sizeof(GsGinKey));
}

/*
 * Set the keys of a value by the operator class's function alone.  PostgreSQL sorts the keys
 * of each row and drops equal ones.  Where these have equal bytes that is not needed, since
 * they have the same record.  Returns their number.
 */
static uint32
extract_directly(GsGinCollector *collector, OffsetNumber attnum, Datum value)
{
	GinState   *state = &collector->order->state;
	int32		count = 0;
	bool	   *nulls = NULL;
	Datum	   *values = (Datum *)
		DatumGetPointer(FunctionCall3Coll(&state->extractValueFn[attnum - 1],
										  state->supportCollation[attnum - 1],
										  value, PointerGetDatum(&count),
										  PointerGetDatum(&nulls)));

	if (values == NULL || count <= 0)
	{
		collector->row_keys[0].category = GIN_CAT_EMPTY_ITEM;
		return 1;
	}
	reserve_row_keys(collector, count);
	for (int32 i = 0; i < count; i++)
	{
		collector->row_keys[i].value = values[i];
		collector->row_keys[i].category = nulls != NULL && nulls[i] ? GIN_CAT_NULL_KEY :
			GIN_CAT_NORM_KEY;
	}
	return count;
}

/* Set the keys of a value as PostgreSQL does.  Returns their number. */
static uint32
extract_distinct(GsGinCollector *collector, OffsetNumber attnum, Datum value, bool isnull)
{
	int32		count;
	GinNullCategory *categories;
	Datum	   *values = ginExtractEntries(&collector->order->state, attnum, value, isnull,
										   &count, &categories);

	reserve_row_keys(collector, count);
	for (int32 i = 0; i < count; i++)
	{
		collector->row_keys[i].value = values[i];
		collector->row_keys[i].category = categories[i];
	}
	return count;
}

/* Fetch values that are stored out of line, which rarely happens to keys. */
static void
fetch_values(GsGinCollector *collector, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		GsGinKey   *key = &collector->row_keys[i];
		struct varlena *value = (struct varlena *) DatumGetPointer(key->value);

		if (key->category == GIN_CAT_NORM_KEY && VARATT_IS_EXTERNAL(value))
			key->value = PointerGetDatum(detoast_external_attr(value));
	}
}

/* Add keys of the row.  Whenever memory is used up, those in memory become a run. */
static void
add_keys(GsGinCollector *collector, uint32 count, uint64 tid)
{
	GsGinCollection *collection = collector->collection;
	GsGinKey   *row_keys = collector->row_keys;
	uint32		added;

	while ((added = gpusort_gin_keys_add(collection->keys, row_keys, count, tid)) < count)
	{
		row_keys += added;
		count -= added;
		collection->overflow = GS_FALLBACK_MAINTENANCE_MEM;
		if (!gpusort_gin_keys_is_empty(collection->keys))
			write_run(collector);
		else
		{
			write_long_key(collector, row_keys++, tid);
			count--;
		}
	}
}

static void
add_column(GsGinCollector *collector, OffsetNumber attnum, Datum value, bool isnull, uint64 tid)
{
	const GsGinColumn *column = &collector->order->columns[attnum - 1];
	uint32		count;

	if (column->bytes_tell_keys && !isnull)
		count = extract_directly(collector, attnum, value);
	else
		count = extract_distinct(collector, attnum, value, isnull);
	for (uint32 i = 0; i < count; i++)
		collector->row_keys[i].attnum = attnum;
	if (column->attlen == -1)
		fetch_values(collector, count);

	add_keys(collector, count, tid);
}

/* IndexBuildCallback */
static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	GsGinCollector *collector = arg;
	MemoryContext caller = MemoryContextSwitchTo(collector->row_context);

	for (int i = 0; i < collector->ncolumns; i++)
	{
		add_column(collector, i + 1, values[i], isnull[i], gpusort_tid_number(tid));
		MemoryContextReset(collector->row_context);
	}
	MemoryContextSwitchTo(caller);
	if (++collector->collection->progress->rows_read % ROWS_PER_REPORT == 0)
		show_memory(collector->collection);
}

GsGinCollection *
gpusort_gin_collect(Relation heap, Relation index, IndexInfo *info, TableScanDesc scan,
					int nworkers, Size memory)
{
	GsGinCollection *collection = palloc0(sizeof(GsGinCollection));
	GsGinCollector collector = {.collection = collection};

	memory = Max(memory, MIN_MEMORY);
	collection->order = gpusort_gin_order_create(index);
	collection->run_memory = memory / RUN_MEMORY_PART;
	collection->keys = gpusort_gin_keys_create(collection->order,
											   memory - collection->run_memory);
	collection->runs = gpusort_gin_runs_create(collection->order, NULL);
	collection->progress = gpusort_progress_begin(CurrentMemoryContext, -1, nworkers,
												  gpusort_build_rows_estimate(heap));
	collector.order = collection->order;
	collector.ncolumns = info->ii_NumIndexAttrs;
	collector.max_row_keys = FIRST_KEYS;
	collector.row_keys = palloc(FIRST_KEYS * sizeof(GsGinKey));
	collector.row_context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort GIN extraction",
												  EXTRACTION_BYTES, EXTRACTION_BYTES,
												  ALLOCSET_DEFAULT_MAXSIZE);

	/* TIDs have to come in order, so the scan begins with the first block. */
	collection->nlive = table_index_build_scan(heap, index, info, false, nworkers >= 0,
											   add_row, &collector, scan);
	collection->progress->phase = GS_PHASE_SORTING;
	show_memory(collection);
	gpusort_gin_keys_sort(collection->keys);
	if (gpusort_gin_keys_lacked_memory(collection->keys))
		collection->overflow = GS_FALLBACK_OUT_OF_MEMORY;
	MemoryContextDelete(collector.row_context);
	return collection;
}

void
gpusort_gin_collection_end(GsGinCollection *collection)
{
	gpusort_gin_runs_end(collection->runs);
}
