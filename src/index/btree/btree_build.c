/*-------------------------------------------------------------------------
 *
 * btree_build.c
 *		Builds a btree index: reads the table, sorts, writes pages.
 *
 * The rows of the table are added to a sort, on the CPU or on a GPU, by one process or by
 * several, which returns them in index order.  Each row then becomes an index tuple and
 * is given to the loader.
 *
 * Nothing is written to the index before all rows are sorted.  Until then, a
 * build that runs into trouble can be left to PostgreSQL's own build, which
 * starts over.  If a GPU is lost with rows after that, the index is truncated
 * and the build starts over.
 *
 * With workers, the processes take blocks of the table from a common counter, and add the rows to
 * the leader's sort (producer.h).  Rows of several processes come in no particular order, so the
 * TID is an additional sort key.  Without a GPU, workers may still sort the last rows while the
 * leader makes the first pages.  Then they write pages.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/nbtree.h"
#include "catalog/catalog.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "heap/heap_rows.h"
#include "index/base/build_workers.h"
#include "index/base/index_rows.h"
#include "index/base/page_writer.h"
#include "index/btree/btree.h"
#include "index/btree/btree_private.h"
#include "key/key_statistics.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "sort/gpu/gpu_session.h"
#include "sort/producer.h"
#include "sort/sort.h"
#include "work.h"

/* The number of rows between two reports of progress. */
#define ROWS_PER_REPORT		1024

/* If so few rows can be written where they are, so many are not tried. */
#define FEW_ROWS_IN_PLACE	64

/* Keys of the parts of shared memory. */
#define KEY_BLOCKS		GPUSORT_BUILD_FIRST_KEY
#define KEY_SNAPSHOT	(GPUSORT_BUILD_FIRST_KEY + 1)

typedef struct GsBtreeBuild
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GsSortSpec	spec;
	GsHeapRows *rows;
	GsSort	   *sort;
	bool		by_tid;			/* is the TID a sort key, as workers need? */
	GsBuildWorkers *workers;	/* or NULL */
	bool		collected;		/* are their results in 'rows'? */
	bool		together;		/* do they add rows? */
	int			nworkers;		/* that may be started */
	bool		awaited;		/* have they put all of their rows? */
	GsFallback	failure;		/* why rows of workers are missing */
	TupleTableSlot *slot;		/* for rows of the sort */
	double		nlive;			/* live rows of the table */
	double		nrows;			/* rows that went into the index */
} GsBtreeBuild;

PGDLLEXPORT void gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc);

/* ----------------------------------------------------------------
 *		choice of builds
 * ----------------------------------------------------------------
 */

/*
 * Are workers useful?  They can put rows into a GPU session, or sort them in memory that all
 * processes share.  A leader that merged their runs alone would take as long as without them.
 */
static bool
wants_workers(GsBtreeBuild *build)
{
	GsSortSpec *spec = &build->spec;

	build->nworkers = gpusort_build_workers_useful(build->heap, build->info->ii_ParallelWorkers);
	if (build->nworkers == 0 ||
		(gpusort_warm_memory_shared_limit() == 0 &&
		 gpusort_gpu_session_check(spec->expected_rows, false) != GS_FALLBACK_NONE))
		return false;
	spec->processes = 1 + build->nworkers;
	return true;
}

/* Estimates the width of an index column in bytes. */
static int
estimate_column(const GsBtreeBuild *build, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(build->index), i);
	AttrNumber	attno = build->info->ii_IndexAttrNumbers[i];
	int			width = 0;

	if (att->attbyval)
		return sizeof(Datum);
	if (AttributeNumberIsValid(attno))
		width = get_attavgwidth(RelationGetRelid(build->heap), attno);
	return width > 0 ? width :
		get_typavgwidth(att->atttypid, att->atttypmod);
}

