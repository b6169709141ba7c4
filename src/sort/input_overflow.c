/*-------------------------------------------------------------------------
 *
 * input_overflow.c
 *		Writes the rows of an input sort to disk, when no more of them fit.
 *
 * All rows of the row sorter are written as runs (row_runs.h), and the row sorter ends.  Then
 * input_sort.c adds the rows that follow to a run builder.
 *
 * input_sort.c calls this when the row sorter has refused a row or cannot sort its rows in
 * memory, and input_top_n.c when there is not enough memory for dropping rows.  Where other
 * processes add rows to the GPU session as well, sort.c calls
 * gpusort_input_overflow_write_session() when this process finds that it is full.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/disk/shared_run.h"
#include "sort/gpu/gpu_producers.h"
#include "sort/input_overflow.h"
#include "sort/input_private.h"

bool
gpusort_input_overflow_may_write(const GsInputSort *sort)
{
	if (sort->location != GS_ROWS_ON_GPU || !sort->spec->input.repeatable)
		return true;
	/* If a memory sort can drop rows, better read the input again. */
	return !gpusort_input_top_n_fits_in_memory(sort->spec) &&
		gpusort_shared_runs_allowed(gpusort_gpu_session_rows_put(sort->sorter.gpu),
									sort->spec->expected_width);
}

bool
gpusort_input_overflow_write_sorter(GsInputSort *sort)
{
	if (sort->location != GS_ROWS_IN_MEMORY &&
		!gpusort_row_sorter_sort(&sort->sorter))
		return false;
	if (!gpusort_row_runs_write(&sort->runs, &sort->sorter))
		return false;
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_input_state_set_location(sort, GS_ROWS_IN_RUNS);
	gpusort_external_limit_runs(sort->runs.external);
	return true;
}

bool
gpusort_input_overflow_write_rows(GsInputSort *sort)
{
	gpusort_input_state_show_phase(sort, GS_PHASE_WRITING_RUN);

	/* Rows go to disk, so the processes cannot sort their rows together. */
	gpusort_row_sharing_refuse(&sort->sharing);
	gpusort_row_runs_begin_overflow(&sort->runs, gpusort_row_sorter_failure(&sort->sorter));
	if (!gpusort_input_overflow_write_sorter(sort))
		return false;
	gpusort_row_runs_begin_builder(&sort->runs);
	gpusort_input_state_show_phase(sort, GS_PHASE_READING);
	return true;
}

/*
 * The GPU session of all processes is full.  Write its rows, but keep the session, since
 * other processes may still have to find that out.  Returns false if the rows are lost.
 */
static bool
drain_session(GsInputSort *sort)
{
	gpusort_row_runs_begin_overflow(&sort->runs, GS_FALLBACK_DEVICE_MEMORY);
	if (!gpusort_row_sorter_sort(&sort->sorter) ||
		!gpusort_row_runs_write(&sort->runs, &sort->sorter) ||
		!gpusort_gpu_session_release(sort->sorter.gpu))
		return false;
	sort->drained = sort->sorter;
	gpusort_row_sorter_init(&sort->sorter, sort->spec, sort->drained.parent);
	gpusort_input_state_set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

bool
gpusort_input_overflow_write_session(GsInputSort *sort)
{
	Assert(sort->location == GS_ROWS_ON_GPU && sort->fed_by_others);
	gpusort_input_state_show_phase(sort, GS_PHASE_WRITING_RUN);
	if (!gpusort_input_state_lost_unless(sort, drain_session(sort)))
		return false;
	gpusort_row_runs_begin_builder(&sort->runs);
	gpusort_input_state_show_phase(sort, GS_PHASE_READING);
	return true;
}
