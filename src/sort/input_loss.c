/*-------------------------------------------------------------------------
 *
 * input_loss.c
 *		Recovers an input sort from the loss of a GPU with its rows.
 *
 * The sort starts over: gpusort_input_loss_restart() rewinds the input, and begins a row sorter
 * without a GPU.  sort.c calls it after any function of the input sort has returned false, and
 * then has the rows read a second time.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/base/sort_stats.h"
#include "sort/input_loss.h"
#include "sort/sorter_choice.h"

GsFallback
gpusort_input_loss_reason(const GsInputSort *sort)
{
	GsFallback	reason = GS_FALLBACK_NONE;

	if (sort->sorter.gpu_rows != NULL)
		reason = gpusort_gpu_rows_failure(sort->sorter.gpu_rows);

	/*
	 * A session that is full has not lost its rows: then those of others are
	 * lost.
	 */
	if (sort->input_failure != GS_FALLBACK_NONE &&
		(reason == GS_FALLBACK_NONE || reason == GS_FALLBACK_DEVICE_MEMORY))
		return sort->input_failure;
	return reason;
}

void
gpusort_input_loss_restart(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;

	/* This ends the processes that add rows to the GPU session: do it first. */
	input->rewind(input->arg);
	sort->gpu_reason = gpusort_input_loss_reason(sort);
	gpusort_stats_count_fallback(sort->gpu_reason);
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_row_sorter_end(&sort->drained);
	gpusort_row_runs_end(&sort->runs);
	gpusort_row_sharing_end(&sort->sharing);
	sort->input_failure = GS_FALLBACK_NONE;
	sort->cutoff = NULL;
	sort->ndropped = 0;
	gpusort_input_state_enter(sort, GS_SORT_ADDING);
	gpusort_sorter_choice_begin(sort, true);
	gpusort_input_state_show_phase(sort, GS_PHASE_READING);
	sort->progress->rows_read = 0;
	sort->progress->rows_sorted = 0;
}
