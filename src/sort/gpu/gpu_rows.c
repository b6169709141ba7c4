/*-------------------------------------------------------------------------
 *
 * gpu_rows.c
 *		The rows of a sort that are on a GPU: a session, and the order of its ties.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "sort/gpu/gpu_rows.h"

bool
gpusort_gpu_rows_begin(GsGpuRows *rows, const GsSortSpec *spec, GsFallback *reason)
{
	MemoryContext caller;

	rows->context = AllocSetContextCreate(CurrentMemoryContext, "pg_gpusort rows on a GPU",
										  ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(rows->context);
	rows->session = gpusort_gpu_session_create(spec, reason);
	MemoryContextSwitchTo(caller);
	if (rows->session == NULL)
		gpusort_gpu_rows_end(rows);
	return rows->session != NULL;
}

bool
gpusort_gpu_rows_sort(GsGpuRows *rows, const GsSortSpec *spec)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	bool		sorted;

	rows->ties = gpusort_gpu_ties_create(spec, rows->session);
	sorted = gpusort_gpu_session_sort(rows->session);
	MemoryContextSwitchTo(caller);
	return sorted;
}

/* Write the rows that the device has refused, in the order of arrival. */
static void
write_rest(const GsGpuRows *rows, GsCpuSort *sort, TupleTableSlot *slot)
{
	sort->may_merge = false;	/* the rows before these are not in a run yet */
	while (gpusort_gpu_session_take_rest(rows->session, slot->tts_values, slot->tts_isnull))
		gpusort_cpu_sort_add(sort, slot->tts_values, slot->tts_isnull);
	gpusort_cpu_sort_write_rows(sort);
	sort->may_merge = true;
}

/* Write the rows on the device as a run.  Returns false if rows are lost. */
static bool
write_run(const GsGpuRows *rows, GsExternalSort *external, int number, TupleTableSlot *slot)
{
	int64		nrows = gpusort_gpu_session_count(rows->session);
	int64		position = 0;

	gpusort_external_begin_run(external);
	while (position < nrows &&
		   gpusort_gpu_rows_get(rows, position, slot->tts_values, slot->tts_isnull))
	{
		gpusort_external_put(external, slot->tts_values, slot->tts_isnull);
		position++;
	}
	gpusort_external_end_run(external, number);
	return position == nrows;
}

bool
gpusort_gpu_rows_write(const GsGpuRows *rows, GsCpuSort *sort)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	int			first_run = gpusort_external_runs(sort->external);
	bool		written;

	/*
	 * Refused rows occupy pool chunks that reading needs, so write them
	 * first.
	 */
	write_rest(rows, sort, slot);
	written = write_run(rows, sort->external, first_run, slot);
	if (!written)
		gpusort_external_drop_runs(sort->external, first_run);
	ExecDropSingleTupleTableSlot(slot);
	return written;
}

bool
gpusort_gpu_rows_is_near(const GsGpuRows *rows, int64 position)
{
	return rows->ties != NULL ? gpusort_gpu_ties_is_near(rows->ties, position) :
		gpusort_gpu_session_is_near(rows->session, position);
}

bool
gpusort_gpu_rows_in_place(const GsGpuRows *rows, int64 position, GsRowsInPlace *in_place)
{
	return rows->ties != NULL ? gpusort_gpu_ties_in_place(rows->ties, position, in_place) :
		gpusort_gpu_session_in_place(rows->session, position, in_place);
}

void
gpusort_gpu_rows_end(GsGpuRows *rows)
{
	if (rows->ties != NULL)
		gpusort_gpu_ties_end(rows->ties);
	if (rows->context != NULL)
		MemoryContextDelete(rows->context);
	memset(rows, 0, sizeof(*rows));
}