/* Estimates the width of a row, with its TID, in bytes. */
static int
estimate_width(const GsBtreeBuild *build)
{
	int			width = sizeof(uint64);

	for (int i = 0; i < build->info->ii_NumIndexAttrs; i++)
		width += estimate_column(build, i);
	return width;
}

/* Would a GPU leave most rows as ties? */
static bool
expect_ties(const GsBtreeBuild *build)
{
	const GsSortSpec *spec = &build->spec;
	GsSortKeys	keys = spec->keys;
	GsTableColumn columns[INDEX_MAX_KEYS];

	/*
	 * Behind the keys of the index there may be the TID, by which a GPU
	 * leaves no ties.
	 */
	keys.nkeys = build->info->ii_NumIndexKeyAttrs;
	if (gpusort_gpu_session_check(spec->expected_rows, false) != GS_FALLBACK_NONE)
		return false;
	for (int k = 0; k < keys.nkeys; k++)
	{
		columns[k].table = RelationGetRelid(build->heap);
		columns[k].attno = build->info->ii_IndexAttrNumbers[k];
	}
	return gpusort_key_statistics_expect_ties(&keys, columns, GPUSORT_GPU_STRING_WORDS,
											  spec->expected_rows);
}

/* Describe the sort.  Returns GS_FALLBACK_NONE, or why the build is left to PostgreSQL. */
static GsFallback
describe_sort(GsBtreeBuild *build)
{
	GsSortSpec *spec = &build->spec;
	GsFallback	reason;

	spec->expected_rows = gpusort_build_rows_estimate(build->heap);
	spec->repeatable = true;
	build->by_tid = wants_workers(build);
	/* All processes together have maintenance_work_mem. */
	spec->memory = (Size) maintenance_work_mem * 1024 / Max(spec->processes, 1);
	if (!gpusort_index_rows_describe(build->index, build->by_tid, spec))
		return GS_FALLBACK_TYPE;
	spec->expected_ties = expect_ties(build);
	reason = gpusort_sort_plan_keys(spec);
	if (reason == GS_FALLBACK_NONE)
		spec->expected_width = estimate_width(build);
	return reason;
}

/* ----------------------------------------------------------------
 *		reading rows
 * ----------------------------------------------------------------
 */

/*
 * Report a phase to pg_stat_progress_create_index, and the number of rows, or 0 if it is
 * not known yet.  The other counters are reset: a phase may have no blocks to read, and
 * one that begins again has done nothing.
 */
static void
enter_phase(int phase, int64 nrows)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_CREATEIDX_TUPLES_DONE
	};
	const int64 values[] = {phase, 0, 0, nrows, 0};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/*
 * Start the planned workers to help to read the table, whose remaining rows are shared with them
 * from now on.  Returns NULL if none are available.
 */
static GsBuildWorkers *
start_planned_workers(GsBtreeBuild *build, const GsParallelSort *parallel)
{
	GsBuildWorkers *workers = palloc0(sizeof(GsBuildWorkers));
	Snapshot	snapshot = gpusort_heap_rows_snapshot(build->rows);

	gpusort_build_workers_create(workers, "gpusort_btree_worker_main", build->nworkers);
	gpusort_build_workers_estimate(workers, sizeof(GsHeapShare));
	if (snapshot != NULL)
		gpusort_build_workers_estimate(workers, EstimateSnapshotSpace(snapshot));
	if (!gpusort_build_workers_allocate(workers, build->heap, build->index, build->info,
										&build->spec, parallel))
	{
		pfree(workers);
		return NULL;
	}
	gpusort_heap_rows_share(build->rows, gpusort_build_workers_make(workers, KEY_BLOCKS,
																	sizeof(GsHeapShare)));
	if (snapshot != NULL)
		SerializeSnapshot(snapshot,
						  gpusort_build_workers_make(workers, KEY_SNAPSHOT,
													 EstimateSnapshotSpace(snapshot)));
	gpusort_build_workers_launch(workers);
	return workers;
}

