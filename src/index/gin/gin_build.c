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

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/progress.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "index/gin/gin_build.h"
#include "index/gin/gin_private.h"
#include "sort/base/warm_memory.h"
#include "work.h"

/* The number of keys between two reports of progress. */
#define KEYS_PER_REPORT		1024

PGDLLEXPORT void gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc);

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
 *		sorting keys
 * ----------------------------------------------------------------
 */

static bool
describe(GsIndexBuild *build)
{
	GsGinBuild *gin = palloc0(sizeof(GsGinBuild));

	gin->order = gpusort_gin_order_create(build->index);
	build->state = gin;
	gpusort_gin_order_describe(gin->order, &build->spec);
	return true;
}

static GsFallback
plan_keys(GsIndexBuild *build)
{
	GsFallback	reason;

	/* The keys that are collected have as much. */
	build->spec.memory /= 2;
	reason = gpusort_sort_plan_keys(&build->spec);

	/* The reader compares all keys. */
	build->spec.check = NULL;

	/* Keys without an encoding are sorted by comparisons. */
	return reason == GS_FALLBACK_TYPE ? GS_FALLBACK_NONE : reason;
}

static void
begin_reading(GsIndexBuild *build)
{
	GsGinBuild *gin = gpusort_gin_build_of(build);

	if (!IsParallelWorker())
		gpusort_gin_writer_create_pages(build->index);
	gin->progress = gpusort_progress_begin(CurrentMemoryContext, -1,
										   IsParallelWorker() ? -1 : build->nworkers,
										   gpusort_build_rows_estimate(build->heap));
	gin->collector = gpusort_gin_collect_begin(build);
}

static TupleTableSlot *
next_row(GsIndexBuild *build)
{
	return gpusort_gin_collect_next(gpusort_gin_build_of(build)->collector);
}

/* ----------------------------------------------------------------
 *		writing
 * ----------------------------------------------------------------
 */

/* Write the keys in order.  Returns false as GsIndexKind wants it. */
static bool
write_keys(GsIndexBuild *build, GsGinReader *reader)
{
	GsGinBuild *gin = gpusort_gin_build_of(build);
	GsGinWriter *writer = gpusort_gin_writer_begin(build->index, gin->order,
												   gpusort_index_build_pages(build));
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
	GinState   *state = &gpusort_gin_build_of(build)->order->state;
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
	GsGinBuild *gin = gpusort_gin_build_of(build);
	GsGinReader *reader = gpusort_gin_reader_begin(gin->order, build->producer.sort,
												   build->spec.tupdesc);
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
	.worker_main = "gpusort_gin_worker_main",
	.plan_workers = plan_workers,
	.describe = describe,
	.plan = plan_keys,
	.begin = begin_reading,
	.next = next_row,
	.write = write_index
};

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_gin_worker_main(dsm_segment *segment, shm_toc *toc)
{
	gpusort_index_build_work(&gpusort_gin_kind, toc);
}
