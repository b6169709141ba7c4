/*-------------------------------------------------------------------------
 *
 * host_sort.c
 *		Sorts rows on the host alone, in memory or, if they do not fit, on disk.
 *
 * Rows are added to a memory sort until one does not fit.  Then the rows are written
 * to disk as a run, a run builder sorts the rows that follow, and the runs are merged
 * at the end.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/budget.h"
#include "sort/base/sort_stats.h"
#include "sort/disk/external_sort.h"
#include "sort/disk/host_sort.h"
#include "sort/disk/run_builder.h"
#include "sort/memory/memory_sort.h"

struct GsHostSort
{
	MemoryContext context;
	GsSortSpec	spec;
	Size		memory;			/* bytes */

	/* The rows in memory; NULL after an overflow. */
	MemoryContext rows_context;
	GsMemorySort *rows;

	/* After an overflow. */
	GsExternalSort *external;	/* NULL before one */
	GsRunBuilder *builder;		/* NULL once all rows have been added */
	int64		next_position;	/* after that of the row last read */
};

static void
begin_rows(GsHostSort *sort)
{
	MemoryContext caller;

	sort->rows_context = AllocSetContextCreate(sort->context,
											   "pg_gpusort rows",
											   ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(sort->rows_context);
	sort->rows = gpusort_memory_sort_create(&sort->spec,
											gpusort_budget_create(sort->memory));
	MemoryContextSwitchTo(caller);
}

GsHostSort *
gpusort_host_sort_begin(const GsSortSpec *spec)
{
	GsHostSort *sort = palloc0(sizeof(GsHostSort));

	sort->context = CurrentMemoryContext;
	sort->spec = *spec;
	sort->spec.bound = 0;
	sort->memory = gpusort_sort_spec_memory(spec);
	begin_rows(sort);
	return sort;
}

/* The rows do not fit in memory.  Write those that we have. */
static void
overflow(GsHostSort *sort, GsFallback reason)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	if (reason == GS_FALLBACK_WORK_MEM && sort->spec.index_build)
		reason = GS_FALLBACK_MAINTENANCE_MEM;
	gpusort_stats_count_fallback(reason);
	sort->external = gpusort_external_begin(&sort->spec, sort->memory, NULL);
	MemoryContextSwitchTo(sort->rows_context);
	gpusort_run_builder_write(&sort->spec, sort->external, sort->rows,
							  sort->memory);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(sort->rows_context);
	sort->rows_context = NULL;
	sort->rows = NULL;
	gpusort_external_limit_runs(sort->external);
}

void
gpusort_host_sort_put(GsHostSort *sort, const Datum *values,
					  const bool *isnull)
{
	MemoryContext caller;

	if (sort->builder == NULL)
	{
		if (gpusort_memory_sort_put(sort->rows, values, isnull))
			return;
		overflow(sort, gpusort_memory_sort_refusal(sort->rows));
		caller = MemoryContextSwitchTo(sort->context);
		sort->builder = gpusort_run_builder_begin(&sort->spec, sort->external,
												  sort->memory, true);
		MemoryContextSwitchTo(caller);
	}
	gpusort_run_builder_put(sort->builder, values, isnull);
}

void
gpusort_host_sort_perform(GsHostSort *sort)
{
	MemoryContext caller;
	bool		sorted;

	if (sort->builder != NULL)
	{
		gpusort_run_builder_end(sort->builder);
		sort->builder = NULL;
	}
	else
	{
		caller = MemoryContextSwitchTo(sort->rows_context);
		sorted = gpusort_memory_sort_sort(sort->rows);
		MemoryContextSwitchTo(caller);
		if (!sorted)
			overflow(sort, GS_FALLBACK_OUT_OF_MEMORY);
	}
	if (sort->external != NULL)
		gpusort_external_perform(sort->external);
}

bool
gpusort_host_sort_can_get(const GsHostSort *sort, int64 position)
{
	return sort->external == NULL || sort->spec.random_access ||
		position >= sort->next_position;
}

void
gpusort_host_sort_get(GsHostSort *sort, int64 position, Datum *values,
					  bool *isnull)
{
	if (sort->external != NULL)
		gpusort_external_get(sort->external, position, values, isnull);
	else
		gpusort_memory_sort_get(sort->rows, position, values, isnull);
	sort->next_position = position + 1;
}

void
gpusort_host_sort_end(GsHostSort *sort)
{
	if (sort->rows_context != NULL)
		MemoryContextDelete(sort->rows_context);
	if (sort->external != NULL)
		gpusort_external_end(sort->external);
	pfree(sort);
}
