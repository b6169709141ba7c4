/*-------------------------------------------------------------------------
 *
 * gin_collect.c
 *		Reads a table, or a process's share of it, and collects the keys of a GIN index.
 *
 * PostgreSQL scans the table and passes each row to us.  The operator class's function
 * extracts the keys of each column.  They are collected in memory, and added to the sort
 * whenever it is full, and at the end.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "access/toast_internals.h"
#include "executor/executor.h"
#include "utils/memutils.h"

#include "index/base/build_workers.h"
#include "index/gin/gin_private.h"
#include "sort/base/sort_stats.h"
#include "work.h"

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
	GsGinKeys  *keys;
	TupleTableSlot *slot;		/* for a row of the sort */
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
show_memory(const GsGinCollector *collector)
{
	const GsProgress *sort = gpusort_sort_progress(collector->collection->sort);
	GsProgress *progress = collector->collection->progress;

	progress->memory_bytes = gpusort_gin_keys_bytes(collector->keys) + sort->memory_bytes;
	progress->file_bytes = sort->file_bytes;
}

static void
add_row_to_sort(GsGinCollector *collector, const GsGinRow *row)
{
	GsSort	   *sort = collector->collection->sort;

	gpusort_gin_order_store(collector->order, row, collector->slot);
	if (!gpusort_sort_add(sort, collector->slot))
		elog(ERROR, "keys of a GIN index are lost");
}

/* Add all keys in memory to the sort. */
static void
empty_keys(GsGinCollector *collector)
{
	GsGinRow	row;

	show_memory(collector);
	while (gpusort_gin_keys_take(collector->keys, &row))
	{
		CHECK_FOR_INTERRUPTS();
		add_row_to_sort(collector, &row);
	}
	show_memory(collector);
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

/*
 * Add keys of the row.  Whenever memory is used up, those in memory go to the sort, and so does a
 * key that has no room even among no others.
 */
static void
add_keys(GsGinCollector *collector, uint32 count, uint64 tid)
{
	GsProgress *progress = collector->collection->progress;
	GsGinKey   *row_keys = collector->row_keys;
	uint32		added;

	while ((added = gpusort_gin_keys_add(collector->keys, row_keys, count, tid)) < count)
	{
		row_keys += added;
		count -= added;
		if (!gpusort_gin_keys_is_empty(collector->keys))
		{
			progress->phase = GS_PHASE_WRITING_RUN;
			empty_keys(collector);
			progress->phase = GS_PHASE_READING;
		}
		else
		{
			GsGinRow	row = {.key = *row_keys++,.first = tid};

			add_row_to_sort(collector, &row);
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

	for (int i = 0; i < collector->collection->info->ii_NumIndexAttrs; i++)
	{
		add_column(collector, i + 1, values[i], isnull[i], gpusort_tid_number(tid));
		MemoryContextReset(collector->row_context);
	}
	MemoryContextSwitchTo(caller);
	if (++collector->collection->progress->rows_read % ROWS_PER_REPORT == 0)
		show_memory(collector);
}

void
gpusort_gin_collect(GsGinCollection *collection, int nworkers)
{
	GsGinCollector collector = {.collection = collection,.order = collection->order};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN keys",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;

	collection->progress = gpusort_progress_begin(CurrentMemoryContext, -1, nworkers,
												  gpusort_build_rows_estimate(collection->heap));
	caller = MemoryContextSwitchTo(context);
	collector.keys = gpusort_gin_keys_create(collection->order,
											 Max((GPUSORT_GIN_SORT_PART - 1) *
												 collection->spec->memory, MIN_MEMORY));
	collector.slot = MakeSingleTupleTableSlot(collection->spec->tupdesc, &TTSOpsVirtual);
	collector.max_row_keys = FIRST_KEYS;
	collector.row_keys = palloc(FIRST_KEYS * sizeof(GsGinKey));
	collector.row_context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort GIN extraction",
												  EXTRACTION_BYTES, EXTRACTION_BYTES,
												  ALLOCSET_DEFAULT_MAXSIZE);

	/* TIDs have to come in order, so the scan begins with the first block. */
	collection->nlive = table_index_build_scan(collection->heap, collection->index,
											   collection->info, false,
											   nworkers >= 0, add_row, &collector,
											   collection->scan);
	collection->progress->phase = GS_PHASE_SORTING;
	empty_keys(&collector);
	collection->nentries = gpusort_gin_keys_entries(collector.keys);
	if (nworkers >= 0 && gpusort_gin_keys_lacked_memory(collector.keys))
		gpusort_stats_count_fallback(GS_FALLBACK_OUT_OF_MEMORY);
	ExecDropSingleTupleTableSlot(collector.slot);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}
