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

	sorter->gpu = gpusort_gpu_session_create(sorter->spec, reason);
	MemoryContextSwitchTo(caller);
	if (sorter->gpu == NULL)
		gpusort_row_sorter_end(sorter);
	return sorter->gpu != NULL;
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
gpusort_row_sorter_begin_shared(GsRowSorter *sorter, GsParticipant *participant)
{
	MemoryContext caller = enter_new_context(sorter);

	sorter->cpu = gpusort_participant_begin_rows(participant);
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_sorter_end(GsRowSorter *sorter)
{
	if (sorter->ties != NULL)
		gpusort_gpu_ties_end(sorter->ties);
	if (sorter->context != NULL)
		MemoryContextDelete(sorter->context);
	sorter->context = NULL;
	sorter->gpu = NULL;
	sorter->ties = NULL;
	sorter->cpu = NULL;
}

GsFallback
gpusort_row_sorter_failure(const GsRowSorter *sorter)
{
	return sorter->gpu != NULL ? gpusort_gpu_session_failure(sorter->gpu) :
		gpusort_memory_sort_refusal(sorter->cpu);
}

int64
gpusort_row_sorter_count(const GsRowSorter *sorter)
{
	return sorter->cpu != NULL ? gpusort_memory_sort_count(sorter->cpu) :
		gpusort_gpu_session_count(sorter->gpu);
}

bool
gpusort_row_sorter_sort(GsRowSorter *sorter)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->context);
	bool		sorted;

	if (sorter->gpu != NULL)
	{
		sorter->ties = gpusort_gpu_ties_create(sorter->spec, sorter->gpu);
		sorted = gpusort_gpu_session_sort(sorter->gpu);
	}
	else
		sorted = gpusort_memory_sort_sort(sorter->cpu);
	MemoryContextSwitchTo(caller);
	return sorted;
}

bool
gpusort_row_sorter_is_near_gpu(const GsRowSorter *sorter, int64 position)
{
	return sorter->ties != NULL ? gpusort_gpu_ties_is_near(sorter->ties, position) :
		gpusort_gpu_session_is_near(sorter->gpu, position);
}

bool
gpusort_row_sorter_in_place_gpu(const GsRowSorter *sorter, int64 position,
								GsRowsInPlace *in_place)
{
	return sorter->ties != NULL ? gpusort_gpu_ties_in_place(sorter->ties, position, in_place) :
		gpusort_gpu_session_in_place(sorter->gpu, position, in_place);
}
