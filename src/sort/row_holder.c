/*-------------------------------------------------------------------------
 *
 * row_holder.c
 *		Holds the rows of a sort in memory: a GPU's or the backend's own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "settings.h"
#include "sort/base/budget.h"
#include "sort/row_holder.h"
#include "work.h"

void
gpusort_row_holder_init(GsRowHolder *holder, const GsSortSpec *spec,
						MemoryContext context)
{
	memset(holder, 0, sizeof(*holder));
	holder->spec = spec;
	holder->parent = context;
	holder->stock_ties = gpusort_debug_stock_ties && !spec->index_build &&
		(!spec->nested || spec->target != NULL);
}

/* Make the context of the sessions, and switch to it; returns the current one. */
static MemoryContext
enter_new_context(GsRowHolder *holder)
{
	Assert(holder->context == NULL);
	holder->context = AllocSetContextCreate(holder->parent, "pg_gpusort rows",
											ALLOCSET_DEFAULT_SIZES);
	return MemoryContextSwitchTo(holder->context);
}

static void
create_cpu_session(GsRowHolder *holder)
{
	Size		limit = gpusort_sort_spec_memory(holder->spec);

	holder->cpu = gpusort_cpu_session_create(holder->spec,
											 gpusort_budget_create(limit));
}

bool
gpusort_row_holder_begin_gpu(GsRowHolder *holder, GsFallback *reason)
{
	MemoryContext caller = enter_new_context(holder);

	holder->gpu = gpusort_gpu_session_create(holder->spec, reason);
	if (holder->gpu != NULL && holder->stock_ties)
		create_cpu_session(holder);
	MemoryContextSwitchTo(caller);
	if (holder->gpu != NULL)
		return true;
	gpusort_row_holder_end(holder);
	return false;
}

void
gpusort_row_holder_begin_cpu(GsRowHolder *holder)
{
	MemoryContext caller = enter_new_context(holder);

	create_cpu_session(holder);
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_holder_set_capacity(GsRowHolder *holder, double rows)
{
	if (holder->gpu != NULL)
		gpusort_gpu_session_set_capacity(holder->gpu, rows);
	else
		gpusort_cpu_session_set_capacity(holder->cpu, rows);
}

void
gpusort_row_holder_end(GsRowHolder *holder)
{
	if (holder->gpu_ties != NULL)
		gpusort_gpu_ties_end(holder->gpu_ties);
	if (holder->context != NULL)
		MemoryContextDelete(holder->context);
	holder->context = NULL;
	holder->gpu = NULL;
	holder->gpu_ties = NULL;
	holder->cpu = NULL;
}

GsFallback
gpusort_row_holder_failure(const GsRowHolder *holder)
{
	return holder->gpu != NULL ? gpusort_gpu_session_failure(holder->gpu) :
		gpusort_cpu_session_refusal(holder->cpu);
}

int64
gpusort_row_holder_count(const GsRowHolder *holder)
{
	return holder->cpu != NULL ? gpusort_cpu_session_count(holder->cpu) :
		gpusort_gpu_session_count(holder->gpu);
}

bool
gpusort_row_holder_sort(GsRowHolder *holder)
{
	MemoryContext caller = MemoryContextSwitchTo(holder->context);
	bool		sorted;

	if (holder->gpu != NULL)
		holder->gpu_ties = gpusort_gpu_ties_create(holder->spec, holder->gpu);
	sorted = (holder->gpu == NULL || gpusort_gpu_session_sort(holder->gpu)) &&
		(holder->cpu == NULL || gpusort_cpu_session_sort(holder->cpu));
	MemoryContextSwitchTo(caller);
	return sorted;
}

/* ----------------------------------------------------------------
 *		stock_ties
 * ----------------------------------------------------------------
 */

/* Is a row the same bit for bit as that in 'slot'? */
static bool
is_same_row(TupleTableSlot *slot, const Datum *values, const bool *isnull)
{
	TupleDesc	tupdesc = slot->tts_tupleDescriptor;

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

/* Compare both sessions' rows; false if those of the GPU session are lost. */
static bool
compare_sessions(GsRowHolder *holder)
{
	TupleDesc	tupdesc = holder->spec->tupdesc;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	Datum	   *values = palloc(tupdesc->natts * sizeof(Datum));
	bool	   *isnull = palloc(tupdesc->natts * sizeof(bool));
	int64		nrows = gpusort_cpu_session_count(holder->cpu);
	int64		index = 0;

	if (gpusort_gpu_session_count(holder->gpu) != nrows)
		elog(ERROR, "a GPU sorted " INT64_FORMAT " of " INT64_FORMAT " rows",
			 gpusort_gpu_session_count(holder->gpu), nrows);
	while (index < nrows &&
		   gpusort_row_holder_get_gpu(holder, index, values, isnull))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_cpu_session_get(holder->cpu, index, slot->tts_values,
								slot->tts_isnull);
		if (!is_same_row(slot, values, isnull))
			elog(ERROR, "GPU and CPU differ in sorted row " INT64_FORMAT,
				 index);
		index++;
	}
	ExecDropSingleTupleTableSlot(slot);
	return index == nrows;
}

bool
gpusort_row_holder_apply_stock_ties(GsRowHolder *holder)
{
	MemoryContext caller = MemoryContextSwitchTo(holder->context);
	bool		kept = holder->gpu == NULL || compare_sessions(holder);

	if (kept)
		gpusort_cpu_session_apply_stock_ties(holder->cpu);
	MemoryContextSwitchTo(caller);
	return kept;
}