/*
 * Start workers, if they are wanted and the sort accepts rows of other
 * processes.
 */
static void
start_workers(GsBtreeBuild *build)
{
	GsParallelSort parallel;

	if (!build->by_tid ||
		!gpusort_parallel_sort_open(&parallel, build->sort, 0))
		return;
	build->workers = start_planned_workers(build, &parallel);
	build->together = build->workers != NULL;
}

/*
 * When the leader has no more rows to read, and all workers have read theirs: add their results
 * to 'rows'.
 */
static void
collect_results(GsBtreeBuild *build)
{
	if (!build->collected)
		gpusort_heap_rows_unshare(build->rows);
	build->collected = true;
}

/* Wait for the rows of workers, and rethrow an error of theirs. */
static void
await_workers(GsBtreeBuild *build)
{
	if (build->workers != NULL && !build->awaited)
	{
		(void) gpusort_build_workers_await(build->workers);
		collect_results(build);
		build->failure = gpusort_parallel_sort_failure(build->workers->parallel);
	}
	build->awaited = true;
}

/* Read the next row of the table into the slot.  Returns false at the end. */
static bool
read_row(GsBtreeBuild *build)
{
	TupleTableSlot *slot = build->slot;
	GsHeapRow	row;

	if (!gpusort_heap_rows_next(build->rows, &row, slot->tts_values,
								slot->tts_isnull))
		return false;
	slot->tts_values[build->info->ii_NumIndexAttrs] =
		gpusort_index_rows_pack_tid(&row);
	return true;
}

/* Add the rows that this process reads.  Returns false if rows are lost. */
static bool
add_own_rows(GsBtreeBuild *build)
{
	while (read_row(build))
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(build->sort, build->slot))
			return false;
	}
	return true;
}

/* GsProducerNext */
static TupleTableSlot *
next_row(void *arg)
{
	GsBtreeBuild *build = arg;

	if (read_row(build))
		return build->slot;
	enter_phase(PROGRESS_BTREE_PHASE_PERFORMSORT_1, 0);
	return NULL;
}

/* Have all processes add rows.  Returns whether workers still sort while rows can be read. */
static bool
produce_rows(GsBtreeBuild *build)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort rows of a leader",
												  ALLOCSET_DEFAULT_SIZES);
	GsProducer	producer = {
		.spec = build->spec,
		.sort = build->sort,
		.parallel = build->workers->parallel,
		.next = next_row,
		.arg = build
	};

	gpusort_producer_run(&producer, context);
	MemoryContextDelete(context);
	return producer.ahead;
}

/* Add the rows of all processes to the sort. */
static void
add_rows_together(GsBtreeBuild *build)
{
	if (produce_rows(build))
	{
		collect_results(build);
		return;
	}
	await_workers(build);
	if (build->failure != GS_FALLBACK_NONE)
		gpusort_sort_fail(build->sort, build->failure);
	enter_phase(PROGRESS_BTREE_PHASE_PERFORMSORT_1,
				gpusort_heap_rows_count(build->rows));
}

/* Add the rows of the table, those of workers too. */
static void
add_rows(GsBtreeBuild *build)
{
	if (build->together)
		add_rows_together(build);
	else if (add_own_rows(build))
		enter_phase(PROGRESS_BTREE_PHASE_PERFORMSORT_1,
					gpusort_heap_rows_count(build->rows));
}

