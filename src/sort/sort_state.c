/*-------------------------------------------------------------------------
 *
 * sort_state.c
 *		The state of a sort, and what it shows while it runs.
 *
 * The other files of the facade call this when rows have moved or are lost, and when a phase
 * begins.  It raises an error if a move is not among those drawn in sort_private.h.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/base/sort_stats.h"
#include "sort/sort_private.h"

/* May a sort go from one state to another?  See sort_private.h. */
static bool
is_next_state(GsSortState from, GsSortState to)
{
	switch (to)
	{
		case GS_SORT_ADDING:
			return from == GS_SORT_LOST;
		case GS_SORT_SORTED:
			return from == GS_SORT_ADDING;
		case GS_SORT_READY:
			return from == GS_SORT_SORTED;
		case GS_SORT_LOST:
			return true;
	}
	return false;
}

void
gpusort_sort_enter(GsSort *sort, GsSortState state)
{
	if (!is_next_state(sort->state, state))
		elog(ERROR, "a sort cannot go from state %d to %d", sort->state, state);
	sort->state = state;
}

/* Can rows move between these locations?  See sort_private.h. */
static bool
is_next_location(GsRowLocation from, GsRowLocation to)
{
	switch (to)
	{
		case GS_ROWS_ON_GPU:
		case GS_ROWS_IN_MEMORY:
			return false;
		case GS_ROWS_IN_RUNS:
			return true;
		case GS_ROWS_SHARED:
			return from == GS_ROWS_IN_MEMORY || from == GS_ROWS_IN_RUNS;
	}
	return false;
}

void
gpusort_sort_set_location(GsSort *sort, GsRowLocation location)
{
	if (!is_next_location(sort->location, location))
		elog(ERROR, "rows of a sort cannot move from location %d to %d",
			 sort->location, location);
	sort->location = location;
}

/* ----------------------------------------------------------------
 *		loss
 * ----------------------------------------------------------------
 */

bool
gpusort_sort_lost_unless(GsSort *sort, bool kept)
{
	if (kept)
		return true;
	gpusort_sort_enter(sort, GS_SORT_LOST);
	if (sort->participant != NULL)
		gpusort_participant_fail(sort->participant);
	return false;
}

GsFallback
gpusort_sort_loss(const GsSort *sort)
{
	GsFallback	reason = GS_FALLBACK_NONE;

	if (gpusort_sort_is_on_gpu(sort))
		reason = gpusort_gpu_session_failure(sort->gpu.session);

	/*
	 * A session that is full has not lost its rows: then those of others are
	 * lost.
	 */
	if (sort->failure != GS_FALLBACK_NONE &&
		(reason == GS_FALLBACK_NONE || reason == GS_FALLBACK_DEVICE_MEMORY))
		return sort->failure;
	return reason;
}

void
gpusort_sort_check_restart(GsSort *sort)
{
	GsFallback	failure;

	if (sort->spec->repeatable && (!sort->returned || sort->spec->index_build))
		return;
	failure = gpusort_sort_loss(sort);
	gpusort_stats_count_fallback(failure);
	if (sort->sorted)
		gpusort_stats_count_error();
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 sort->returned ?
			 errmsg("could not read the remaining rows of a sort") :
			 errmsg("could not sort rows that cannot be read a second time"),
			 errdetail("The reason is \"%s\".", gpusort_fallback_text(failure)),
			 errhint("The query might succeed if retried.")));
}

/* ----------------------------------------------------------------
 *		progress
 * ----------------------------------------------------------------
 */

double
gpusort_sort_lap_ms(GsSort *sort)
{
	instr_time	now;
	instr_time	lap;

	INSTR_TIME_SET_CURRENT(now);
	lap = now;
	INSTR_TIME_SUBTRACT(lap, sort->lap_start);
	sort->lap_start = now;
	return INSTR_TIME_GET_MILLISEC(lap);
}

void
gpusort_sort_show_space(GsSort *sort)
{
	GsProgress *progress = sort->progress;
	GsGpuReport gpu = {0};
	uint32		devices = 0;

	if (gpusort_sort_is_on_gpu(sort))
	{
		gpusort_gpu_session_report(sort->gpu.session, &gpu);
		devices = gpusort_gpu_session_device(sort->gpu.session);
	}
	progress->memory_bytes = sort->cpu.rows == NULL ? 0 :
		gpusort_memory_sort_bytes(sort->cpu.rows);
	progress->devices = devices;
	progress->device_bytes = gpu.device_bytes;
	progress->file_bytes = sort->cpu.external == NULL ? 0 :
		gpusort_external_kb(sort->cpu.external) * 1024;
}

void
gpusort_sort_show_phase(GsSort *sort, GsProgressPhase phase)
{
	gpusort_sort_show_space(sort);
	sort->progress->phase = phase;
}
