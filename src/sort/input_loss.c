/*-------------------------------------------------------------------------
 *
 * input_loss.c
 *		Recovers an input sort from the loss of a GPU with its rows.
 *
 * If the GPU had all rows, the sort starts over: gpusort_input_loss_restart() rewinds the
 * input, or turns to the copy of the rows that was kept, and begins a row sorter without a
 * GPU.  sort.c calls it after any function of the input sort has returned false, and then has
 * the rows read a second time.
 *
 * If the GPU had only a batch of the rows, those before it are in runs already.  Only the
 * rows of the batch are then taken from their copy, and the sort continues.  input_sort.c
 * and input_overflow.c call gpusort_input_loss_recover_batch() for that.  Without a copy,
 * such a sort starts over, too.
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

	if (sort->sorter.spread != NULL)
		reason = gpusort_gpu_spread_failure(sort->sorter.spread);

	/*
	 * A session that is full has not lost its rows: then those of others are
	 * lost.
	 */
	if (sort->input_failure != GS_FALLBACK_NONE &&
		(reason == GS_FALLBACK_NONE || reason == GS_FALLBACK_DEVICE_MEMORY))
		return sort->input_failure;
	return reason;
}

bool
gpusort_input_loss_recover_batch(GsInputSort *sort)
{
	TupleTableSlot *slot;

	if (sort->location != GS_ROWS_IN_BATCH || sort->copy.rows == NULL)
		return false;
	gpusort_gpu_spread_copy_rest(sort->sorter.spread);
	sort->gpu_reason = gpusort_input_loss_reason(sort);
	sort->no_batches = true;
	gpusort_stats_count_fallback(sort->gpu_reason);
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_input_state_set_location(sort, GS_ROWS_IN_RUNS);
	gpusort_row_runs_begin_builder(&sort->runs);
	gpusort_kept_copy_begin_taking(&sort->copy, &sort->sorter, false);
	while ((slot = gpusort_kept_copy_take(&sort->copy, &sort->sorter)) != NULL)
		(void) gpusort_run_builder_put(sort->runs.builder, slot->tts_values,
									   slot->tts_isnull);
	return true;
}

bool
gpusort_input_loss_can_restart(const GsInputSort *sort)
{
	return sort->copy.rows != NULL || sort->spec->input.repeat != GS_INPUT_ONCE;
}

void
gpusort_input_loss_restart(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;

	if (sort->copy.rows != NULL)
		gpusort_gpu_spread_copy_rest(sort->sorter.spread);
	else
	{
		/*
		 * This ends the processes that add rows to the GPU session: do it
		 * first.
		 */
		input->rewind(input->arg);
		sort->input_ended = false;
	}

	sort->gpu_reason = gpusort_input_loss_reason(sort);
	sort->no_batches = true;
	gpusort_stats_count_fallback(sort->gpu_reason);
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_row_sorter_end(&sort->drained);
	gpusort_row_runs_end(&sort->runs);
	gpusort_row_sharing_end(&sort->sharing);
	sort->nbatches = 0;
	sort->batch_rows = 0;
	sort->has_long_ties = false;
	sort->input_failure = GS_FALLBACK_NONE;
	sort->cutoff = NULL;
	sort->ndropped = 0;
	gpusort_input_state_enter(sort, GS_SORT_ADDING);
	gpusort_sorter_choice_begin(sort, true);
	if (sort->copy.rows != NULL)
		gpusort_kept_copy_begin_taking(&sort->copy, &sort->sorter,
									   sort->location == GS_ROWS_IN_MEMORY);
	gpusort_input_state_show_phase(sort, GS_PHASE_READING);
	sort->progress->rows_read = 0;
	sort->progress->rows_sorted = 0;
}