/* Prepare to read rows.  The slot begins without NULLs. */
static void
begin_reading(GsBtreeBuild *build)
{
	TupleTableSlot *slot = build->slot;

	enter_phase(PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN, 0);
	ExecClearTuple(slot);
	memset(slot->tts_isnull, 0,
		   slot->tts_tupleDescriptor->natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
}

/* Rows are lost: prepare to read the table again. */
static void
begin_again(GsBtreeBuild *build)
{
	gpusort_sort_stop(build->sort);
	await_workers(build);
	build->failure = GS_FALLBACK_NONE;
	build->together = false;
	begin_reading(build);
	gpusort_heap_rows_rewind(build->rows);
	gpusort_sort_restart(build->sort);
}

/* Read the table and sort its rows, again if they are lost. */
static void
sort_rows(GsBtreeBuild *build)
{
	do
	{
		if (gpusort_sort_is_lost(build->sort))
			begin_again(build);
		add_rows(build);
	} while (!gpusort_sort_finish(build->sort));
}

/* Begin to sort. */
static void
begin_sort(GsBtreeBuild *build)
{
	GsSortSpec *spec = &build->spec;

	spec->index_build = true;
	spec->by_pages = true;
	build->slot = MakeSingleTupleTableSlot(spec->tupdesc, &TTSOpsVirtual);
	begin_reading(build);
	build->rows = gpusort_heap_rows_begin(build->heap, build->index,
										  build->info);
	build->sort = gpusort_sort_begin(spec);
	start_workers(build);
}

/* ----------------------------------------------------------------
 *		writing pages
 * ----------------------------------------------------------------
 */

/* Where rows go. */
typedef struct GsBtreeWriter
{
	GsBtreeLoader *loader;
	GsTupleFormer *former;
	const GsLeafForm *form;		/* of rows in place, or NULL */
	GsUniqueCheck *check;		/* or NULL */
	int64		nrows;			/* so far */
	int64		next_in_place;	/* number of rows when to try those in place
								 * again */
} GsBtreeWriter;

/* GsRecallRows */
static void
recall_rows(void *arg, int64 position)
{
	GsBtreeWriter *writer = arg;

	gpusort_btree_loader_recall(writer->loader, position);
}

static void
begin_writing(GsBtreeBuild *build, GsBtreeWriter *writer)
{
	bool		unique = build->info->ii_Unique;
	GsPageQueue *pages = build->workers == NULL ? NULL :
		gpusort_build_workers_pages(build->workers);

	memset(writer, 0, sizeof(*writer));
	writer->loader = gpusort_btree_loader_begin(build->heap, build->index, unique,
												&build->spec, pages);
	writer->former = gpusort_tuple_former_create(build->index);
	writer->form = gpusort_btree_loader_form(writer->loader);
	if (writer->form != NULL && pages != NULL)
		gpusort_sort_lend(build->sort, recall_rows, writer);
	if (unique)
		writer->check = gpusort_unique_check_create(build->heap, build->index,
													build->info, &build->spec.keys);
}

/* Write the row in the slot. */
static inline void
write_row(GsBtreeBuild *build, GsBtreeWriter *writer)
{
	Datum	   *values = build->slot->tts_values;
	bool	   *isnull = build->slot->tts_isnull;
	GsHeapRow	row;

	gpusort_index_rows_unpack_tid(values[build->info->ii_NumIndexAttrs], &row);
	if (writer->check != NULL && row.alive)
		gpusort_unique_check_row(writer->check, values, isnull);
	gpusort_btree_loader_add(writer->loader,
							 gpusort_tuple_former_form(writer->former, values, isnull,
													   &row.tid));
	writer->nrows++;
}

/* Compare a row in place that has been written with the live row before it. */
static void
check_row_in_place(const GsBtreeWriter *writer, const char *row)
{
	Datum		values[INDEX_MAX_KEYS + 1];
	bool		isnull[INDEX_MAX_KEYS + 1] = {false};

	gpusort_leaf_values(writer->form, row, values);
	gpusort_unique_check_row(writer->check, values, isnull);
}

/* Are the first n rows in place in order, as far as that is checked? */
static bool
are_in_order(GsBtreeBuild *build, const GsBtreeWriter *writer, const GsRowsInPlace *rows,
			 uint32 n)
{
	Datum		values[INDEX_MAX_KEYS + 1];
	bool		isnull[INDEX_MAX_KEYS + 1] = {false};
	GsRowPlace	place = gpusort_first_place(rows);

	while (place.number < n)
	{
		if (place.number % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_leaf_values(writer->form, place.row, values);
		if (!gpusort_sort_check_in_place(build->sort, values, isnull))
			return false;
		gpusort_work_add(sizeof(Datum));
		place = gpusort_next_place(rows, place);
	}
	return true;
}

/*
 * Write rows where they are in memory, if that is possible.  Returns false if they are not in
 * order.
 */
static inline bool
write_rows_in_place(GsBtreeBuild *build, GsBtreeWriter *writer)
{
	GsRowsInPlace rows;
	const char *last = NULL;
	uint32		n;

	if (writer->form == NULL || writer->nrows < writer->next_in_place ||
		!gpusort_sort_in_place(build->sort, &rows))
		return true;
	n = gpusort_btree_loader_add_rows(writer->loader, &rows, writer->nrows, &last);
	if (writer->check != NULL && n > 0)
	{
		/* Each row is known to differ from the next one. */
		check_row_in_place(writer, rows.first);
		if (last != rows.first)
			check_row_in_place(writer, last);
	}
	if (!are_in_order(build, writer, &rows, n))
		return false;
	gpusort_sort_skip(build->sort, n);
	writer->nrows += n;
	if (n < FEW_ROWS_IN_PLACE)
		writer->next_in_place = writer->nrows + FEW_ROWS_IN_PLACE;
	return true;
}

/*
 * Write the index from sorted rows.  Returns false, with nothing written, if the rows were lost
 * meanwhile or are not in order.
 */
static bool
write_index(GsBtreeBuild *build)
{
	GsSort	   *sort = build->sort;
	GsBtreeWriter writer;
	int64		reported = 0;

	begin_writing(build, &writer);
	enter_phase(PROGRESS_BTREE_PHASE_LEAF_LOAD, gpusort_sort_count(sort));
	while (gpusort_sort_next(sort, true, build->slot))
	{
		CHECK_FOR_INTERRUPTS();
		write_row(build, &writer);
		if (!write_rows_in_place(build, &writer))
			break;
		if (writer.nrows >= reported + ROWS_PER_REPORT)
		{
			reported = writer.nrows;
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, reported);
		}
	}
	if (gpusort_sort_is_lost(sort) || gpusort_sort_wrong_encoding(sort) != NULL)
	{
		gpusort_btree_loader_abandon(writer.loader);
		return false;
	}
	gpusort_btree_loader_end(writer.loader);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, writer.nrows);
	build->nrows = (double) writer.nrows;
	return true;
}

