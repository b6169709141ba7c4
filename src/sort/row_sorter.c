/*-------------------------------------------------------------------------
 *
 * row_sorter.c
 *		Sorts rows without using the disk, on a GPU or in the backend's memory.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "settings.h"
#include "sort/base/budget.h"
#include "sort/base/tuple_rows.h"
#include "sort/row_sorter.h"
#include "work.h"

void
gpusort_row_sorter_init(GsRowSorter *sorter, const GsSortSpec *spec,
						MemoryContext context)
{
	memset(sorter, 0, sizeof(*sorter));
	sorter->spec = spec;
	sorter->parent = context;
	sorter->stock_ties = gpusort_debug_stock_ties && !spec->index_build &&
		(!spec->nested || spec->stock_ties || spec->target != NULL);
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

static void
create_memory_sort(GsRowSorter *sorter)
{
	Size		limit = gpusort_sort_spec_memory(sorter->spec);

	sorter->cpu = gpusort_memory_sort_create(sorter->spec,
											 gpusort_budget_create(limit));
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

	if (spread != NULL && sorter->stock_ties)
		create_memory_sort(sorter);
	MemoryContextSwitchTo(caller);
	return use_spread(sorter, spread);
}

bool
gpusort_row_sorter_begin_batch(GsRowSorter *sorter, int processes, GsFallback *reason)
{
	MemoryContext caller = enter_new_context(sorter);
	GsGpuSpread *spread = gpusort_gpu_spread_create_batch(sorter->spec, processes, reason);

	MemoryContextSwitchTo(caller);
	return use_spread(sorter, spread);
}

void
gpusort_row_sorter_begin_cpu(GsRowSorter *sorter)
{
	MemoryContext caller = enter_new_context(sorter);

	create_memory_sort(sorter);
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

	sorted = (sorter->spread == NULL || gpusort_gpu_spread_sort(sorter->spread)) &&
		(sorter->cpu == NULL || gpusort_memory_sort_sort(sorter->cpu));
	MemoryContextSwitchTo(caller);
	return sorted;
}

/* ----------------------------------------------------------------
 *		stock_ties
 * ----------------------------------------------------------------
 */

/* Flags of a tuple that say what it consists of, and not what is known of its xmin. */
#define LAYOUT_FLAGS	(HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL)

/* Do whole tuples have the same columns, bit for bit? */
static bool
is_same_tuple(const GsSortSpec *spec, const Datum *a, const Datum *b)
{
	MinimalTuple ours = (MinimalTuple) DatumGetPointer(a[spec->tuple_attno - 1]);
	MinimalTuple other = (MinimalTuple) DatumGetPointer(b[spec->tuple_attno - 1]);
	Size		compared = offsetof(MinimalTupleData, t_hoff);

	return ours->t_len == other->t_len &&
		HeapTupleHeaderGetNatts(ours) == HeapTupleHeaderGetNatts(other) &&
		((ours->t_infomask ^ other->t_infomask) & LAYOUT_FLAGS) == 0 &&
		memcmp((char *) ours + compared, (char *) other + compared,
			   ours->t_len - compared) == 0;
}

/* Is a row the same as the one in 'slot', bit for bit? */
static bool
is_same_row(const GsSortSpec *spec, TupleTableSlot *slot, const Datum *values, const bool *isnull)
{
	TupleDesc	tupdesc = slot->tts_tupleDescriptor;

	if (spec->tuple_attno > 0)
		return is_same_tuple(spec, values, slot->tts_values);
	for (int i = 0; i < tupdesc->natts; i++)
	{
		if (isnull[i] != slot->tts_isnull[i])
			return false;
		if (!isnull[i] &&
			!datum_image_eq(values[i], slot->tts_values[i],
							TupleDescAttr(tupdesc, i)->attbyval,
							TupleDescAttr(tupdesc, i)->attlen))
			return false;
	}
	return true;
}

/*
 * Compare the rows of the GPU sessions with those of the memory sort.  Returns false if
 * the former are lost.
 */
static bool
compare_rows(GsRowSorter *sorter)
{
	TupleDesc	tupdesc = sorter->spec->tupdesc;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	Datum	   *values = palloc(tupdesc->natts * sizeof(Datum));
	bool	   *isnull = palloc(tupdesc->natts * sizeof(bool));
	int64		nrows = gpusort_memory_sort_count(sorter->cpu);
	int64		index = 0;

	if (gpusort_gpu_spread_count(sorter->spread) != nrows)
		elog(ERROR, "a GPU sorted " INT64_FORMAT " of " INT64_FORMAT " rows",
			 gpusort_gpu_spread_count(sorter->spread), nrows);
	while (index < nrows &&
		   gpusort_row_sorter_get_gpu(sorter, index, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_memory_sort_get(sorter->cpu, index, slot->tts_values,
								slot->tts_isnull);
		if (!is_same_row(sorter->spec, slot, values, isnull))
			elog(ERROR, "GPU and CPU differ in sorted row " INT64_FORMAT,
				 index);
		index++;
	}
	ExecDropSingleTupleTableSlot(slot);
	return index == nrows;
}

bool
gpusort_row_sorter_apply_stock_ties(GsRowSorter *sorter)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->context);
	bool		kept = sorter->spread == NULL || compare_rows(sorter);

	if (kept)
		gpusort_memory_sort_apply_stock_ties(sorter->cpu);
	MemoryContextSwitchTo(caller);
	return kept;
}
