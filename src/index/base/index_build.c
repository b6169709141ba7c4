/*-------------------------------------------------------------------------
 *
 * index_build.c
 *		Builds an index of any kind: by one process or several, from rows of a sort.
 *
 * Nothing is written to the index before all rows are sorted.  Until then, a build that runs into
 * trouble can be left to PostgreSQL's own build, which starts over.  If a GPU is lost with rows
 * after that, the index is truncated and the build starts over.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <unistd.h>

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/storage.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

#include "index/base/index_build.h"
#include "key/key_encoding.h"
#include "settings.h"
#include "sort/base/progress.h"
#include "sort/base/sort_stats.h"
#include "sort/memory/shared_ranges.h"
#include "sort/sort.h"

/*
 * A build of fewer rows is hardly faster than PostgreSQL's; and if that takes long for a row, since
 * it makes many keys of it or compares strings by the rules of a language.
 */
#define FEWEST_ROWS			10000
#define FEWEST_LONG_ROWS	2000

/* Parts of the memory that processes share, by their keys. */
enum
{
	KEY_BUILD,
	KEY_HEAP,					/* GsHeapShare */
	KEY_PAGES,					/* GsPageQueue */
	KEY_USAGE,					/* a GsBuildUsage for each worker */
	KEY_QUERY,					/* for pg_stat_activity */
	KEYS
};

typedef struct GsBuildShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			nworkers;
	GsParallelSort parallel;
	double		expected_rows;	/* of each process */
	int			expected_width;
	int			string_words;	/* see GsSortKeys */
	Size		memory;			/* of each process */
	pg_atomic_uint32 n_done;	/* workers that have taken all of their rows */
	ConditionVariable worker_done;
} GsBuildShared;

/* What a worker has used. */
typedef struct GsBuildUsage
{
	WalUsage	wal;
	BufferUsage buffers;
} GsBuildUsage;

typedef struct GsBuildWorkers
{
	ParallelContext *context;
	void	   *parts[KEYS];
	GsBuildShared *shared;
	bool		adding;			/* may they add rows? */
} GsBuildWorkers;

/* ----------------------------------------------------------------
 *		which builds are ours
 * ----------------------------------------------------------------
 */

double
gpusort_build_rows_estimate(Relation heap)
{
	BlockNumber pages;
	double		rows;
	double		visible;

	estimate_rel_size(heap, NULL, &pages, &rows, &visible);
	return rows;
}

/* Does PostgreSQL take long for each row of an index? */
static bool
takes_long(Relation index)
{
	if (index->rd_rel->relam == GIN_AM_OID)
		return true;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (OidIsValid(index->rd_indcollation[i]) &&
			!gpusort_key_encoding_compares_bytes(index->rd_indcollation[i]))
			return true;
	return false;
}

GsReason
gpusort_build_check(Relation heap, Relation index)
{
	double		least = gpusort_min_index_rows;

	if (!gpusort_enable_index_build)
		return GS_REASON_INDEX_DISABLED;
	if (heap->rd_tableam != GetHeapamTableAmRoutine())
		return GS_REASON_TABLE_AM;
	if (least < 0)
		least = takes_long(index) ? FEWEST_LONG_ROWS : FEWEST_ROWS;
	return gpusort_build_rows_estimate(heap) >= Min(least, gpusort_settings_plan_rows()) ?
		GS_REASON_NONE : GS_REASON_FEW_INDEX_ROWS;
}

/*
 * A worker costs processor time: it has to start, and rows that several processes sort together
 * are written once more.  If no processor is idle, that slows all sessions, as when pg_restore
 * builds indexes in several jobs.
 */
static int
count_useful(Relation heap, int nplanned)
{
	int			nprocessors = (int) sysconf(_SC_NPROCESSORS_ONLN);
	int			nbusy;

	if (nplanned == 0 || nprocessors < 1 || RelationGetParallelWorkers(heap, -1) != -1)
		return nplanned;
	nbusy = gpusort_progress_busy_others();
	if (nbusy == 0)
		return nplanned;
	return Min(nplanned, Max(nprocessors - 1 - nbusy, 0));
}

