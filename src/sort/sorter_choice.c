/*-------------------------------------------------------------------------
 *
 * sorter_choice.c
 *		Chooses the row sorter of an input sort: on a GPU, or in memory.
 *
 * A sort begins with a GPU session, if a GPU should and can be used.  Otherwise it begins
 * with a memory sort, whose rows are sorted together with those of other processes if these
 * take part.  input_sort.c calls this once, and input_loss.c once more if the GPU is lost.
 *
 * Nothing here adds rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/base/sort_stats.h"
#include "sort/input_private.h"
#include "sort/sorter_choice.h"

/* Begin a row sorter on a GPU.  Returns false if no GPU should or can be used. */
static bool
begin_gpu_sorter(GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->gpu_reason != GS_FALLBACK_NONE || spec->nested)
		return false;
	if (gpusort_input_top_n_will_cut(spec))
	{
		sort->gpu_reason = gpusort_gpu_session_check(spec->expected_rows);
		if (sort->gpu_reason == GS_FALLBACK_NONE)
			sort->gpu_reason = GS_FALLBACK_LIMIT;
	}
	else if (gpusort_row_sorter_begin_gpu(&sort->sorter, &sort->gpu_reason))
		return true;
	if (gpusort_fallback_is_want_of_gpu(sort->gpu_reason))
		gpusort_stats_count_fallback(sort->gpu_reason);
	return false;
}

void
gpusort_sorter_choice_begin(GsInputSort *sort, bool again)
{
	if (begin_gpu_sorter(sort))
	{
		sort->location = GS_ROWS_ON_GPU;
		return;
	}

	/* With a bound, each process keeps few rows, and those are merged. */
	if (!again && sort->spec->bound == 0)
		gpusort_row_sharing_begin(&sort->sharing, sort->spec,
								  sort->sorter.parent);
	if (gpusort_row_sharing_is_on(&sort->sharing))
		gpusort_row_sorter_begin_shared(&sort->sorter, sort->sharing.member);
	else
		gpusort_row_sorter_begin_cpu(&sort->sorter);
	sort->location = GS_ROWS_IN_MEMORY;
}
