/*-------------------------------------------------------------------------
 *
 * kept_copy.c
 *		The copy that a sort keeps of its rows on a GPU, in case that is lost.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "settings.h"
#include "sort/kept_copy.h"

/* What an index build reads again may come in any order. */
bool
gpusort_kept_copy_is_wanted(const GsSortSpec *spec)
{
	switch ((GsLossSetting) gpusort_on_gpu_loss)
	{
		case GS_LOSS_AUTO:
			return spec->input.repeat == GS_INPUT_ONCE;
		case GS_LOSS_COPY:
			return spec->input.repeat != GS_INPUT_SAME_ORDER && !spec->index_build;
		case GS_LOSS_ERROR:
			break;
	}
	return false;
}

void
gpusort_kept_copy_begin(GsKeptCopy *copy, GsRowSorter *sorter)
{
	MemoryContext caller;

	if (copy->rows == NULL)
	{
		caller = MemoryContextSwitchTo(sorter->parent);
		copy->rows = gpusort_row_copy_create(sorter->spec, NULL);
		MemoryContextSwitchTo(caller);
	}
	gpusort_gpu_session_keep_copy(sorter->gpu, copy->rows);
}

void
gpusort_kept_copy_end(GsKeptCopy *copy)
{
	if (copy->slot != NULL)
		ExecDropSingleTupleTableSlot(copy->slot);
	if (copy->rows != NULL)
		gpusort_row_copy_end(copy->rows);
	if (copy->set_context != NULL)
		MemoryContextDelete(copy->set_context);
	memset(copy, 0, sizeof(GsKeptCopy));
}

/* ----------------------------------------------------------------
 *		copies of several processes
 * ----------------------------------------------------------------
 */

bool
gpusort_kept_copy_share(GsKeptCopy *copy, GsRowSorter *sorter, GsRunSetHandle *handle)
{
	MemoryContext caller;

	if (!gpusort_kept_copy_is_wanted(sorter->spec) ||
		!gpusort_row_copy_allowed(sorter->spec, true))
		return false;
	copy->set_context = AllocSetContextCreate(sorter->parent, "pg_gpusort copies",
											  ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(copy->set_context);
	copy->set = gpusort_run_set_create();
	MemoryContextSwitchTo(caller);
	*handle = gpusort_run_set_handle(copy->set);
	return true;
}

void
gpusort_kept_copy_import(GsKeptCopy *copy, GsRowSorter *sorter)
{
	const GsInput *input = &sorter->spec->input;
	GsRunSetHandle set;
	MemoryContext caller;
	const GsSharedCopy *shared;

	if (copy->set == NULL || copy->rows != NULL)
		return;
	set = gpusort_run_set_handle(copy->set);
	caller = MemoryContextSwitchTo(sorter->parent);
	copy->rows = gpusort_row_copy_create(sorter->spec, NULL);
	for (int n = 0; (shared = input->copy(input->arg, n)) != NULL; n++)
		gpusort_row_copy_import(copy->rows, set, shared);
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		a GPU that is full or lost
 * ----------------------------------------------------------------
 */

void
gpusort_kept_copy_leave_memory(GsKeptCopy *copy, GsRowSorter *sorter)
{
	if (copy->rows != NULL)
		gpusort_row_copy_leave_memory(copy->rows);
	if (copy->reserved > 0)
		gpusort_memory_sort_release(sorter->cpu, copy->reserved);
	copy->reserved = 0;
}

void
gpusort_kept_copy_add_refused(GsKeptCopy *copy, GsRowSorter *sorter, TupleTableSlot *slot)
{
	if (copy->rows == NULL)
		return;
	gpusort_gpu_spread_copy_rest(sorter->spread);
	gpusort_row_copy_add_row(copy->rows, slot->tts_values, slot->tts_isnull);
}

void
gpusort_kept_copy_begin_taking(GsKeptCopy *copy, GsRowSorter *sorter, bool in_memory)
{
	Size		memory = gpusort_row_copy_memory(copy->rows);
	MemoryContext caller = MemoryContextSwitchTo(sorter->parent);

	copy->slot = MakeSingleTupleTableSlot(sorter->spec->tupdesc, &TTSOpsVirtual);
	MemoryContextSwitchTo(caller);
	if (in_memory && gpusort_memory_sort_reserve(sorter->cpu, memory))
		copy->reserved = memory;
	else
		gpusort_row_copy_leave_memory(copy->rows);
}

TupleTableSlot *
gpusort_kept_copy_take(GsKeptCopy *copy, GsRowSorter *sorter)
{
	TupleTableSlot *slot = ExecClearTuple(copy->slot);
	bool		taken = gpusort_row_copy_take(copy->rows, slot->tts_values,
											  slot->tts_isnull);
	Size		memory = gpusort_row_copy_memory(copy->rows);

	/* The memory sort gets what the copy has freed. */
	if (memory < copy->reserved)
	{
		gpusort_memory_sort_release(sorter->cpu, copy->reserved - memory);
		copy->reserved = memory;
	}
	if (taken)
		return ExecStoreVirtualTuple(slot);
	gpusort_kept_copy_end(copy);
	return NULL;
}
