/*-------------------------------------------------------------------------
 *
 * input_sort.c
 *		Sorts the rows of an input, in memory or on disk.
 *
 * sort.c calls this file.  Rows come from the input, or one by one from a caller that adds
 * them.  gpusort_input_sort_put() gives each of them to the row sorter.  One that is refused
 * comes to gpusort_input_sort_put_elsewhere(), which drops rows beyond the bound
 * (input_top_n.c), has rows written to disk (input_overflow.c), or adds the row to a run
 * builder.
 *
 * After the last row, sort_own_rows() sorts the rows of this process wherever they
 * are, together with other processes if these share memory or merge runs.
 * gpusort_input_sort_finish() combines them with the rows or runs of other processes.  Then
 * the rows can be read by position.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"

#include "sort/gpu/gpu_producers.h"
#include "sort/gpu/gpu_refused_rows.h"
#include "sort/input_loss.h"
#include "sort/input_overflow.h"
#include "sort/input_private.h"
#include "sort/input_sort.h"
#include "sort/sorter_choice.h"
#include "work.h"

/* ----------------------------------------------------------------
 *		beginning and ending
 * ----------------------------------------------------------------
 */

void
gpusort_input_sort_begin(GsInputSort *sort, const GsSortSpec *spec,
						 GsProgress *progress, MemoryContext context)
{
	memset(sort, 0, sizeof(*sort));
	sort->spec = spec;
	sort->progress = progress;
	gpusort_row_sorter_init(&sort->sorter, spec, context);
	gpusort_row_sorter_init(&sort->drained, spec, context);
	gpusort_row_runs_init(&sort->runs, spec, context);
	gpusort_sorter_choice_begin(sort, false);
	gpusort_input_state_show_space(sort);
}

void
gpusort_input_sort_end(GsInputSort *sort)
{
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_row_sorter_end(&sort->drained);
	gpusort_row_runs_end(&sort->runs);
	gpusort_row_sharing_end(&sort->sharing);
}

/* ----------------------------------------------------------------
 *		other processes
 * ----------------------------------------------------------------
 */

bool
gpusort_input_sort_gpu_handle(GsInputSort *sort, GsClientHandle *handle)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->location != GS_ROWS_ON_GPU)
		return false;

	/* The plan was made for the CPU, and a GPU has become available since. */
	if (gpusort_key_plan_string_words(spec->key_plan) !=
		GPUSORT_GPU_STRING_WORDS)
		return false;

	/*
	 * A row that is too long for a chunk, or a bound, has the input read
	 * again once others have put rows into the session.
	 */
	if (!spec->input.repeatable)
		return false;
	sort->fed_by_others = true;
	*handle = gpusort_gpu_rows_handle(sort->sorter.gpu_rows);
	return true;
}

bool
gpusort_input_sort_allow_overflow(GsInputSort *sort, int nprocesses, bool ahead,
								  GsRunSetHandle *handle)
{
	const GsSortSpec *spec = sort->spec;

	if (!sort->fed_by_others || spec->bound > 0)
		return false;
	gpusort_row_sharing_begin(&sort->sharing, spec, sort->sorter.parent);
	if (!gpusort_row_runs_make_set(&sort->runs, &sort->sorter, nprocesses, true,
								   gpusort_row_sharing_is_on(&sort->sharing), handle))
		return false;
	if (gpusort_row_sharing_is_on(&sort->sharing))
	{
		gpusort_row_sharing_only_merge(&sort->sharing);
		if (ahead && !spec->random_access)
			gpusort_row_sharing_allow_merge(&sort->sharing, *handle);
	}
	return true;
}

void
gpusort_input_sort_leave(GsInputSort *sort)
{
	gpusort_row_sharing_leave(&sort->sharing);
}

/* Will the processes sort together, as far as the estimates tell? */
static bool
will_share_memory(const GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;

	return gpusort_row_sharing_is_on(&sort->sharing) &&
		gpusort_shared_sort_fits(gpusort_key_plan_words(spec->key_plan),
								 spec->expected_rows, spec->expected_width,
								 gpusort_sort_spec_memory(spec),
								 spec->processes);
}

