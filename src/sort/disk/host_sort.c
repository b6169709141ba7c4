/*-------------------------------------------------------------------------
 *
 * host_sort.c
 *		Sorts rows on the host alone, in memory or, if they do not fit, on disk.
 *
 * Rows are added to a memory sort until one does not fit.  If the sort has a bound,
 * rows beyond the bound are then dropped, provided that they are a large enough
 * part of all.  Otherwise the rows are written to disk as a run, a run builder
 * sorts the rows that follow, and the runs are merged at the end.
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
	int64		bound;			/* number of rows wanted, or 0 for all */
	bool		is_cut;			/* have other rows been dropped? */

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
	sort->spec.target = NULL;
	sort->bound = spec->bound;
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

/* Sort the rows in memory.  Returns false if there is not enough memory. */
static bool
sort_rows(GsHostSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->rows_context);
	bool		sorted = gpusort_memory_sort_sort(sort->rows);

	MemoryContextSwitchTo(caller);
	return sorted;
}

/*
 * Sort the rows in memory, and move only those within the bound to a new memory
 * sort.  They move in the order of arrival, so that ties keep that order.  Returns
 * false, and moves nothing, if that would free too little memory.
 */
static bool
cut(GsHostSort *sort)
{
	int64		nrows = gpusort_memory_sort_count(sort->rows);
	int			natts = sort->spec.tupdesc->natts;
	GsMemorySort *old = sort->rows;
	MemoryContext old_context = sort->rows_context;
	Datum	   *values;
	bool	   *isnull;

	if (sort->bound == 0 || nrows - sort->bound <= nrows / GPUSORT_LEAST_CUT_PART ||
		!sort_rows(sort))
		return false;
	sort->is_cut = true;
	values = MemoryContextAlloc(old_context, natts * sizeof(Datum));
	isnull = MemoryContextAlloc(old_context, natts * sizeof(bool));
	begin_rows(sort);
	gpusort_memory_sort_keep_first(old, sort->bound);
	while (gpusort_memory_sort_take(old, values, isnull))
		gpusort_host_sort_put(sort, values, isnull);
	MemoryContextDelete(old_context);
	return true;
}

void
gpusort_host_sort_put(GsHostSort *sort, const Datum *values,
					  const bool *isnull)
{
	MemoryContext caller;

	if (sort->builder == NULL)
	{
		if (gpusort_memory_sort_put(sort->rows, values, isnull) ||
			(cut(sort) && sort->builder == NULL &&
			 gpusort_memory_sort_put(sort->rows, values, isnull)))
			return;
		if (sort->builder == NULL)
		{
			overflow(sort, gpusort_memory_sort_refusal(sort->rows));
			caller = MemoryContextSwitchTo(sort->context);
			sort->builder = gpusort_run_builder_begin(&sort->spec,
													  sort->external,
													  sort->memory, true);
			MemoryContextSwitchTo(caller);
		}
	}
	gpusort_run_builder_put(sort->builder, values, isnull);
}

void
gpusort_host_sort_perform(GsHostSort *sort)
{
	if (sort->builder != NULL)
	{
		gpusort_run_builder_end(sort->builder);
		sort->builder = NULL;
	}
	else if (!sort_rows(sort))
		overflow(sort, GS_FALLBACK_OUT_OF_MEMORY);
	if (sort->external != NULL)
		gpusort_external_perform(sort->external);
}

bool
gpusort_host_sort_can_get(const GsHostSort *sort, int64 position)
{
	if (sort->is_cut && position >= sort->bound)
		return false;
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