/*
 * Describe the sort in the leader.  Returns GS_REASON_NONE, or why the build is left to
 * PostgreSQL.
 */
static GsReason
plan_sort(GsIndexBuild *build)
{
	GsSortSpec *spec = &build->spec;

	spec->expected_rows = gpusort_build_rows_estimate(build->heap);
	spec->repeatable = true;
	spec->index_build = true;
	build->nworkers = count_useful(build->heap, build->kind->plan_workers(build));
	if (build->nworkers > 0)
		spec->processes = 1 + build->nworkers;
	/* All processes together have maintenance_work_mem. */
	spec->memory = (Size) maintenance_work_mem * 1024 / (1 + build->nworkers);
	if (!build->kind->describe(build))
		return GS_REASON_TYPE;
	return build->kind->plan(build);
}

/* ----------------------------------------------------------------
 *		workers, in the leader
 * ----------------------------------------------------------------
 */

/* The query text that pg_stat_activity shows for workers. */
static const char *
query_text(void)
{
	return debug_query_string != NULL ? debug_query_string : "";
}

static void
leave_parallel_mode(GsBuildWorkers *workers)
{
	DestroyParallelContext(workers->context);
	workers->context = NULL;
	ExitParallelMode();
}

/* Make the parts of shared memory.  Returns false if there is none. */
static bool
make_parts(GsIndexBuild *build, GsBuildWorkers *workers)
{
	ParallelContext *context = workers->context;
	const Size	sizes[KEYS] = {
		[KEY_BUILD] = sizeof(GsBuildShared),
		[KEY_HEAP] = gpusort_heap_rows_share_bytes(build->rows),
		[KEY_PAGES] = gpusort_page_queue_bytes(true),
		[KEY_USAGE] = mul_size(sizeof(GsBuildUsage), build->nworkers),
		[KEY_QUERY] = strlen(query_text()) + 1
	};

	for (int i = 0; i < KEYS; i++)
	{
		shm_toc_estimate_chunk(&context->estimator, sizes[i]);
		shm_toc_estimate_keys(&context->estimator, 1);
	}
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return false;
	for (int i = 0; i < KEYS; i++)
	{
		workers->parts[i] = shm_toc_allocate(context->toc, sizes[i]);
		shm_toc_insert(context->toc, i, workers->parts[i]);
	}
	return true;
}

static void
fill_parts(GsIndexBuild *build, GsBuildWorkers *workers, const GsParallelSort *parallel)
{
	GsBuildShared *shared = workers->parts[KEY_BUILD];

	shared->heap = RelationGetRelid(build->heap);
	shared->index = RelationGetRelid(build->index);
	shared->concurrent = build->info->ii_Concurrent;
	shared->nworkers = build->nworkers;
	shared->parallel = *parallel;
	shared->expected_rows = build->spec.expected_rows / (build->nworkers + 1);
	shared->expected_width = build->spec.expected_width;
	shared->string_words = build->spec.keys.string_words;
	shared->memory = build->spec.memory;
	pg_atomic_init_u32(&shared->n_done, 0);
	ConditionVariableInit(&shared->worker_done);
	workers->shared = shared;
	gpusort_heap_rows_share(build->rows, workers->parts[KEY_HEAP]);
	gpusort_page_queue_init(workers->parts[KEY_PAGES], true, RelationNeedsWAL(build->index));
	strcpy(workers->parts[KEY_QUERY], query_text());
}

/*
 * Start workers, if they are wanted and the sort accepts rows of other processes.  The rows of the
 * table are shared with them from then on.
 */
static void
start_workers(GsIndexBuild *build)
{
	GsParallelSort parallel;
	GsBuildWorkers *workers;

	if (build->nworkers == 0 ||
		!gpusort_parallel_sort_open(&parallel, build->producer.sort))
		return;
	workers = palloc0(sizeof(GsBuildWorkers));
	EnterParallelMode();
	workers->context = CreateParallelContext("pg_gpusort", "gpusort_index_worker_main",
											 build->nworkers);
	if (!make_parts(build, workers))
	{
		leave_parallel_mode(workers);
		return;
	}
	fill_parts(build, workers, &parallel);
	LaunchParallelWorkers(workers->context);
	workers->adding = true;
	build->workers = workers;
}

