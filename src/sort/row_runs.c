/*-------------------------------------------------------------------------
 *
 * row_runs.c
 *		Writes rows of a sort to disk as sorted runs.
 *
 * Runs are kept in the order in which their rows arrived, because among ties, the
 * rows of earlier runs are returned first.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "sort/base/sort_stats.h"
#include "sort/disk/sorted_run.h"
#include "sort/gpu/gpu_session.h"
#include "sort/row_runs.h"

void
gpusort_row_runs_init(GsRowRuns *runs, const GsSortSpec *spec,
					  MemoryContext context)
{
	memset(runs, 0, sizeof(*runs));
	runs->spec = spec;
	runs->context = context;
}

void
gpusort_row_runs_set_target(GsRowRuns *runs, const GsRunTarget *target)
{
	runs->target = target;
}

static GsExternalSort *
begin_external(GsRowRuns *runs)
{
	MemoryContext caller = MemoryContextSwitchTo(runs->context);
	GsExternalSort *external =
		gpusort_external_begin(runs->spec,
							   gpusort_sort_spec_memory(runs->spec),
							   runs->target);

	MemoryContextSwitchTo(caller);
	return external;
}

void
gpusort_row_runs_end(GsRowRuns *runs)
{
	if (runs->external != NULL)
		gpusort_external_end(runs->external);
	runs->external = NULL;
	runs->builder = NULL;
	runs->overflow = GS_FALLBACK_NONE;
}

/* ----------------------------------------------------------------
 *		overflow
 * ----------------------------------------------------------------
 */

void
gpusort_row_runs_begin_overflow(GsRowRuns *runs, GsFallback reason)
{
	if (reason == GS_FALLBACK_WORK_MEM && runs->spec->index_build)
		reason = GS_FALLBACK_MAINTENANCE_MEM;
	runs->overflow = reason;
	/* The leader counts the sort as a whole. */
	if (runs->spec->team == NULL)
		gpusort_stats_count_fallback(reason);
	gpusort_row_runs_begin(runs);
}

void
gpusort_row_runs_begin(GsRowRuns *runs)
{
	runs->external = begin_external(runs);
}

void
gpusort_row_runs_begin_anew(GsRowRuns *runs)
{
	gpusort_external_end(runs->external);
	runs->target = NULL;
	gpusort_row_runs_begin(runs);
}

void
gpusort_row_runs_note_overflow(GsRowRuns *runs, GsFallback reason)
{
	if (reason == GS_FALLBACK_NONE || runs->overflow != GS_FALLBACK_NONE)
		return;
	runs->overflow = reason;
	gpusort_stats_count_fallback(reason);
}

/* Write the rows for which there was no device memory. */
static void
write_rest(GsRowRuns *runs, GsGpuSession *session, TupleTableSlot *slot)
{
	GsRunBuilder *builder =
		gpusort_run_builder_begin(runs->spec, runs->external,
								  gpusort_sort_spec_memory(runs->spec),
								  false);

	while (gpusort_gpu_session_take_rest(session, slot->tts_values, slot->tts_isnull))
		gpusort_run_builder_put(builder, slot->tts_values, slot->tts_isnull);
	gpusort_run_builder_end(builder);
}

/* Write the rows of a sorted GPU session, as one run.  Returns false if they are lost. */
static bool
write_gpu_rows(GsRowRuns *runs, GsRowSorter *sorter)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(runs->spec->tupdesc,
													&TTSOpsVirtual);
	int64		nrows = gpusort_row_sorter_count(sorter);
	int			first_run = gpusort_external_runs(runs->external);
	int64		index = 0;

	/*
	 * Refused rows occupy pool chunks that reading needs, so write them
	 * first.
	 */
	write_rest(runs, sorter->gpu, slot);
	gpusort_external_begin_run(runs->external);
	for (; index < nrows; index++)
	{
		if (!gpusort_row_sorter_get_gpu(sorter, index, slot->tts_values, slot->tts_isnull))
			break;
		gpusort_external_put(runs->external, slot->tts_values, slot->tts_isnull);
	}
	gpusort_external_end_run(runs->external, first_run);
	if (index < nrows)
		gpusort_external_drop_runs(runs->external, first_run);
	ExecDropSingleTupleTableSlot(slot);
	return index == nrows;
}

bool
gpusort_row_runs_write(GsRowRuns *runs, GsRowSorter *sorter)
{
	MemoryContext caller = MemoryContextSwitchTo(sorter->context);
	bool		written = true;

	if (sorter->gpu != NULL)
		written = write_gpu_rows(runs, sorter);
	else
		gpusort_run_builder_write(runs->spec, runs->external, sorter->cpu,
								  gpusort_sort_spec_memory(runs->spec));
	MemoryContextSwitchTo(caller);
	return written;
}

void
gpusort_row_runs_begin_builder(GsRowRuns *runs)
{
	MemoryContext caller = MemoryContextSwitchTo(runs->context);

	runs->builder =
		gpusort_run_builder_begin(runs->spec, runs->external,
								  gpusort_sort_spec_memory(runs->spec),
								  true);
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_runs_end_builder(GsRowRuns *runs)
{
	gpusort_run_builder_end(runs->builder);
	runs->builder = NULL;
}
