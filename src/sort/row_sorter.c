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

bool
gpusort_row_sorter_begin_gpu(GsRowSorter *sorter, GsFallback *reason)
{
	MemoryContext caller = enter_new_context(sorter);

	sorter->gpu_rows = gpusort_gpu_rows_create(sorter->spec, reason);
	if (sorter->gpu_rows != NULL)
		sorter->gpu = gpusort_gpu_rows_session(sorter->gpu_rows);
	MemoryContextSwitchTo(caller);
	if (sorter->gpu_rows == NULL)
		gpusort_row_sorter_end(sorter);
	return sorter->gpu_rows != NULL;
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
gpusort_row_sorter_end(GsRowSorter *sorter)
{
	if (sorter->gpu_rows != NULL)
		gpusort_gpu_rows_end(sorter->gpu_rows);
	if (sorter->context != NULL)
		MemoryContextDelete(sorter->context);
	sorter->context = NULL;
	sorter->gpu_rows = NULL;
	sorter->gpu = NULL;
	sorter->cpu = NULL;
}

GsFallback
gpusort_row_sorter_failure(const GsRowSorter *sorter)
{
	return sorter->gpu_rows != NULL ? gpusort_gpu_rows_failure(sorter->gpu_rows) :
		gpusort_memory_sort_refusal(sorter->cpu);
}

int64
gpusort_row_sorter_count(const GsRowSorter *sorter)
{
	return sorter->cpu != NULL ? gpusort_memory_sort_count(sorter->cpu) :
		gpusort_gpu_rows_count(sorter->gpu_rows);
}

bool
gpusort_row_sorter_sort(GsRowSorter *sorter)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->context);
	bool		sorted;

	sorted = sorter->gpu_rows != NULL ? gpusort_gpu_rows_sort(sorter->gpu_rows) :
		gpusort_memory_sort_sort(sorter->cpu);
	MemoryContextSwitchTo(caller);
	return sorted;
}
