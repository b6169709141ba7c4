/*-------------------------------------------------------------------------
 *
 * sink_rows.c
 *		Reads a process's share of the rows below a Gather, and sorts them without a GPU.
 *
 * The leader adds its rows to the sort of the GpuSort above, which will return all rows.  A
 * worker has a sort of its own.  That takes part in sorting the rows of all processes together
 * in memory that they share, or writes them as runs, and ends.
 *
 * When the GPU has no room for more rows, sink_producer.c has those sorted here that are left,
 * and passes a function that returns them.  Otherwise the sink (sink_node.c) calls this, when
 * it is first executed.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"

#include "exec/sink_rows.h"
#include "key/key_plan.h"
#include "sort/memory/shared_sort.h"
#include "sort/sort.h"
#include "work.h"

/* Have any process's rows been lost, so that all of the input must be read again? */
static GsFallback
find_failure(const GsSinkRows *rows)
{
	return rows->failure != GS_FALLBACK_NONE ? rows->failure :
		(GsFallback) pg_atomic_read_u32(&rows->shared->failure);
}

static inline bool
has_failed(const GsSinkRows *rows)
{
	return find_failure(rows) != GS_FALLBACK_NONE;
}

void
gpusort_sink_rows_give_up(GsSinkRows *rows, GsSort *sort)
{
	GsFallback	failure = find_failure(rows);

	if (failure == GS_FALLBACK_NONE)
		failure = gpusort_sort_loss(sort);
	pg_atomic_write_u32(&rows->shared->failure, failure);
	rows->ahead = false;
	gpusort_sort_fail(sort, failure);
}

TupleTableSlot *
gpusort_sink_rows_read(GsSinkRows *rows)
{
	TupleTableSlot *slot = NULL;

	if (!rows->input_ended)
		slot = gpusort_row_source_next(rows->source);
	rows->input_ended = TupIsNull(slot);
	return rows->input_ended ? NULL : slot;
}

TupleTableSlot *
gpusort_sink_rows_next(GsSinkRows *rows)
{
	TupleTableSlot *slot = NULL;

	/* If rows are lost, no more are wanted. */
	if (likely(!has_failed(rows)))
		slot = gpusort_sink_rows_read(rows);
	if (slot != NULL)
		rows->nrows++;
	return slot;
}

const GsKeyPlan *
gpusort_sink_rows_key_plan(const GsSinkRows *rows, int string_words)
{
	return gpusort_sort_plan_leader_keys(&rows->spec, string_words);
}

/* Add the rows that next() returns to a sort.  Returns false if rows of any process are lost. */
static bool
add_rows(GsSinkRows *rows, GsSort *sort, GsNextRow next)
{
	TupleTableSlot *slot;

	while ((slot = next(rows)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_sort_add(sort, slot))
			return false;
	}
	return !has_failed(rows);
}

void
gpusort_sink_rows_fill_sort(GsSinkRows *rows, GsNextRow next)
{
	if (!add_rows(rows, rows->sort, next) ||
		!gpusort_sort_end_adding(rows->sort, &rows->ahead))
		gpusort_sink_rows_give_up(rows, rows->sort);
}

void
gpusort_sink_rows_publish(GsSinkRows *rows, GsSinkReport *report)
{
	report->nrows = rows->nrows;
	gpusort_worker_reports_publish(rows->reports, report);
}

void
gpusort_sink_rows_sort(GsSinkRows *rows, MemoryContext context, GsNextRow next)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsRunTarget target = {
		.set = rows->shared->runs,
		.producer = ParallelWorkerNumber
	};
	GsSortSpec	spec = rows->spec;
	GsSinkReport report = {.sorted = true};
	GsSort	   *sort;

	spec.shared = rows->shared->shared_sort;
	spec.process = ParallelWorkerNumber + 1;
	spec.entered = rows->shared->mode == GS_SINK_GPU;
	spec.key_plan = gpusort_sink_rows_key_plan(rows, spec.shared == NULL ? 1 :
											   gpusort_shared_sort_string_words(spec.shared));
	spec.target = &target;
	spec.nested = true;
	sort = gpusort_sort_begin(&spec);
	MemoryContextSwitchTo(caller);
	if (!gpusort_sort_attach(sort))
	{
		gpusort_sort_end(sort);
		return;
	}
	if (add_rows(rows, sort, next) && gpusort_sort_finish(sort))
	{
		gpusort_sort_report(sort, &report.sort);
		report.run = *gpusort_sort_shared_run(sort);
		gpusort_sink_rows_publish(rows, &report);
	}
	else
		gpusort_sink_rows_give_up(rows, sort);
	gpusort_sort_end(sort);
}

void
gpusort_sink_rows_put(GsSinkRows *rows, MemoryContext context)
{
	if (IsParallelWorker())
		gpusort_sink_rows_sort(rows, context, gpusort_sink_rows_next);
	else if (gpusort_sort_attach(rows->sort))
		gpusort_sink_rows_fill_sort(rows, gpusort_sink_rows_next);
}