bool
gpusort_input_sort_run_set(GsInputSort *sort, int nprocesses, bool ahead,
						   GsRunSetHandle *handle)
{
	bool		shared = gpusort_row_sharing_is_on(&sort->sharing);

	if (sort->location != GS_ROWS_IN_MEMORY)
		return false;
	if (!gpusort_row_runs_make_set(&sort->runs, &sort->sorter, nprocesses,
								   !will_share_memory(sort), shared, handle))
		return false;
	/* Rows that are merged together can be read only once, and forward. */
	if (shared && ahead && !sort->spec->random_access)
		gpusort_row_sharing_allow_merge(&sort->sharing, *handle);
	return true;
}

bool
gpusort_input_sort_attach(GsInputSort *sort)
{
	return gpusort_row_sharing_attach(&sort->sharing);
}

GsSharedSort *
gpusort_input_sort_shared(const GsInputSort *sort)
{
	return sort->sharing.sort;
}

void
gpusort_input_sort_stop(GsInputSort *sort)
{
	gpusort_row_sharing_stop(&sort->sharing);
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Are the rows still there after the row sorter has refused one? */
static bool
keeps_its_rows(const GsInputSort *sort)
{
	GsFallback	failure;

	if (sort->location == GS_ROWS_IN_MEMORY)
		return true;
	failure = gpusort_row_sorter_failure(&sort->sorter);
	/* We cannot read the rows while other processes may still be adding some. */
	return !(sort->fed_by_others && sort->location == GS_ROWS_ON_GPU) &&
		(failure == GS_FALLBACK_DEVICE_MEMORY ||
		 (failure == GS_FALLBACK_ROW_WIDTH && !sort->spec->input.repeatable));
}

bool
gpusort_input_sort_put_elsewhere(GsInputSort *sort, TupleTableSlot *slot)
{
	if (sort->location != GS_ROWS_IN_RUNS)
	{
		if (!keeps_its_rows(sort))
			return false;
		if (gpusort_input_top_n_may_cut(sort))
		{
			gpusort_input_top_n_cut(sort);
			return gpusort_input_sort_put(sort, slot);
		}
		if (!gpusort_input_overflow_may_write(sort) ||
			!gpusort_input_overflow_write_rows(sort))
			return false;
	}
	gpusort_run_builder_put(sort->runs.builder, slot->tts_values, slot->tts_isnull);
	return true;
}

/* Have other processes added all of their rows, or written them as runs? */
static bool
input_is_complete(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;

	if (input->failure != NULL &&
		(sort->location == GS_ROWS_ON_GPU || sort->runs.set != NULL || sort->spec->target != NULL))
		sort->input_failure = input->failure(input->arg);

	/* Each process has taken the rows that were refused. */
	if (sort->input_failure == GS_FALLBACK_NONE && sort->drained.gpu != NULL &&
		gpusort_gpu_session_has_rest(sort->drained.gpu))
		elog(ERROR, "rows of a sort are left in the pool");
	return sort->input_failure == GS_FALLBACK_NONE;
}

static bool
read_input(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;
	TupleTableSlot *slot;
	int64		nrows = 0;

	while (slot = input->next(input->arg), !TupIsNull(slot))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_input_sort_show_rows(sort, ++nrows);
		if (!gpusort_input_sort_put(sort, slot))
			return false;
	}
	return input_is_complete(sort);
}

bool
gpusort_input_sort_add(GsInputSort *sort, TupleTableSlot *slot)
{
	return gpusort_input_state_lost_unless(sort, gpusort_input_sort_put(sort, slot));
}

void
gpusort_input_sort_give_up(GsInputSort *sort)
{
	(void) gpusort_input_state_lost_unless(sort, false);
}

