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

void
gpusort_divided_begin(GsDividedSort *divided, int nworkers)
{
	GsDividedShared *shared = divided->shared;
	GsSortSpec *spec = divided->spec;
	GsSort	   *sort;

	pg_atomic_init_u32(&shared->claimed, 0);
	memset(&shared->parallel, 0, sizeof(shared->parallel));
	spec->nested = divided->paired;
	spec->expected_rows = count_all_rows(spec->expected_rows, nworkers);
	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);

	/*
	 * Workers trust encodings, so they encode no rows by one that is
	 * distrusted.
	 */
	if (gpusort_key_plan_is_distrusted(spec->key_plan))
		return;
	spec->processes = nworkers + 1;
	sort = gpusort_sort_begin(spec);
	if (gpusort_parallel_sort_open(&shared->parallel, sort, 0))
		divided->sort = sort;
	else
		gpusort_sort_end(sort);
}

/* ----------------------------------------------------------------
 *		pairs
 * ----------------------------------------------------------------
 */

/* Are the keys of two sorts encoded alike?  The planner has looked at their types. */
static bool
have_same_keys(const GsSortSpec *a, const GsSortSpec *b)
{
	int			n = a->keys.nkeys;

	return n == b->keys.nkeys && a->group_keys == b->group_keys &&
		memcmp(a->keys.operators, b->keys.operators, n * sizeof(Oid)) == 0 &&
		memcmp(a->keys.collations, b->keys.collations, n * sizeof(Oid)) == 0 &&
		memcmp(a->keys.nulls_first, b->keys.nulls_first, n * sizeof(bool)) == 0 &&
		gpusort_key_plan_string_words(a->key_plan) == gpusort_key_plan_string_words(b->key_plan);
}

/* Leave the rows to one process. */
static void
leave_to_one(GsDividedSort *divided)
{
	if (divided->sort != NULL)
		gpusort_sort_end(divided->sort);
	divided->sort = NULL;
	divided->shared->parallel.team = NULL;
}

void
gpusort_divided_pair(GsDividedSort *first, GsDividedSort *second)
{
	if (first->sort != NULL && second->sort != NULL &&
		have_same_keys(first->spec, second->spec))
		gpusort_sort_pair(first->sort, second->sort);
	else
	{
		leave_to_one(first);
		leave_to_one(second);
	}
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

/* Prepare to sort all rows in this process. */
static void
begin_alone(GsDividedSort *divided)
{
	GsSortSpec *spec = divided->spec;

	spec->processes = 0;
	spec->group_keys = 0;
	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);
	divided->sort = gpusort_sort_begin(spec);
}

/* Begin the sort of a worker. */
static void
begin_worker(GsDividedSort *divided)
{
	GsSortSpec *spec = divided->spec;

	spec->team = divided->shared->parallel.team;
	if (divided->shared->parallel.gpu)
		spec->session = &divided->shared->parallel.handle;
	spec->process = ParallelWorkerNumber + 1;
	spec->key_plan = gpusort_sort_plan_leader_keys(spec, gpusort_team_string_words(spec->team));
	spec->check = gpusort_order_check_create(&spec->keys);
	divided->sort = gpusort_sort_begin(spec);
}

/* If rows are lost, this raises an error. */
static void
finish(const GsDividedSort *divided)
{
	if (!gpusort_sort_finish(divided->sort))
		elog(ERROR, "rows of a divided sort are lost");
}

static void
sort_alone(GsDividedSort *divided)
{
	begin_alone(divided);
	(void) gpusort_sort_attach(divided->sort);
	gpusort_row_source_add_rows(divided->source, divided->sort);
	finish(divided);
}

static void
sort_together(GsDividedSort *divided, GsDividedSort *second)
{
	if (IsParallelWorker())
	{
		begin_worker(divided);
		if (second != NULL)
		{
			begin_worker(second);
			gpusort_sort_pair(divided->sort, second->sort);
		}
	}
	if (gpusort_sort_attach(divided->sort))
	{
		gpusort_row_source_add_rows(divided->source, divided->sort);
		if (second != NULL)
			gpusort_row_source_add_rows(second->source, second->sort);
	}
	finish(divided);
	if (second != NULL)
		finish(second);
}

void
gpusort_divided_sort(GsDividedSort *divided, GsDividedSort *second)
{
	/*
	 * The sort is counted once.  The leader may not execute the node at all,
	 * so the first process that does so counts it.
	 */
	bool		nested = pg_atomic_exchange_u32(&divided->shared->claimed, 1) != 0;
	bool		alone = divided->shared->parallel.team == NULL;

	divided->spec->nested = nested;
	if (second != NULL)
		second->spec->nested = nested;
	if (!alone)
		sort_together(divided, second);
	else if (!nested)
	{
		sort_alone(divided);
		if (second != NULL)
			sort_alone(second);
	}
}
