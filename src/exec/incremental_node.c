/*-------------------------------------------------------------------------
 *
 * incremental_node.c
 *		The GpuIncrementalSort executor node.
 *
 * Takes the place of an IncrementalSort, whose input is sorted by the first sort
 * keys already.  Like that, the node reads and sorts some rows, returns them, and
 * continues with the next ones, so that it needs little memory, and a parent that
 * stops early costs little.
 *
 * Rows that are equal in the presorted columns are a group.  A batch consists of
 * whole groups, so that the sorted batches, one after the other, are all rows in
 * order.  Many small groups make a batch together, because a radix sort pays for
 * thousands of rows.  It sorts by all keys then, also by the presorted ones.
 * A parent may want only some of the rows, and stop.  So the first batches are
 * small, and each later one is at most a fraction of the rows before it, unless its
 * last group is larger.
 *
 * Each batch is a sort of its own, without a GPU, because its rows could not be read
 * again if they were lost.  It is a nested sort: all batches together are counted as
 * one sort.
 *
 * The node cannot return rows backward or a second time, which the planner knows of an
 * IncrementalSort, too.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "nodes/extensible.h"
#include "utils/lsyscache.h"

#include "exec/gpusort_explain.h"
#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "exec/row_source.h"
#include "sort/base/sort_stats.h"
#include "work.h"

/* The least number of rows of a batch; PostgreSQL's own has 32. */
#define FEWEST_ROWS			64

/* Before its last group begins, it has at most this part of all rows so far. */
#define PART_OF_ROWS		4

/*
 * A batch has no more rows and bytes than these before its last group begins.  It also
 * leaves room for that group in the memory allowed.
 */
#define MOST_ROWS			262144
#define MOST_BYTES			((Size) 32 * 1024 * 1024)
#define PART_OF_MEMORY		4

typedef struct GsIncrementalState
{
	CustomScanState css;		/* must be first */
	GsSortSpec	spec;			/* of the sort of a batch */
	GsRowSource *source;		/* makes rows of the sort from those of the
								 * input */
	ExprState  *same_group;		/* compares the presorted columns of two rows;
								 * NULL until the first row is requested */

	/* The current batch. */
	GsSort	   *sort;			/* or NULL */
	TupleTableSlot *pivot;		/* a row of the group that ends it */
	TupleTableSlot *carried;	/* first row of the next batch, or empty */
	bool		input_ended;
	int64		nrows;
	int64		least;			/* rows before the batch may end */

	/* All batches before. */
	int64		nbatches;		/* in this scan */
	int64		rows_before;
	int64		most;			/* rows of a batch, as the last one has shown */
	GsSortReport report;
} GsIncrementalState;

static const CustomExecMethods exec_methods;

Node *
gpusort_incremental_create_state(CustomScan *plan)
{
	return gpusort_make_node_state(sizeof(GsIncrementalState), &exec_methods);
}

/* ----------------------------------------------------------------
 *		batches
 * ----------------------------------------------------------------
 */

/* Called when the first row is requested. */
static void
prepare(GsIncrementalState *node)
{
	PlanState  *state = &node->css.ss.ps;
	TupleDesc	tupdesc = ExecGetResultType(outerPlanState(node));
	const CustomScan *plan = castNode(CustomScan, state->plan);
	GsSortKeys	keys = gpusort_private_keys(plan);
	int			presorted = gpusort_private_traits(plan).presorted;
	Oid		   *equals = palloc(presorted * sizeof(Oid));

	(void) gpusort_sort_plan_keys(&node->spec);
	for (int k = 0; k < presorted; k++)
	{
		equals[k] = get_equality_op_for_ordering_op(keys.operators[k], NULL);
		if (!OidIsValid(equals[k]))
			elog(ERROR, "missing equality operator for ordering operator %u",
				 keys.operators[k]);
	}
	node->pivot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	node->carried = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	node->most = MOST_ROWS;
	node->same_group = execTuplesMatchPrepare(tupdesc, presorted, keys.attnos, equals,
											  keys.collations, state);
}

/* Does a row belong to the group of the pivot? */
static bool
is_in_last_group(const GsIncrementalState *node, TupleTableSlot *slot)
{
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;

	econtext->ecxt_outertuple = node->pivot;
	econtext->ecxt_innertuple = slot;
	return ExecQualAndReset(node->same_group, econtext);
}

/* Returns the next row of the batch, or NULL at its end. */
static TupleTableSlot *
next_of_batch(GsIncrementalState *node)
{
	TupleTableSlot *slot;

	if (unlikely(node->nrows == 0 && !TupIsNull(node->carried)))
		slot = node->carried;
	else
		slot = ExecProcNode(outerPlanState(node));
	if (TupIsNull(slot))
	{
		node->input_ended = true;
		return NULL;
	}
	if (node->nrows >= node->least && !is_in_last_group(node, slot))
	{
		ExecCopySlot(node->carried, slot);
		return NULL;
	}
	node->nrows++;
	if (node->nrows == node->least)
		ExecCopySlot(node->pivot, slot);
	return gpusort_row_source_take(node->source, slot);
}

/* The batch has been sorted.  What its rows needed decides on the size of the next one. */
static void
note_sorted(GsIncrementalState *node, const GsSortReport *report)
{
	Size		memory = gpusort_sort_spec_memory(&node->spec);
	Size		most_bytes = Min(MOST_BYTES, memory / PART_OF_MEMORY);
	double		bytes = report->space_kb * 1024.0 / Max(node->nrows, 1);

	node->rows_before += node->nrows;
	node->most = Min(MOST_ROWS, most_bytes / Max(bytes, 1));
}