/* Wait until all workers have taken their rows, and rethrow an error of theirs. */
static void
await_workers(GsBuildWorkers *workers)
{
	GsBuildShared *shared = workers->shared;

	/* This raises an error if one of them could not start. */
	WaitForParallelWorkersToAttach(workers->context);
	while (pg_atomic_read_u32(&shared->n_done) < workers->context->nworkers_launched)
		ConditionVariableSleep(&shared->worker_done, gpusort_shared_wait_event());
	ConditionVariableCancelSleep();
	pg_read_barrier();
}

GsPageQueue *
gpusort_index_build_pages(const GsIndexBuild *build)
{
	if (build->workers == NULL || build->workers->context->nworkers_launched == 0)
		return NULL;
	return build->workers->parts[KEY_PAGES];
}

/* Wait for the workers to end, and leave parallel mode.  Rethrows an error of theirs. */
static void
finish_workers(GsBuildWorkers *workers)
{
	GsBuildUsage *usage = workers->parts[KEY_USAGE];

	gpusort_page_queue_close(workers->parts[KEY_PAGES]);
	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&usage[i].buffers, &usage[i].wal);
	leave_parallel_mode(workers);
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/*
 * Report a phase to pg_stat_progress_create_index, and the number of rows, or 0 if it is
 * not known yet.  The other counters are reset: a phase may have no blocks to read, and
 * one that begins again has done nothing.
 */
static void
enter_phase(const GsIndexBuild *build, int phase, int64 nrows)
{
	const int	params[] = {
		PROGRESS_CREATEIDX_SUBPHASE,
		PROGRESS_SCAN_BLOCKS_TOTAL,
		PROGRESS_SCAN_BLOCKS_DONE,
		PROGRESS_CREATEIDX_TUPLES_TOTAL,
		PROGRESS_CREATEIDX_TUPLES_DONE
	};
	const int64 values[] = {phase, 0, 0, nrows, 0};

	if (build->kind->by_phases && !IsParallelWorker())
		pgstat_progress_update_multi_param(lengthof(params), params, values);
}

static void
enter_sorting(const GsIndexBuild *build)
{
	enter_phase(build, PROGRESS_BTREE_PHASE_PERFORMSORT_1,
				gpusort_heap_rows_tally(build->rows)->returned);
}

/*
 * GsProducerNext.  After the last row, a worker tells what it has found in the table.  In the
 * leader, it is not known yet how many rows there are.
 */
static TupleTableSlot *
next_row(void *arg)
{
	GsIndexBuild *build = arg;
	TupleTableSlot *slot = build->kind->next(build);

	if (slot != NULL)
		return slot;
	if (IsParallelWorker())
		gpusort_heap_rows_report(build->rows);
	enter_phase(build, PROGRESS_BTREE_PHASE_PERFORMSORT_1, 0);
	return NULL;
}

/* Add the rows that this process reads.  Returns false if rows are lost. */
static bool
add_own_rows(GsIndexBuild *build)
{
	TupleTableSlot *slot;

	while ((slot = build->kind->next(build)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(build->producer.sort, slot))
			return false;
	}
	return true;
}

/* Add this process's share of the rows. */
static void
produce_rows(GsIndexBuild *build, GsParallelSort *parallel)
{
	build->producer.spec = build->spec;
	build->producer.parallel = parallel;
	build->producer.next = next_row;
	build->producer.arg = build;
	gpusort_producer_run(&build->producer);
}

/* Add the rows of all processes to the sort. */
static void
add_rows_together(GsIndexBuild *build)
{
	GsParallelSort *parallel = &build->workers->shared->parallel;
	GsReason	failure;

	produce_rows(build, parallel);
	/* Otherwise workers still sort rows, all of which have been read. */
	if (!build->producer.streaming)
	{
		await_workers(build->workers);
		failure = gpusort_parallel_sort_failure(parallel);
		if (failure != GS_REASON_NONE)
			gpusort_sort_fail(build->producer.sort, failure);
	}
	gpusort_heap_rows_unshare(build->rows);
	if (!build->producer.streaming)
		enter_sorting(build);
}

