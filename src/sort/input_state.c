/*-------------------------------------------------------------------------
 *
 * input_state.c
 *		The state of an input sort, and what it shows while it runs.
 *
 * The other files of an input sort call this when rows have moved, and when a phase begins.
 * It raises an error if a move is not among those drawn in input_state.h.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/input_state.h"

/* May a sort go from one state to another?  See input_state.h. */
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
gpusort_input_state_enter(GsInputSort *sort, GsSortState state)
{
	if (!is_next_state(sort->state, state))
		elog(ERROR, "a sort cannot go from state %d to %d", sort->state, state);
	sort->state = state;
}

bool
gpusort_input_state_lost_unless(GsInputSort *sort, bool kept)
{
	if (kept)
		return true;
	gpusort_input_state_enter(sort, GS_SORT_LOST);
	gpusort_row_sharing_give_up(&sort->sharing);
	return false;
}

/* Can rows move between these locations?  See input_state.h. */
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
gpusort_input_state_set_location(GsInputSort *sort, GsRowLocation location)
{
	if (!is_next_location(sort->location, location))
		elog(ERROR, "rows of a sort cannot move from location %d to %d",
			 sort->location, location);
	sort->location = location;
}

void
gpusort_input_state_show_space(GsInputSort *sort)
{
	GsProgress *progress = sort->progress;
	GsGpuReport gpu = {0};
	uint32		devices = 0;

	if (sort->sorter.gpu != NULL)
	{
		gpusort_gpu_session_report(sort->sorter.gpu, &gpu);
		devices = gpusort_gpu_session_device(sort->sorter.gpu);
	}
	progress->memory_bytes = sort->sorter.cpu == NULL ? 0 :
		gpusort_memory_sort_bytes(sort->sorter.cpu);
	progress->devices = devices;
	progress->device_bytes = gpu.device_bytes;
	progress->file_bytes = sort->runs.external == NULL ? 0 :
		gpusort_external_kb(sort->runs.external) * 1024;
}

void
gpusort_input_state_show_phase(GsInputSort *sort, GsProgressPhase phase)
{
	gpusort_input_state_show_space(sort);
	sort->progress->phase = phase;
}
