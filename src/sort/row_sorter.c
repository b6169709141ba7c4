/*-------------------------------------------------------------------------
 *
 * row_sorter.c
 *		Sorts rows without using the disk, on a GPU or in the backend's memory.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "utils/memutils.h"

#include "sort/base/budget.h"
#include "sort/row_sorter.h"

void
gpusort_row_sorter_init(GsRowSorter *sorter, const GsSortSpec *spec,
						MemoryContext context)
{
	memset(sorter, 0, sizeof(*sorter));
	sorter->spec = spec;
	sorter->parent = context;
}

/* Create a context for the rows and switch to it.  Returns the current context. */
static MemoryContext
enter_new_context(GsRowSorter *sorter)
{
	Assert(sorter->context == NULL);
	sorter->context = AllocSetContextCreate(sorter->parent, "pg_gpusort rows",
											ALLOCSET_DEFAULT_SIZES);
	return MemoryContextSwitchTo(sorter->context);
}

/* Add rows to new GPU sessions.  Without any, makes the row sorter empty and returns false. */
static bool
use_spread(GsRowSorter *sorter, GsGpuSpread *spread)
{
	sorter->spread = spread;
	if (spread == NULL)
	{
		gpusort_row_sorter_end(sorter);
		return false;
	}
	sorter->gpu = gpusort_gpu_spread_session(spread);
	return true;
}

bool
gpusort_row_sorter_begin_gpu(GsRowSorter *sorter, GsFallback *reason)
{
	MemoryContext caller = enter_new_context(sorter);
	GsGpuSpread *spread = gpusort_gpu_spread_create(sorter->spec, reason);

	MemoryContextSwitchTo(caller);
	return use_spread(sorter, spread);
}

void
gpusort_row_sorter_begin_cpu(GsRowSorter *sorter)
{
	MemoryContext caller = enter_new_context(sorter);
	Size		limit = gpusort_sort_spec_memory(sorter->spec);

	sorter->cpu = gpusort_memory_sort_create(sorter->spec,
											 gpusort_budget_create(limit));
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_sorter_begin_shared(GsRowSorter *sorter, GsSharedMember *member)
{
	MemoryContext caller = enter_new_context(sorter);

	sorter->cpu = gpusort_shared_member_begin_rows(member);
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_sorter_set_capacity(GsRowSorter *sorter, double rows)
{
	if (sorter->spread != NULL)
		gpusort_gpu_spread_set_capacity(sorter->spread, rows);
	else
		gpusort_memory_sort_set_capacity(sorter->cpu, rows);
}

void
gpusort_row_sorter_end(GsRowSorter *sorter)
{
	if (sorter->spread != NULL)
		gpusort_gpu_spread_end(sorter->spread);
	if (sorter->context != NULL)
		MemoryContextDelete(sorter->context);
	sorter->context = NULL;
	sorter->spread = NULL;
	sorter->gpu = NULL;
	sorter->cpu = NULL;
}

GsFallback
gpusort_row_sorter_failure(const GsRowSorter *sorter)
{
	return sorter->spread != NULL ? gpusort_gpu_spread_failure(sorter->spread) :
		gpusort_memory_sort_refusal(sorter->cpu);
}

int64
gpusort_row_sorter_count(const GsRowSorter *sorter)
{
	return sorter->cpu != NULL ? gpusort_memory_sort_count(sorter->cpu) :
		gpusort_gpu_spread_count(sorter->spread);
}

bool
gpusort_row_sorter_grow(GsRowSorter *sorter)
{
	bool		grown = gpusort_gpu_spread_grow(sorter->spread);

	sorter->gpu = gpusort_gpu_spread_session(sorter->spread);
	return grown;
}

bool
gpusort_row_sorter_sort(GsRowSorter *sorter)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->context);
	bool		sorted;

	sorted = sorter->spread != NULL ? gpusort_gpu_spread_sort(sorter->spread) :
		gpusort_memory_sort_sort(sorter->cpu);
	MemoryContextSwitchTo(caller);
	return sorted;
}
