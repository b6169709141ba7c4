/*-------------------------------------------------------------------------
 *
 * divided_sort.c
 *		A GpuSort below a Gather whose processes sort together and each return a part of the rows.
 *
 * The node is parallel-aware.  Rows that agree in the first sort keys are returned by one process,
 * so that what is above the sort, such as a window function, can be computed there:
 *
 *		Gather -> WindowAgg -> GpuSort -> Parallel Seq Scan
 *
 * The leader begins the sort when it makes the shared memory of the query, before it starts
 * workers.  When the node is executed in a process, this adds its share of the input, sorts with
 * the others (sort/team.h), and then returns the rows of the ranges that it takes.  No process
 * waits for one that does not execute the node.
 *
 * Two such nodes below a Merge Join are a pair.  They have the same sort keys, those of the join,
 * and each process returns the same ranges of both, so that it can join their rows:
 *
 *		Gather -> Merge Join -> GpuSort -> Parallel Seq Scan
 *							 -> GpuSort -> Parallel Seq Scan
 *
 * The first of them adds the rows of both, when it is executed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"

#include "exec/gpusort_node.h"
#include "key/order_check.h"

/* The planner's estimate is how many rows each process reads: see get_parallel_divisor(). */
static double
count_all_rows(double rows, int nworkers)
{
	double		leader = parallel_leader_participation ? Max(1.0 - 0.3 * nworkers, 0) : 0;

	return rows * (nworkers + leader);
}

/* Are the keys of two sorts encoded alike?  The planner has looked at their types. */
static bool
have_same_keys(const GsSortSpec *a, const GsSortSpec *b)
{
	int			n = a->keys.nkeys;

	return n == b->keys.nkeys && a->group_keys == b->group_keys &&
		memcmp(a->keys.operators, b->keys.operators, n * sizeof(Oid)) == 0 &&
		memcmp(a->keys.collations, b->keys.collations, n * sizeof(Oid)) == 0 &&
		memcmp(a->keys.nulls_first, b->keys.nulls_first, n * sizeof(bool)) == 0;
}

/* Both sorts of a pair have begun: make them one, or leave the rows of both to one process. */
static void
begin_pair(GsNodeState *const *pair)
{
	if (pair[0]->sort != NULL && pair[1]->sort != NULL &&
		have_same_keys(&pair[0]->spec, &pair[1]->spec))
	{
		gpusort_sort_pair(pair[0]->sort, pair[1]->sort);
		return;
	}
	for (int i = 0; i < 2; i++)
	{
		if (pair[i]->sort != NULL)
			gpusort_sort_end(pair[i]->sort);
		pair[i]->sort = NULL;
		pair[i]->shared->divided.parallel.team = NULL;
	}
}

void
gpusort_divided_begin(GsNodeState *node, int nworkers)
{
	GsDividedShared *shared = &node->shared->divided;
	GsSortSpec *spec = &node->spec;

	pg_atomic_init_u32(&shared->claimed, 0);
	memset(&shared->parallel, 0, sizeof(shared->parallel));
	spec->nested = node->paired;	/* so that it has no GPU */
	spec->group_keys = node->divided;
	spec->expected_rows = count_all_rows(node->css.ss.ps.plan->plan_rows, nworkers);
	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);

	/*
	 * Workers trust encodings, so they encode no rows by one that is
	 * distrusted.
	 */
	if (!gpusort_key_plan_is_distrusted(spec->key_plan))
	{
		spec->processes = nworkers + 1;
		node->sort = gpusort_sort_begin(spec);
		if (!gpusort_parallel_sort_open(&shared->parallel, node->sort))
		{
			gpusort_sort_end(node->sort);
			node->sort = NULL;
		}
	}
	if (node->paired && node == node->pair[1])
		begin_pair(node->pair);
}

/* ----------------------------------------------------------------
 *		rows
 * ----------------------------------------------------------------
 */

static void
begin_worker(GsNodeState *node)
{
	GsSortSpec *spec = &node->spec;

	gpusort_parallel_sort_join(&node->shared->divided.parallel, spec);
	spec->check = gpusort_order_check_create(&spec->keys);
	node->sort = gpusort_sort_begin(spec);
}

/* If rows are lost, this raises an error. */
static void
finish(const GsNodeState *node)
{
	if (!gpusort_sort_finish(node->sort))
		elog(ERROR, "rows of a divided sort are lost");
}

/* Sort all rows in this process. */
static void
sort_alone(GsNodeState *node)
{
	GsSortSpec *spec = &node->spec;

	spec->processes = 0;
	spec->group_keys = 0;
	if (spec->key_plan == NULL)
		(void) gpusort_sort_plan_keys(spec);
	node->sort = gpusort_sort_begin(spec);
	(void) gpusort_sort_attach(node->sort);
	gpusort_row_source_add_rows(node->source, node->sort);
	finish(node);
}

static void
sort_together(GsNodeState *const *nodes, int n)
{
	if (IsParallelWorker())
	{
		for (int i = 0; i < n; i++)
			begin_worker(nodes[i]);
		if (n == 2)
			gpusort_sort_pair(nodes[0]->sort, nodes[1]->sort);
	}
	if (gpusort_sort_attach(nodes[0]->sort))
		for (int i = 0; i < n; i++)
			gpusort_row_source_add_rows(nodes[i]->source, nodes[i]->sort);
	for (int i = 0; i < n; i++)
		finish(nodes[i]);
}

void
gpusort_divided_sort(GsNodeState *const *nodes, int n)
{
	/*
	 * The sort is counted once.  The leader may not execute the node at all,
	 * so the first process that does so counts it.
	 */
	GsDividedShared *shared = &nodes[0]->shared->divided;
	bool		nested = pg_atomic_exchange_u32(&shared->claimed, 1) != 0;

	for (int i = 0; i < n; i++)
	{
		nodes[i]->spec.nested = nested;
		nodes[i]->spec.by_pages = gpusort_row_source_prepare(nodes[i]->source);
	}
	if (shared->parallel.team != NULL)
		sort_together(nodes, n);
	else if (!nested)
	{
		for (int i = 0; i < n; i++)
			sort_alone(nodes[i]);
	}
}
