/*-------------------------------------------------------------------------
 *
 * build_workers.c
 *		Parallel workers of an index build: what all kinds of indexes have in common.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <unistd.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "executor/instrument.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"

#include "index/base/build_workers.h"
#include "key/key_encoding.h"
#include "settings.h"
#include "sort/base/progress.h"
#include "sort/memory/shared_ranges.h"

/*
 * A build of fewer rows is hardly faster than PostgreSQL's; and if that takes long for a row, since
 * it makes many keys of it or compares strings by the rules of a language.
 */
#define FEWEST_ROWS			10000
#define FEWEST_LONG_ROWS	2000

/* Keys of the parts of shared memory. */
#define KEY_SHARED		UINT64CONST(1)
#define KEY_QUERY		UINT64CONST(2)
#define KEY_PAGES		UINT64CONST(3)
#define KEY_USAGE		UINT64CONST(4)

struct GsBuildShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	GsParallelSort parallel;
	double		expected_rows;	/* of each process */
	int			expected_width;
	Size		memory;			/* of each process */
	pg_atomic_uint32 n_done;	/* workers that have taken all of their rows */
	ConditionVariable worker_done;
};

/* What a worker has used. */
typedef struct GsBuildUsage
{
	WalUsage	wal;
	BufferUsage buffers;
} GsBuildUsage;

/* ----------------------------------------------------------------
 *		the leader
 * ----------------------------------------------------------------
 */

/* The query text that pg_stat_activity shows for workers. */
static const char *
query_text(void)
{
	return debug_query_string != NULL ? debug_query_string : "";
}

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

GsFallback
gpusort_build_check(Relation heap, Relation index)
{
	double		least = gpusort_min_index_rows;

	if (!gpusort_enable_index_build)
		return GS_FALLBACK_INDEX_DISABLED;
	if (heap->rd_tableam != GetHeapamTableAmRoutine())
		return GS_FALLBACK_TABLE_AM;
	if (least < 0)
		least = takes_long(index) ? FEWEST_LONG_ROWS : FEWEST_ROWS;
	return gpusort_build_rows_estimate(heap) >= Min(least, gpusort_settings_plan_rows()) ?
		GS_FALLBACK_NONE : GS_FALLBACK_FEW_INDEX_ROWS;
}

/*
 * A worker costs processor time: it has to start, and rows that several processes sort together
 * are written once more.  If no processor is idle, that slows all sessions, as when pg_restore
 * builds indexes in several jobs.
 */
int
gpusort_build_workers_useful(Relation heap, int nplanned)
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

void
gpusort_build_workers_create(GsBuildWorkers *workers, const char *function, int nworkers)
{
	EnterParallelMode();
	workers->context = CreateParallelContext("pg_gpusort", function, nworkers);
	gpusort_build_workers_estimate(workers, sizeof(GsBuildShared));
	gpusort_build_workers_estimate(workers, strlen(query_text()) + 1);
	gpusort_build_workers_estimate(workers, gpusort_page_queue_bytes(true));
	gpusort_build_workers_estimate(workers, mul_size(sizeof(GsBuildUsage), nworkers));
}

void
gpusort_build_workers_estimate(GsBuildWorkers *workers, Size size)
{
	shm_toc_estimate_chunk(&workers->context->estimator, size);
	shm_toc_estimate_keys(&workers->context->estimator, 1);
}

static void
leave_parallel_mode(GsBuildWorkers *workers)
{
	DestroyParallelContext(workers->context);
	workers->context = NULL;
	ExitParallelMode();
}

