/*-------------------------------------------------------------------------
 *
 * gin_build.c
 *		Builds a GIN index: extracts keys, sorts them, writes pages.
 *
 * The operator class's function extracts keys from the table's rows.  They are collected in
 * memory, each once, with the TIDs of its rows (gin_keys.c).  Whenever memory is full, and at the
 * end of the table, they become rows of a sort, of a key and TIDs, one after the other, and the
 * memory is used again.  The index is written from the keys in order (gin_rows.c, gin_writer.c).
 *
 *		row --extractValue--> keys and TID --> gin_keys --> sort
 *															 |
 *				file, WAL <--page_writer-- gin_writer <-- gin_rows
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/toast_internals.h"
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
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "index/gin/gin.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "work.h"

/* The number of keys between two reports of progress. */
#define KEYS_PER_REPORT		1024

/* The least memory of a process, for the first block of keys and some more. */
#define MIN_MEMORY			((Size) 256 * 1024)

/* The number of rows between two reports of the memory. */
#define ROWS_PER_REPORT		1024

/* The memory that extraction keeps from row to row. */
#define EXTRACTION_BYTES	((Size) 64 * 1024)

/* The state of a build, see GsIndexBuild.  All but the first four is for reading the table. */
typedef struct GsGinBuild
{
	GsIndexBuild *build;
	GsGinOrder *order;
	GsProgress *progress;		/* of this process */
	int64		ncollected;		/* pairs of key and TID, of this process */

	MemoryContext context;		/* of the keys */
	GsBudget   *memory;			/* likewise */
	GsGinKeys  *keys;
	bool		emptying;		/* do they become rows of the sort? */
	bool		ended;			/* has the table no more rows? */

	/* The current row, of which the keys of a column are added. */
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64		tid;
	int			ncolumns;		/* whose keys have been extracted */
	MemoryContext row_context;	/* has those of the last of these columns */
	GsGinRowKeys row_keys;
} GsGinBuild;

/* ----------------------------------------------------------------
 *		how many workers a build has
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

/*
 * Returns how many workers PostgreSQL plans or, before PostgreSQL 18, would plan for a btree; none
 * without memory that processes share.
 */
static int
plan_workers(const GsIndexBuild *build)
{
	Relation	heap = build->heap;

	if (gpusort_warm_memory_shared_limit() == 0)
		return 0;
	if (build->info->ii_ParallelWorkers > 0)
		return build->info->ii_ParallelWorkers;
	if (max_parallel_maintenance_workers == 0 || IsInParallelMode() ||
		RelationUsesLocalBuffers(heap) || !is_for_workers(build->index))
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(build->index));
}

/* ----------------------------------------------------------------
 *		extracting keys
 * ----------------------------------------------------------------
 */

StaticAssertDecl(true == GIN_CAT_NULL_KEY && false == GIN_CAT_NORM_KEY &&
				 sizeof(bool) == sizeof(GinNullCategory),
				 "flags of NULLs must be categories of keys");

/*
 * Get the keys of a value by the operator class's function alone.  PostgreSQL sorts the keys
 * of each row and drops equal ones.  Where these have equal bytes that is not needed, since
 * they have the same record.
 */
static Datum *
extract_directly(GsGinBuild *gin, OffsetNumber attnum, Datum value, int32 *count,
				 GinNullCategory * *categories)
{
	GinState   *state = &gin->order->state;
	bool	   *nulls = NULL;
	Datum	   *values;

	*count = 0;
	values = (Datum *)
		DatumGetPointer(FunctionCall3Coll(&state->extractValueFn[attnum - 1],
										  state->supportCollation[attnum - 1],
										  value, PointerGetDatum(count),
										  PointerGetDatum(&nulls)));
	if (values == NULL || *count <= 0)
	{
		*count = 1;
		values = palloc0(sizeof(Datum));
		*categories = palloc(sizeof(GinNullCategory));
		(*categories)[0] = GIN_CAT_EMPTY_ITEM;
	}
	else
		*categories = (GinNullCategory *) (nulls != NULL ? nulls : palloc0(*count));
	return values;
}