/* Count the build for the kind of sort that had the rows in the end. */
static void
count_build(GsSort *sort)
{
	GsSortReport report;
	GsSortCounts counts = {.index_builds = 1};

	gpusort_sort_report(sort, &report);
	gpusort_stats_count_sort(report.kind, &counts);
}

/* Returns GS_FALLBACK_NONE, or with nothing written the reason why PostgreSQL builds the index. */
static GsFallback
build_index(GsBtreeBuild *build)
{
	GsSortReport report;
	GsFallback	reason = GS_FALLBACK_OPEN_ROWS;
	bool		written = false;

	begin_sort(build);
	sort_rows(build);
	gpusort_sort_report(build->sort, &report);
	gpusort_requirement_check(&report);
	while (!gpusort_heap_rows_is_blocked(build->rows) && !written)
	{
		written = write_index(build);
		if (gpusort_sort_wrong_encoding(build->sort) != NULL)
		{
			reason = GS_FALLBACK_WRONG_ORDER;
			break;
		}
		if (!written)
			sort_rows(build);
	}
	if (!written)
		gpusort_sort_stop(build->sort);
	if (build->workers != NULL)
	{
		gpusort_build_workers_finish(build->workers);
		collect_results(build);
	}
	if (written)
		count_build(build->sort);
	else if (reason == GS_FALLBACK_WRONG_ORDER)
		gpusort_wrong_order_warn(build->index, gpusort_sort_wrong_encoding(build->sort));
	build->nlive = gpusort_heap_rows_live(build->rows);
	gpusort_heap_rows_end(build->rows);
	gpusort_sort_end(build->sort);
	return written ? GS_FALLBACK_NONE : reason;
}

