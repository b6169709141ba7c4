/*-------------------------------------------------------------------------
 *
 * gin_collect.c
 *		Collects the keys of a GIN index from rows of the table, and makes rows of a sort of them.
 *
 * The operator class's function extracts the keys of each column.  They are collected in
 * memory.  Whenever that is full, and at the end of the table, they become rows of the sort, one
 * after the other, and the memory is used again.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/toast_internals.h"
#include "executor/executor.h"
#include "utils/memutils.h"

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

struct GsGinCollector
{
	GsIndexBuild *build;
	GsGinOrder *order;
	GsProgress *progress;
	MemoryContext context;		/* of all that is here but the collector */
	GsGinKeys  *keys;
	bool		emptying;		/* do they become rows of the sort? */
	bool		ended;			/* has the table no more rows? */

	/* The current row, of which the keys of a column are added. */
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64		tid;
	int			ncolumns;		/* whose keys have been extracted */
	MemoryContext row_context;	/* has those of the last of these columns */
	GsGinKey   *row_keys;
	uint32		max_row_keys;
	uint32		next_key;		/* the first one that is not added */
	uint32		end_key;
};

/* ----------------------------------------------------------------
 *		extracting keys
 * ----------------------------------------------------------------
 */

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

/* Extract the keys of a column of the row, from 0. */
static void
extract_column(GsGinCollector *collector, int i)
{
	const GsGinColumn *column = &collector->order->columns[i];
	MemoryContext caller;
	uint32		count;

	MemoryContextReset(collector->row_context);
	caller = MemoryContextSwitchTo(collector->row_context);
	if (column->bytes_tell_keys && !collector->isnull[i])
		count = extract_directly(collector, i + 1, collector->values[i]);
	else
		count = extract_distinct(collector, i + 1, collector->values[i], collector->isnull[i]);
	for (uint32 k = 0; k < count; k++)
		collector->row_keys[k].attnum = i + 1;
	if (column->attlen == -1)
		fetch_values(collector, count);
	collector->next_key = 0;
	collector->end_key = count;
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		collecting keys
 * ----------------------------------------------------------------
 */

/* For the view of progress. */
static void
show_memory(const GsGinCollector *collector)
{
	const GsProgress *sort = gpusort_sort_progress(collector->build->producer.sort);

	collector->progress->memory_bytes = gpusort_gin_keys_bytes(collector->keys) +
		sort->memory_bytes;
	collector->progress->file_bytes = sort->file_bytes;
}

/* Read the next row of the table.  Returns false if there is none. */
static bool
next_row(GsGinCollector *collector)
{
	GsHeapRow	row;

	if (!gpusort_heap_rows_next(collector->build->rows, &row, collector->values,
								collector->isnull))
		return false;
	collector->tid = gpusort_tid_number(&row.tid);
	collector->ncolumns = 0;
	if (++collector->progress->rows_read % ROWS_PER_REPORT == 0)
		show_memory(collector);
	return true;
}

/* Collect keys until memory is used up, or at most until the table ends. */
static void
collect(GsGinCollector *collector)
{
	for (;;)
	{
		if (collector->next_key < collector->end_key)
			collector->next_key += gpusort_gin_keys_add(collector->keys,
														collector->row_keys + collector->next_key,
														collector->end_key - collector->next_key,
														collector->tid);
		if (collector->next_key < collector->end_key)
			return;
		if (collector->ncolumns == collector->build->info->ii_NumIndexAttrs &&
			!next_row(collector))
		{
			collector->ended = true;
			return;
		}
		extract_column(collector, collector->ncolumns++);
	}
}

/*
 * Collect keys, and begin to make rows of them.  Returns false, with a row, if that is a key that
 * has no room even among no others.
 */
static bool
begin_emptying(GsGinCollector *collector, GsGinRow *row)
{
	collector->progress->phase = GS_PHASE_READING;
	collect(collector);
	if (!collector->ended && gpusort_gin_keys_is_empty(collector->keys))
	{
		*row = (GsGinRow)
		{
			.key = collector->row_keys[collector->next_key++],.first = collector->tid
		};
		return false;
	}
	collector->progress->phase = collector->ended ? GS_PHASE_SORTING : GS_PHASE_WRITING_RUN;
	show_memory(collector);
	return collector->emptying = true;
}

/* All keys are in the sort. */
static void
end_collecting(GsGinCollector *collector)
{
	gpusort_gin_build_of(collector->build)->ncollected = gpusort_gin_keys_entries(collector->keys);
	if (!IsParallelWorker() && gpusort_gin_keys_lacked_memory(collector->keys))
		gpusort_stats_count_fallback(GS_FALLBACK_OUT_OF_MEMORY);
	MemoryContextDelete(collector->context);
}

/* Get the next row of the sort.  Returns false after the last one. */
static bool
take_row(GsGinCollector *collector, GsGinRow *row)
{
	for (;;)
	{
		if (!collector->emptying && !begin_emptying(collector, row))
			return true;
		if (gpusort_gin_keys_take(collector->keys, row))
			return true;
		collector->emptying = false;
		show_memory(collector);
		if (collector->ended)
			return false;
	}
}

TupleTableSlot *
gpusort_gin_collect_next(GsGinCollector *collector)
{
	TupleTableSlot *slot = collector->build->slot;
	GsGinRow	row;

	if (!take_row(collector, &row))
	{
		end_collecting(collector);
		return NULL;
	}
	gpusort_gin_order_store(collector->order, &row, slot);
	return slot;
}

GsGinCollector *
gpusort_gin_collect_begin(GsIndexBuild *build)
{
	GsGinCollector *collector = palloc0(sizeof(GsGinCollector));
	MemoryContext caller;

	collector->build = build;
	collector->order = gpusort_gin_build_of(build)->order;
	collector->progress = gpusort_gin_build_of(build)->progress;
	collector->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN keys",
											   ALLOCSET_DEFAULT_SIZES);
	collector->ncolumns = build->info->ii_NumIndexAttrs;
	caller = MemoryContextSwitchTo(collector->context);
	collector->keys = gpusort_gin_keys_create(collector->order,
											  Max(build->spec.memory, MIN_MEMORY));
	collector->max_row_keys = FIRST_KEYS;
	collector->row_keys = palloc(FIRST_KEYS * sizeof(GsGinKey));
	collector->row_context = AllocSetContextCreate(collector->context,
												   "pg_gpusort GIN extraction",
												   EXTRACTION_BYTES, EXTRACTION_BYTES,
												   ALLOCSET_DEFAULT_MAXSIZE);
	MemoryContextSwitchTo(caller);
	return collector;
}