/* ----------------------------------------------------------------
 *		the node
 * ----------------------------------------------------------------
 */

static void
incremental_begin(CustomScanState *css, EState *estate, int eflags)
{
	GsIncrementalState *node = (GsIncrementalState *) css;
	CustomScan *plan = castNode(CustomScan, css->ss.ps.plan);

	Assert((eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) == 0);
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate,
									   eflags & ~EXEC_FLAG_REWIND);
	node->spec.keys = gpusort_private_keys(plan);
	node->spec.plan_node = plan->scan.plan.plan_node_id;
	node->source = gpusort_row_source_create_for_node(css, outerPlanState(css), &node->spec);
	node->spec.expected_width = plan->scan.plan.plan_width;
	node->spec.nested = true;
}

/* Did a batch need more space than another one? */
static bool
needed_more(const GsSortReport *batch, const GsSortReport *other)
{
	if (batch->kind != other->kind)
		return batch->kind == GS_KIND_EXTERNAL;
	return batch->space_kb > other->space_kb;
}

/* Add the report of a batch, and count it. */
static void
add_report(GsIncrementalState *node)
{
	GsSortReport *all = &node->report;
	GsSortReport batch;
	double		drain_ms;
	double		sort_ms;

	gpusort_sort_report(node->sort, &batch);
	note_sorted(node, &batch);
	gpusort_sort_count_part(node->sort, node->nbatches == 0);

	drain_ms = all->drain_ms + batch.drain_ms;
	sort_ms = all->sort_ms + batch.sort_ms;
	if (node->nbatches == 0 || needed_more(&batch, all))
		*all = batch;
	all->gpu_reason = GS_REASON_NONE;
	all->drain_ms = drain_ms;
	all->sort_ms = sort_ms;
	node->nbatches++;
}

static void
end_batch(GsIncrementalState *node)
{
	/* The slot's columns point into the memory of the sort. */
	ExecClearTuple(node->css.ss.ss_ScanTupleSlot);
	if (node->sort != NULL)
		gpusort_sort_end(node->sort);
	node->sort = NULL;
}

/* Add the rows of a batch and sort them.  No GPU has them, so they cannot be lost. */
static void
sort_rows(GsIncrementalState *node)
{
	TupleTableSlot *slot;

	node->sort = gpusort_sort_begin(&node->spec);
	while (slot = next_of_batch(node), !TupIsNull(slot))
	{
		CHECK_FOR_INTERRUPTS();
		(void) gpusort_sort_add(node->sort, slot);
	}
	(void) gpusort_sort_finish(node->sort);
}

/* Read and sort the next batch, the first one too. */
static void
sort_batch(GsIncrementalState *node)
{
	EState	   *estate = node->css.ss.ps.state;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
	ScanDirection direction = estate->es_direction;

	if (node->same_group == NULL)
		prepare(node);
	end_batch(node);
	node->nrows = 0;
	node->least = Max(Min(node->rows_before / PART_OF_ROWS, node->most), FEWEST_ROWS);
	node->spec.expected_rows = node->least;

	/* The input is always read forward. */
	estate->es_direction = ForwardScanDirection;
	sort_rows(node);
	estate->es_direction = direction;
	add_report(node);
	gpusort_requirement_check(&node->report);
	MemoryContextSwitchTo(caller);
}

static TupleTableSlot *
incremental_exec(CustomScanState *css)
{
	GsIncrementalState *node = (GsIncrementalState *) css;
	TupleTableSlot *slot = css->ss.ss_ScanTupleSlot;

	CHECK_FOR_INTERRUPTS();

	for (;;)
	{
		if (likely(node->sort != NULL))
		{
			slot = gpusort_row_source_return(node->source, node->sort, true, slot);
			if (likely(!TupIsNull(slot)))
				return slot;
		}
		if (node->input_ended)
		{
			end_batch(node);
			return slot;
		}
		sort_batch(node);
	}
}

static void
incremental_end(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
	end_batch((GsIncrementalState *) css);
}

static void
incremental_rescan(CustomScanState *css)
{
	GsIncrementalState *node = (GsIncrementalState *) css;

	/*
	 * If the input has not been read yet but has to be rescanned, that
	 * happens when it is first read.
	 */
	if (node->same_group == NULL)
		return;
	end_batch(node);
	ExecClearTuple(node->pivot);
	ExecClearTuple(node->carried);
	node->input_ended = false;
	node->nbatches = 0;
	node->rows_before = 0;
	memset(&node->report, 0, sizeof(node->report));

	/* With changed parameters, ExecProcNode() does this. */
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static void
incremental_explain(CustomScanState *css, List *ancestors,
					struct ExplainState *es)
{
	const GsIncrementalState *node = (GsIncrementalState *) css;

	gpusort_explain_keys(castNode(CustomScan, css->ss.ps.plan), ancestors, es);
	if (node->nbatches > 0)
		gpusort_explain_sort(&node->report, node->nbatches, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpuIncrementalSort",
	.BeginCustomScan = incremental_begin,
	.ExecCustomScan = incremental_exec,
	.EndCustomScan = incremental_end,
	.ReScanCustomScan = incremental_rescan,
	.ExplainCustomScan = incremental_explain,
};