IndexBuildResult *
gpusort_btree_build(Relation heap, Relation index, IndexInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort index build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsBtreeBuild build = {.heap = heap,.index = index,.info = info};
	GsFallback	reason = gpusort_build_check(heap, index);
	IndexBuildResult *result;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	if (reason == GS_FALLBACK_NONE)
		reason = describe_sort(&build);
	if (reason == GS_FALLBACK_NONE)
	{
		reason = build_index(&build);

		/* PostgreSQL's build looks for broken HOT chains itself. */
		if (reason != GS_FALLBACK_NONE)
			info->ii_BrokenHotChain = false;
	}
	if (reason != GS_FALLBACK_NONE)
		gpusort_requirement_leave(GS_LEFT_INDEX_BUILD, reason);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	if (reason != GS_FALLBACK_NONE)
		return NULL;

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = build.nlive;
	result->index_tuples = build.nrows;
	return result;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* What this worker reads. */
typedef struct GsBtreeWorker
{
	IndexInfo  *info;
	GsHeapRows *rows;
	TupleTableSlot *slot;		/* for a row */
} GsBtreeWorker;

/* GsProducerNext */
static TupleTableSlot *
next_shared_row(void *arg)
{
	GsBtreeWorker *worker = arg;
	TupleTableSlot *slot = worker->slot;
	GsHeapRow	row;

	if (!gpusort_heap_rows_next(worker->rows, &row, slot->tts_values,
								slot->tts_isnull))
	{
		gpusort_heap_rows_report(worker->rows);
		return NULL;
	}
	slot->tts_values[worker->info->ii_NumIndexAttrs] = gpusort_index_rows_pack_tid(&row);
	return slot;
}

/* Add this worker's share of the rows. */
static void
take_rows(GsBtreeWorker *worker, const GsBuildWorker *build)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort rows of a worker",
												  ALLOCSET_DEFAULT_SIZES);
	GsSortCounts page_scan = {.page_scans = 1};
	GsProducer	producer = {
		.parallel = build->parallel,
		.next = next_shared_row,
		.arg = worker
	};

	if (!gpusort_index_rows_describe(build->index, true, &producer.spec))
		elog(ERROR, "no operators for an index build");
	gpusort_build_worker_describe(build, &producer.spec);
	worker->slot = MakeSingleTupleTableSlot(producer.spec.tupdesc, &TTSOpsVirtual);
	memset(worker->slot->tts_isnull, 0, producer.spec.tupdesc->natts * sizeof(bool));
	ExecStoreVirtualTuple(worker->slot);
	gpusort_stats_count_sort(build->parallel->gpu ? GS_KIND_GPU : GS_KIND_CPU, &page_scan);
	gpusort_producer_run(&producer, context);
	ExecDropSingleTupleTableSlot(worker->slot);
	MemoryContextDelete(context);
}

/* Main function of a worker.  The parallel context finds it by its name. */
void
gpusort_btree_worker_main(dsm_segment *segment, shm_toc *toc)
{
	GsBtreeWorker worker = {0};
	GsBuildWorker build;

	gpusort_build_worker_begin(&build, toc);
	worker.info = build.info;
	worker.rows = gpusort_heap_rows_join(build.heap, build.index, build.info,
										 shm_toc_lookup(toc, KEY_SNAPSHOT, true),
										 shm_toc_lookup(toc, KEY_BLOCKS, false));
	take_rows(&worker, &build);
	gpusort_heap_rows_end(worker.rows);
	gpusort_build_worker_end(&build);
}