bool
gpusort_input_sort_read(GsInputSort *sort)
{
	return gpusort_input_state_lost_unless(sort, read_input(sort));
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/*
 * A GPU session is sorted, but the device refused the last rows.  Add these.  Returns
 * false if rows are lost.
 */
static bool
sort_with_rest(GsInputSort *sort)
{
	if (!gpusort_input_overflow_may_write(sort))
	{
		sort->input_failure = GS_FALLBACK_DEVICE_MEMORY;
		return false;
	}
	gpusort_row_runs_begin_overflow(&sort->runs, GS_FALLBACK_DEVICE_MEMORY);
	if (!gpusort_row_runs_write(&sort->runs, &sort->sorter))
		return false;
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_input_state_set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

/* Have other processes written runs, since the GPU session is full? */
static bool
has_overflowed(const GsInputSort *sort)
{
	return sort->runs.set != NULL && gpusort_gpu_session_is_full(sort->sorter.gpu);
}

/* Sort the rows of a GPU session.  Returns false if they are lost. */
static bool
sort_gpu(GsInputSort *sort)
{
	if (!gpusort_row_sorter_sort(&sort->sorter))
		return false;
	if (gpusort_gpu_session_has_rest(sort->sorter.gpu) || has_overflowed(sort))
		return sort_with_rest(sort);
	return true;
}

/* Sort the rows of a memory sort, on disk if there is not enough memory. */
static void
sort_memory(GsInputSort *sort)
{
	if (gpusort_row_sorter_sort(&sort->sorter))
		return;
	gpusort_row_runs_begin_overflow(&sort->runs, GS_FALLBACK_OUT_OF_MEMORY);
	(void) gpusort_input_overflow_write_sorter(sort);
}

/*
 * Merge the runs together with those of other processes, if they all do that.  Otherwise,
 * the rows remain in runs.
 */
static void
merge_together(GsInputSort *sort)
{
	gpusort_input_state_show_phase(sort, GS_PHASE_MERGING);
	if (gpusort_row_sharing_merge(&sort->sharing, sort->runs.external,
								  sort->runs.overflow))
		gpusort_input_state_set_location(sort, GS_ROWS_SHARED);
}

/*
 * Sort rows that are in memory together with those of other processes, if they all do that.
 * If those of others do not fit, all of them are merged together on disk.
 */
static void
sort_together(GsInputSort *sort)
{
	if (gpusort_row_sharing_sort(&sort->sharing, sort->sorter.cpu))
		gpusort_input_state_set_location(sort, GS_ROWS_SHARED);
	else if (gpusort_row_sharing_wants_runs(&sort->sharing))
	{
		gpusort_row_runs_begin(&sort->runs);
		(void) gpusort_input_overflow_write_sorter(sort);
		merge_together(sort);
	}
	else
		sort_memory(sort);
}

/* Sort the rows of this process.  Returns false if they are lost. */
static bool
sort_rows(GsInputSort *sort)
{
	switch (sort->location)
	{
		case GS_ROWS_ON_GPU:
			return sort_gpu(sort);
		case GS_ROWS_IN_MEMORY:
			sort_together(sort);
			return true;
		case GS_ROWS_IN_RUNS:
			if (sort->runs.builder != NULL)
				gpusort_row_runs_end_builder(&sort->runs);
			(void) gpusort_row_sharing_sort(&sort->sharing, NULL);
			merge_together(sort);
			return true;
		case GS_ROWS_SHARED:
			break;
	}
	return false;
}

/* Sort the rows of this process.  Returns false if they are lost. */
static bool
sort_own_rows(GsInputSort *sort)
{
	gpusort_input_state_show_phase(sort, GS_PHASE_SORTING);
	if (!gpusort_input_state_lost_unless(sort, sort_rows(sort)))
		return false;
	gpusort_input_state_enter(sort, GS_SORT_SORTED);
	return true;
}

bool
gpusort_input_sort_rows_ahead(GsInputSort *sort, bool *ahead)
{
	if (!sort_own_rows(sort))
		return false;
	*ahead = sort->location == GS_ROWS_SHARED;
	return true;
}

/* The processes have sorted their rows together.  The leader will return them. */
static void
read_shared_rows(GsInputSort *sort)
{
	if (sort->spec->target != NULL)
		return;
	gpusort_row_sharing_read(&sort->sharing);
	sort->nrows = sort->sharing.ranges->nrows;
	if (sort->sharing.merged)
		gpusort_row_runs_note_overflow(&sort->runs,
									   gpusort_shared_merge_overflow(sort->sharing.merge));
}

/* Have other processes written runs? */
static bool
spec_has_runs(const GsSortSpec *spec)
{
	return spec->input.run(spec->input.arg, 0) != NULL;
}

/* Combine the rows of all processes, or write those of this one to the target. */
static void
combine_rows(GsInputSort *sort)
{
	GsRowRuns  *runs = &sort->runs;

	if (sort->location == GS_ROWS_IN_RUNS ||
		(runs->set != NULL && sort->location == GS_ROWS_IN_MEMORY))
		gpusort_input_state_show_phase(sort, GS_PHASE_MERGING);
	if (sort->spec->target != NULL)
	{
		gpusort_row_runs_share(runs, &sort->sorter);
		runs->shared.ndropped += sort->ndropped;
		sort->nrows = runs->shared.nrows;
		return;
	}
	if (runs->set != NULL && sort->location == GS_ROWS_ON_GPU)
	{
		if (spec_has_runs(sort->spec))
			elog(ERROR, "workers have written runs while rows stay on a GPU");
	}
	else if (runs->set != NULL)
	{
		sort->ndropped += gpusort_row_runs_import(runs, &sort->sorter);
		if (runs->nimported > 0)
			gpusort_input_state_set_location(sort, GS_ROWS_IN_RUNS);
	}
	if (sort->location == GS_ROWS_IN_RUNS)
	{
		gpusort_external_perform(runs->external);
		sort->nrows = gpusort_external_count(runs->external);
	}
	else
		sort->nrows = gpusort_row_sorter_count(&sort->sorter);
	gpusort_input_top_n_drop_last_rows(sort);
}

bool
gpusort_input_sort_finish(GsInputSort *sort)
{
	if (sort->state == GS_SORT_ADDING && !sort_own_rows(sort))
		return false;
	if (sort->location == GS_ROWS_SHARED)
		read_shared_rows(sort);
	else
		combine_rows(sort);
	/* Nobody has written runs, so the memory for merging them is not needed. */
	if (sort->location == GS_ROWS_ON_GPU)
		gpusort_row_sharing_end(&sort->sharing);
	gpusort_input_state_enter(sort, GS_SORT_READY);
	gpusort_input_state_show_phase(sort, GS_PHASE_RETURNING);
	sort->progress->rows_sorted = sort->nrows + sort->ndropped;
	return true;
}

/* ----------------------------------------------------------------
 *		after finishing
 * ----------------------------------------------------------------
 */

void
gpusort_input_sort_mark(GsInputSort *sort)
{
	if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_external_mark(sort->runs.external);
	if (sort->marked != NULL)
		gpusort_marked_rows_stop(sort->marked);
}

void
gpusort_input_sort_restore(GsInputSort *sort, int64 position)
{
	MemoryContext caller;

	if (!gpusort_input_sort_is_on_gpu(sort) ||
		gpusort_gpu_rows_is_near(sort->sorter.gpu_rows, position))
		return;
	if (sort->marked == NULL)
	{
		caller = MemoryContextSwitchTo(sort->sorter.parent);
		sort->marked = gpusort_marked_rows_create(sort->spec);
		MemoryContextSwitchTo(caller);
	}
	gpusort_marked_rows_restore(sort->marked, position);
}

bool
gpusort_input_sort_get_marked(GsInputSort *sort, int64 position, TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;

	if (gpusort_marked_rows_get(sort->marked, position, values, isnull))
		return true;
	if (!gpusort_row_sorter_get_gpu(&sort->sorter, position, values, isnull))
	{
		sort->state = GS_SORT_LOST;
		return false;
	}
	gpusort_marked_rows_add(sort->marked, position, values, isnull);
	return true;
}

bool
gpusort_input_sort_in_place(GsInputSort *sort, int64 position, GsRowsInPlace *rows)
{
	if (sort->location == GS_ROWS_SHARED)
	{
		if (!gpusort_range_reader_in_place(sort->sharing.ranges, position, rows))
			return false;
		/* Merged rows are in memory that is used again. */
		rows->lasting = !sort->sharing.merged;
		return true;
	}
	if (!gpusort_input_sort_is_on_gpu(sort))
		return false;
	return gpusort_gpu_rows_in_place(sort->sorter.gpu_rows, position, rows);
}

void
gpusort_input_sort_lend(GsInputSort *sort, GsRecallRows recall, void *arg)
{
	if (gpusort_input_sort_is_on_gpu(sort))
		gpusort_gpu_session_lend(sort->sorter.gpu, recall, arg);
}