bool
gpusort_build_workers_allocate(GsBuildWorkers *workers, Relation heap, Relation index,
							   const IndexInfo *info, const GsSortSpec *spec,
							   const GsParallelSort *parallel)
{
	Size		queue_bytes = gpusort_page_queue_bytes(true);
	GsBuildShared *shared;

	InitializeParallelDSM(workers->context);
	if (workers->context->seg == NULL)
	{
		leave_parallel_mode(workers);
		return false;
	}
	shared = gpusort_build_workers_make(workers, KEY_SHARED, sizeof(GsBuildShared));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = info->ii_Concurrent;
	shared->parallel = *parallel;
	shared->expected_rows = spec->expected_rows / (workers->context->nworkers + 1);
	shared->expected_width = spec->expected_width;
	shared->memory = spec->memory;
	pg_atomic_init_u32(&shared->n_done, 0);
	ConditionVariableInit(&shared->worker_done);
	workers->shared = shared;
	workers->parallel = &shared->parallel;
	strcpy(gpusort_build_workers_make(workers, KEY_QUERY, strlen(query_text()) + 1),
		   query_text());
	workers->pages =
		gpusort_page_queue_init(gpusort_build_workers_make(workers, KEY_PAGES, queue_bytes),
								true, RelationNeedsWAL(index));
	gpusort_build_workers_make(workers, KEY_USAGE,
							   mul_size(sizeof(GsBuildUsage), workers->context->nworkers));
	return true;
}

void *
gpusort_build_workers_make(GsBuildWorkers *workers, uint64 key, Size size)
{
	void	   *part = shm_toc_allocate(workers->context->toc, size);

	shm_toc_insert(workers->context->toc, key, part);
	return part;
}

void
gpusort_build_workers_launch(GsBuildWorkers *workers)
{
	LaunchParallelWorkers(workers->context);
}

int
gpusort_build_workers_await(GsBuildWorkers *workers)
{
	GsBuildShared *shared = workers->shared;
	int			nworkers = workers->context->nworkers_launched;

	/* This raises an error if one of them could not start. */
	WaitForParallelWorkersToAttach(workers->context);
	while (pg_atomic_read_u32(&shared->n_done) < nworkers)
		ConditionVariableSleep(&shared->worker_done, gpusort_shared_wait_event());
	ConditionVariableCancelSleep();
	pg_read_barrier();
	return nworkers;
}

GsPageQueue *
gpusort_build_workers_pages(const GsBuildWorkers *workers)
{
	return workers->context->nworkers_launched > 0 ? workers->pages : NULL;
}

void
gpusort_build_workers_finish(GsBuildWorkers *workers)
{
	GsBuildUsage *usage = shm_toc_lookup(workers->context->toc, KEY_USAGE, false);

	gpusort_page_queue_close(workers->pages);
	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&usage[i].buffers, &usage[i].wal);
	leave_parallel_mode(workers);
}

/* ----------------------------------------------------------------
 *		a worker
 * ----------------------------------------------------------------
 */

void
gpusort_build_worker_begin(GsBuildWorker *worker, shm_toc *toc)
{
	GsBuildShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, false);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* Take the same locks as the leader. */
	worker->heap = table_open(shared->heap, shared->concurrent ?
							  ShareUpdateExclusiveLock : ShareLock);
	worker->index = index_open(shared->index, shared->concurrent ?
							   RowExclusiveLock : AccessExclusiveLock);
	worker->info = BuildIndexInfo(worker->index);
	worker->info->ii_Concurrent = shared->concurrent;
	worker->shared = shared;
	worker->parallel = &shared->parallel;
	worker->toc = toc;
	InstrStartParallelQuery();
}

void
gpusort_build_worker_describe(const GsBuildWorker *worker, GsSortSpec *spec)
{
	spec->expected_rows = worker->shared->expected_rows;
	spec->expected_width = worker->shared->expected_width;
	spec->memory = worker->shared->memory;
	spec->index_build = true;
}

void
gpusort_build_worker_end(GsBuildWorker *worker)
{
	GsBuildUsage *usage = shm_toc_lookup(worker->toc, KEY_USAGE, false);

	pg_write_barrier();
	pg_atomic_fetch_add_u32(&worker->shared->n_done, 1);
	ConditionVariableSignal(&worker->shared->worker_done);
	gpusort_page_queue_work(shm_toc_lookup(worker->toc, KEY_PAGES, false), worker->index);
	InstrEndParallelQuery(&usage[ParallelWorkerNumber].buffers,
						  &usage[ParallelWorkerNumber].wal);
	index_close(worker->index, NoLock);
	table_close(worker->heap, NoLock);
}