/* Fetch values that are stored out of line, which rarely happens to keys. */
static void
fetch_values(Datum *values, const GinNullCategory * categories, int32 count)
{
	for (int32 i = 0; i < count; i++)
		if (categories[i] == GIN_CAT_NORM_KEY &&
			VARATT_IS_EXTERNAL((struct varlena *) DatumGetPointer(values[i])))
			values[i] = PointerGetDatum(detoast_external_attr((struct varlena *)
															  DatumGetPointer(values[i])));
}

/* Extract the keys of a column of the row, from 0. */
static void
extract_column(GsGinBuild *gin, int i)
{
	const GsGinColumn *column = &gin->order->columns[i];
	MemoryContext caller;
	GinNullCategory *categories;
	Datum	   *values;
	int32		count;

	MemoryContextReset(gin->row_context);
	caller = MemoryContextSwitchTo(gin->row_context);
	if (column->bytes_tell_keys && !gin->isnull[i])
		values = extract_directly(gin, i + 1, gin->values[i], &count, &categories);
	else
		values = ginExtractEntries(&gin->order->state, i + 1, gin->values[i], gin->isnull[i],
								   &count, &categories);
	if (column->attlen == -1)
		fetch_values(values, categories, count);
	gin->row_keys = (GsGinRowKeys)
	{
		i + 1, values, categories, count, 0
	};
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		collecting keys
 * ----------------------------------------------------------------
 */

/* For the view of progress. */
static void
show_memory(const GsGinBuild *gin)
{
	const GsProgress *sort = gpusort_sort_progress(gin->build->producer.sort);

	gin->progress->memory_bytes = gin->memory->used + sort->memory_bytes;
	gin->progress->file_bytes = sort->file_bytes;
}

/* Read the next row of the table.  Returns false if there is none. */
static bool
read_row(GsGinBuild *gin)
{
	GsHeapRow	row;

	if (!gpusort_heap_rows_next(gin->build->rows, &row, gin->values,
								gin->isnull))
		return false;
	gin->tid = gpusort_tid_number(&row.tid);
	gin->ncolumns = 0;
	if (++gin->progress->rows_read % ROWS_PER_REPORT == 0)
		show_memory(gin);
	return true;
}

/* Collect keys until memory is used up, or at most until the table ends. */
static void
collect(GsGinBuild *gin)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_gin_keys_add(gin->keys, &gin->row_keys, gin->tid))
			return;
		if (gin->ncolumns == gin->build->info->ii_NumIndexAttrs &&
			!read_row(gin))
		{
			gin->ended = true;
			return;
		}
		extract_column(gin, gin->ncolumns++);
	}
}

/*
 * Collect keys, and begin to make rows of them.  Returns false, with a row, if that is a key that
 * has no room even among no others.
 */
static bool
begin_emptying(GsGinBuild *gin, GsGinRow *row)
{
	gin->progress->phase = GS_PHASE_READING;
	collect(gin);
	if (!gin->ended && gpusort_gin_keys_is_empty(gin->keys))
	{
		*row = (GsGinRow)
		{
			.key = gpusort_gin_row_key(&gin->row_keys, gin->row_keys.next++),.first = gin->tid
		};
		return false;
	}
	gin->progress->phase = gin->ended ? GS_PHASE_SORTING : GS_PHASE_WRITING_RUN;
	show_memory(gin);
	return gin->emptying = true;
}

/* All keys are in the sort. */
static void
end_collecting(GsGinBuild *gin)
{
	gin->ncollected = gpusort_gin_keys_entries(gin->keys);
	if (!IsParallelWorker() && gin->memory->out_of_memory)
		gpusort_stats_count_reason(GS_REASON_OUT_OF_MEMORY);
	MemoryContextDelete(gin->context);
}

/* Get the next row of the sort.  Returns false after the last one. */
static bool
take_row(GsGinBuild *gin, GsGinRow *row)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gin->emptying && !begin_emptying(gin, row))
			return true;
		if (gpusort_gin_keys_take(gin->keys, row))
			return true;
		gin->emptying = false;
		show_memory(gin);
		if (gin->ended)
			return false;
	}
}

/* ----------------------------------------------------------------
 *		rows of the sort
 * ----------------------------------------------------------------
 */

static bool
describe(GsIndexBuild *build)
{
	GsGinBuild *gin = palloc0(sizeof(GsGinBuild));

	gin->build = build;
	gin->order = gpusort_gin_order_create(build->index);
	build->state = gin;
	gpusort_gin_order_describe(gin->order, &build->spec);
	return true;
}

