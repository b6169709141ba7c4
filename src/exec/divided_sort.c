/*-------------------------------------------------------------------------
 *
 * divided_sort.c
 *		A GpuSort below a Gather whose processes sort together and each return a part of the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"

#include "exec/divided_sort.h"
#include "key/order_check.h"
#include "sort/sort.h"
#include "sort/team.h"

/* The planner's estimate is how many rows each process reads: see get_parallel_divisor(). */
static double
count_all_rows(double rows, int nworkers)
{
	double		leader = parallel_leader_participation ? Max(1.0 - 0.3 * nworkers, 0) : 0;

	return rows * (nworkers + leader);
}

GsSort *
gpusort_divided_begin(GsDividedShared *shared, GsSortSpec *spec, int nworkers)
{
	GsSort	   *sort;

	pg_atomic_init_u32(&shared->claimed, 0);
	memset(&shared->parallel, 0, sizeof(shared->parallel));
	spec->nested = false;
	spec->expected_rows = count_all_rows(spec->expected_rows, nworkers);
	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);

	/*
	 * Workers trust encodings, so they encode no rows by one that is
	 * distrusted.
	 */
	if (gpusort_key_plan_is_distrusted(spec->key_plan))
		return NULL;
	spec->processes = nworkers + 1;
	sort = gpusort_sort_begin(spec);
	if (gpusort_parallel_sort_open(&shared->parallel, sort, true, 0) &&
		shared->parallel.team != NULL)
		return sort;
	gpusort_sort_end(sort);
	return NULL;
}

/* Prepare to sort all rows in this process. */
static GsSort *
begin_alone(GsSortSpec *spec)
{
	spec->processes = 0;
	spec->group_keys = 0;
	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);
	return gpusort_sort_begin(spec);
}

/* Begin the sort of a worker. */
static GsSort *
begin_worker(const GsDividedShared *shared, GsSortSpec *spec)
{
	spec->team = shared->parallel.team;
	if (shared->parallel.gpu)
		spec->session = &shared->parallel.handle;
	spec->process = ParallelWorkerNumber + 1;
	spec->key_plan = gpusort_sort_plan_leader_keys(spec, gpusort_team_string_words(spec->team));
	spec->check = gpusort_order_check_create(&spec->keys);
	return gpusort_sort_begin(spec);
}

static void
add_rows(GsSort *sort, GsRowSource *source)
{
	TupleTableSlot *slot;

	while (slot = gpusort_row_source_next(source), !TupIsNull(slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(sort, slot))
			break;
	}
}

GsSort *
gpusort_divided_sort(GsDividedShared *shared, GsSortSpec *spec, GsSort *sort,
					 GsRowSource *source)
{
	/*
	 * The sort is counted once.  The leader may not execute the node at all,
	 * so the first process that does so counts it.
	 */
	spec->nested = pg_atomic_exchange_u32(&shared->claimed, 1) != 0;
	if (shared->parallel.team == NULL)
	{
		if (spec->nested)
			return NULL;
		sort = begin_alone(spec);
	}
	else if (IsParallelWorker())
		sort = begin_worker(shared, spec);
	if (gpusort_sort_attach(sort))
		add_rows(sort, source);

	/* If rows are lost, this raises an error. */
	if (!gpusort_sort_finish(sort))
		elog(ERROR, "rows of a divided sort are lost");
	return sort;
}
