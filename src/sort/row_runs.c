/*-------------------------------------------------------------------------
 *
 * row_runs.c
 *		Writes rows of a sort to disk as sorted runs, and shares runs.
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

static GsExternalSort *
begin_external(GsRowRuns *runs)
{
	MemoryContext caller = MemoryContextSwitchTo(runs->context);
	GsExternalSort *external =
		gpusort_external_begin(runs->spec,
							   gpusort_sort_spec_memory(runs->spec),
							   runs->has_own_target ? &runs->own_target :
							   runs->spec->target);

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
	/* A worker has a target.  The leader counts the sort as a whole. */
	if (runs->spec->target == NULL)
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
	MemoryContext caller = MemoryContextSwitchTo(runs->context);

	gpusort_external_end(runs->external);
	runs->external = gpusort_external_begin(runs->spec, gpusort_sort_spec_memory(runs->spec), NULL);
	MemoryContextSwitchTo(caller);
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

/* ----------------------------------------------------------------
 *		runs from and for other processes
 * ----------------------------------------------------------------
 */

bool
gpusort_row_runs_make_set(GsRowRuns *runs, GsRowSorter *sorter, int nprocesses,
						  bool expected, bool shared, GsRunSetHandle *handle)
{
	const GsSortSpec *spec = runs->spec;
	double		rows = spec->expected_rows;
	MemoryContext caller;

	if (spec->bound > 0)
		rows = Min(rows, spec->bound);
	if (expected && !gpusort_shared_runs_allowed(rows, spec->expected_width))
		return false;
	caller = MemoryContextSwitchTo(runs->context);
	runs->set = gpusort_run_set_create();
	*handle = gpusort_run_set_handle(runs->set);
	MemoryContextSwitchTo(caller);
	runs->has_own_target = shared;
	runs->own_target.set = *handle;
	runs->own_target.producer = nprocesses; /* those of others are smaller */

	/* Their runs will be read while our rows are still in memory. */
	runs->reader_bytes = nprocesses *
		gpusort_run_file_reader_bytes(gpusort_sort_spec_memory(spec));
	gpusort_row_runs_reserve_readers(runs, sorter);
	return true;
}

void
gpusort_row_runs_reserve_readers(const GsRowRuns *runs, GsRowSorter *sorter)
{
	if (sorter->cpu != NULL)
		(void) gpusort_memory_sort_reserve(sorter->cpu, runs->reader_bytes);
}

/* Add a run of another process to our runs, or to the rows in memory. */
static void
import_run(GsRowRuns *runs, GsRowSorter *sorter, const GsSharedRun *run)
{
	if (runs->external == NULL)
	{
		runs->external = begin_external(runs);
		if (gpusort_row_sorter_count(sorter) > 0)
			gpusort_external_hold(runs->external, sorter->cpu);
	}
	gpusort_external_import(runs->external, runs->set, run);
	runs->nimported++;
	gpusort_row_runs_note_overflow(runs, run->overflow);
}

int64
gpusort_row_runs_import(GsRowRuns *runs, GsRowSorter *sorter, List *imports)
{
	int64		ndropped = 0;
	ListCell   *lc;

	foreach(lc, imports)
	{
		const GsSharedRun *run = lfirst(lc);

		if (run->nrows > 0)
			import_run(runs, sorter, run);
		ndropped += run->ndropped;
	}
	return ndropped;
}

/* Write the first sorted rows of a memory sort as a shared run. */
static void
share_held_rows(GsRowRuns *runs, GsRowSorter *sorter, int64 nrows)
{
	GsExternalSort *external = begin_external(runs);
	MemoryContext caller = MemoryContextSwitchTo(runs->context);

	gpusort_run_builder_put_sorted(external, sorter->cpu, nrows);
	gpusort_external_share_run(external, &runs->shared);
	gpusort_external_end(external);
	MemoryContextSwitchTo(caller);
}

void
gpusort_row_runs_share(GsRowRuns *runs, GsRowSorter *sorter)
{
	int64		held = runs->external != NULL ?
		gpusort_external_count(runs->external) :
		gpusort_row_sorter_count(sorter);
	int64		nrows = held;

	if (runs->spec->bound > 0)
		nrows = Min(nrows, runs->spec->bound);
	if (runs->external != NULL && nrows > 0)
		gpusort_external_share(runs->external, nrows, &runs->shared);
	else if (nrows > 0)
		share_held_rows(runs, sorter, nrows);
	runs->shared.overflow = runs->overflow;
	runs->shared.ndropped = held - nrows;
}