static GsReason
plan_keys(GsIndexBuild *build)
{
	GsReason	reason;

	/* The keys that are collected have as much. */
	build->spec.memory /= 2;
	reason = gpusort_sort_plan_keys(&build->spec);

	/* The reader compares all keys. */
	build->spec.check = NULL;

	/* Keys without an encoding are sorted by comparisons. */
	return reason == GS_REASON_TYPE ? GS_REASON_NONE : reason;
}

/* Prepare to collect keys in the current memory context. */
static void
begin_collecting(GsGinBuild *gin)
{
	gin->ncolumns = gin->build->info->ii_NumIndexAttrs;
	gin->memory = gpusort_budget_create(Max(gin->build->spec.memory, MIN_MEMORY));
	gin->keys = gpusort_gin_keys_create(gin->order, gin->memory);
	gin->row_context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN extraction",
											 EXTRACTION_BYTES, EXTRACTION_BYTES,
											 ALLOCSET_DEFAULT_MAXSIZE);
}

static void
begin_reading(GsIndexBuild *build)
{
	GsGinBuild *gin = build->state;
	MemoryContext caller;

	if (!IsParallelWorker())
		gpusort_gin_writer_create_pages(build->index);
	gin->progress = gpusort_progress_begin(CurrentMemoryContext, -1,
										   IsParallelWorker() ? -1 : build->nworkers,
										   gpusort_build_rows_estimate(build->heap));
	gin->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort GIN keys",
										 ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(gin->context);
	begin_collecting(gin);
	MemoryContextSwitchTo(caller);
}

static TupleTableSlot *
next_row(GsIndexBuild *build)
{
	GsGinBuild *gin = build->state;
	GsGinRow	row;

	if (!take_row(gin, &row))
	{
		end_collecting(gin);
		return NULL;
	}
	gpusort_gin_order_store(gin->order, &row, build->slot);
	return build->slot;
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

/* Write the keys in order.  Returns false as GsIndexKind wants it. */
static bool
write_keys(GsIndexBuild *build, GsGinReader *reader)
{
	GsGinBuild *gin = build->state;
	GsGinWriter *writer = gpusort_gin_writer_begin(build, gin->order);
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
			build->ntuples += count;
		}
		gpusort_gin_writer_end_key(writer);
		gin->progress->rows_returned = (int64) build->ntuples;
		if (++nkeys % KEYS_PER_REPORT == 0)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
										 (int64) build->ntuples);
	}
	build->wrong_encoding = gpusort_gin_reader_wrong_encoding(reader);
	if (build->wrong_encoding != NULL)
	{
		gpusort_gin_writer_abandon(writer);
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
insert_keys(GsIndexBuild *build, GsGinReader *reader)
{
	GinStatsData stats = {.nEntryPages = 1};
	ItemPointerData items[GPUSORT_GIN_READER_TIDS];
	GinState   *state = &((GsGinBuild *) build->state)->order->state;
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
			ginEntryInsert(state, key.attnum, key.value, key.category,
						   items, count, &stats);
			build->ntuples += count;
		}
	}
	stats.nTotalPages = RelationGetNumberOfBlocks(build->index);
	gpusort_gin_writer_end_index(build->index, &stats, stats.nTotalPages);
}

static bool
write_index(GsIndexBuild *build)
{
	GsGinBuild *gin = build->state;
	GsGinReader *reader = gpusort_gin_reader_begin(build, gin->order);
	bool		written = true;

	gin->progress->rows_sorted = gin->progress->rows_read;
	gin->progress->phase = GS_PHASE_RETURNING;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, gin->ncollected);

	/* Functions in the index may have changed rows of the table. */
	if (gpusort_gin_writer_has_rows(build->index))
		insert_keys(build, reader);
	else
		written = write_keys(build, reader);
	gin->progress->rows_returned = (int64) build->ntuples;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, (int64) build->ntuples);
	return written;
}

/* ----------------------------------------------------------------
 *		the kind of index
 * ----------------------------------------------------------------
 */

const GsIndexKind gpusort_gin_kind = {
	.stock_build = ginbuild,
	.plan_workers = plan_workers,
	.describe = describe,
	.plan = plan_keys,
	.begin = begin_reading,
	.next = next_row,
	.write = write_index
};