/* Add the rows of the table, those of workers too. */
static void
add_rows(GsIndexBuild *build)
{
	if (build->workers != NULL && build->workers->adding)
		add_rows_together(build);
	else if (add_own_rows(build))
		enter_sorting(build);
}

/* Prepare to read rows.  The slot begins without NULLs. */
static void
begin_reading(GsIndexBuild *build)
{
	TupleTableSlot *slot = build->slot;

	enter_phase(build, PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN, 0);
	ExecClearTuple(slot);
	memset(slot->tts_isnull, 0, slot->tts_tupleDescriptor->natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
}

/* Rows are lost: prepare to read the table again. */
static void
begin_again(GsIndexBuild *build)
{
	gpusort_sort_stop(build->producer.sort);
	if (build->workers != NULL)
	{
		await_workers(build->workers);
		gpusort_heap_rows_unshare(build->rows);
		build->workers->adding = false;
	}
	begin_reading(build);
	gpusort_heap_rows_rewind(build->rows);
	gpusort_sort_restart(build->producer.sort);
}

/* Read the table and sort its rows, again if they are lost. */
static void
sort_rows(GsIndexBuild *build)
{
	do
	{
		if (gpusort_sort_is_lost(build->producer.sort))
			begin_again(build);
		add_rows(build);
	} while (!gpusort_sort_finish(build->producer.sort));
}

/* Begin to read rows.  'share' is NULL but in a worker. */
static void
begin_rows(GsIndexBuild *build, GsHeapShare *share)
{
	build->slot = MakeSingleTupleTableSlot(build->spec.tupdesc, &TTSOpsVirtual);
	begin_reading(build);
	build->rows = gpusort_heap_rows_begin(build->heap, build->index, build->info,
										  build->kind->fetch, share);
	if (build->kind->begin != NULL)
		build->kind->begin(build);
}

/* ----------------------------------------------------------------
 *		the build
 * ----------------------------------------------------------------
 */

/* Empty the file, to begin again or as PostgreSQL's build wants to find it. */
static void
empty_index(GsIndexBuild *build)
{
	if (RelationGetNumberOfBlocks(build->index) > 0)
		RelationTruncate(build->index, 0);
}

/*
 * Write the index from sorted rows.  Returns false, with nothing written, if the rows were lost
 * meanwhile or are not in order.
 */
static bool
write_index(GsIndexBuild *build)
{
	enter_phase(build, PROGRESS_BTREE_PHASE_LEAF_LOAD,
				gpusort_sort_count(build->producer.sort));
	if (build->kind->write(build))
		return true;
	empty_index(build);
	return false;
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

/*
 * Read the table and write the index, again if rows are lost meanwhile.  Returns whether that is
 * done.  Otherwise rows are not in order, or one of them waits for another transaction.
 */
static bool
sort_and_write(GsIndexBuild *build)
{
	GsSort	   *sort = build->producer.sort;
	GsSortReport report;

	sort_rows(build);
	gpusort_sort_report(sort, &report);
	gpusort_requirement_check(&report);
	while (!gpusort_heap_rows_tally(build->rows)->blocked)
	{
		if (write_index(build))
			return true;
		if (build->wrong_encoding != NULL)
			break;
		sort_rows(build);
	}
	gpusort_sort_stop(sort);
	return false;
}

/*
 * Leave the index to PostgreSQL.  Returns why.  If rows are not in order, that is more than a
 * reason to be counted: indexes that were built before should be looked at.
 */
static GsReason
give_up(GsIndexBuild *build)
{
	/* There may be pages that were made before rows were read. */
	empty_index(build);
	/* That build looks for broken HOT chains itself. */
	build->info->ii_BrokenHotChain = false;
	if (build->wrong_encoding == NULL)
		return GS_REASON_OPEN_ROWS;
	ereport(WARNING,
			(errmsg("rows of index \"%s\" were not sorted into the right order, so PostgreSQL builds it",
					RelationGetRelationName(build->index)),
			 errdetail("They were sorted by type %s.", build->wrong_encoding),
			 errhint("Check other indexes of this type with amcheck.")));
	return GS_REASON_WRONG_ORDER;
}

/* Returns GS_REASON_NONE, or with nothing written the reason why PostgreSQL builds the index. */
static GsReason
build_index(GsIndexBuild *build)
{
	GsReason	reason = GS_REASON_NONE;
	bool		written;

	begin_rows(build, NULL);
	build->producer.sort = gpusort_sort_begin(&build->spec);
	start_workers(build);
	written = sort_and_write(build);
	if (build->workers != NULL)
	{
		finish_workers(build->workers);
		gpusort_heap_rows_unshare(build->rows);
	}
	if (written)
		count_build(build->producer.sort);
	else
		reason = give_up(build);
	build->nlive = gpusort_heap_rows_tally(build->rows)->live;
	gpusort_heap_rows_end(build->rows);
	gpusort_sort_end(build->producer.sort);
	return reason;
}

IndexBuildResult *
gpusort_index_build(const GsIndexKind *kind, Relation heap, Relation index, IndexInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort index build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsIndexBuild build = {.kind = kind,.heap = heap,.index = index,.info = info};
	GsReason	reason = gpusort_build_check(heap, index);
	IndexBuildResult *result;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	if (reason == GS_REASON_NONE)
		reason = plan_sort(&build);
	if (reason == GS_REASON_NONE)
		reason = build_index(&build);
	if (reason != GS_REASON_NONE)
		gpusort_requirement_leave(GS_TASK_INDEX_BUILD, reason);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	if (reason != GS_REASON_NONE)
		return NULL;

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = build.nlive;
	result->index_tuples = build.ntuples;
	return result;
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

/* Open table and index with the same locks as the leader. */
static void
open_relations(GsIndexBuild *build, const GsBuildShared *shared)
{
	build->heap = table_open(shared->heap, shared->concurrent ?
							 ShareUpdateExclusiveLock : ShareLock);
	build->index = index_open(shared->index, shared->concurrent ?
							  RowExclusiveLock : AccessExclusiveLock);
	build->info = BuildIndexInfo(build->index);
	build->info->ii_Concurrent = shared->concurrent;
}

/* Describe this worker's share of the leader's sort. */
static void
describe_share(GsIndexBuild *build, const GsBuildShared *shared)
{
	build->nworkers = shared->nworkers;
	build->spec.index_build = true;
	if (!build->kind->describe(build))
		elog(ERROR, "no operators for an index build");
	build->spec.expected_rows = shared->expected_rows;
	build->spec.expected_width = shared->expected_width;
	build->spec.keys.string_words = shared->string_words;
	build->spec.memory = shared->memory;
}

/* Add this worker's share of the rows. */
static void
take_rows(GsIndexBuild *build, GsBuildShared *shared, GsHeapShare *heap)
{
	GsSortCounts counts = {.page_scans = 1};

	describe_share(build, shared);
	begin_rows(build, heap);
	if (build->spec.by_pages)
		gpusort_stats_count_sort(shared->parallel.gpu ? GS_KIND_GPU : GS_KIND_CPU, &counts);
	produce_rows(build, &shared->parallel);
	gpusort_heap_rows_end(build->rows);
}

void
gpusort_index_build_work(const GsIndexKind *(*kind_of) (Relation index), shm_toc *toc)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort worker of an index build",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsIndexBuild build = {0};
	GsBuildShared *shared = shm_toc_lookup(toc, KEY_BUILD, false);
	GsBuildUsage *usage = shm_toc_lookup(toc, KEY_USAGE, false);

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, false);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	open_relations(&build, shared);
	build.kind = kind_of(build.index);
	InstrStartParallelQuery();
	take_rows(&build, shared, shm_toc_lookup(toc, KEY_HEAP, false));
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);

	/* Write pages until the leader has made all. */
	pg_write_barrier();
	pg_atomic_fetch_add_u32(&shared->n_done, 1);
	ConditionVariableSignal(&shared->worker_done);
	gpusort_page_queue_work(shm_toc_lookup(toc, KEY_PAGES, false), build.index);
	InstrEndParallelQuery(&usage[ParallelWorkerNumber].buffers,
						  &usage[ParallelWorkerNumber].wal);
	index_close(build.index, NoLock);
	table_close(build.heap, NoLock);
}
