/*-------------------------------------------------------------------------
 *
 * input_sort.c
 *		Reads an input, and has its rows in order, in memory or on disk.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "sort/input_sort.h"
#include "sort/sort_stats.h"

/* Was a GPU wanted, but not to be had? */
static bool
is_want_of_gpu(GsFallback reason)
{
	return reason == GS_FALLBACK_SERVICE_STARTING ||
		reason == GS_FALLBACK_SERVICE_FAILED ||
		reason == GS_FALLBACK_NO_SESSION ||
		reason == GS_FALLBACK_ROW_WIDTH ||
		reason == GS_FALLBACK_DEVICE_MEMORY ||
		reason == GS_FALLBACK_DEVICE_ERROR ||
		reason == GS_FALLBACK_SERVICE_LOST;
}

/* Begin a holder with a GPU session, if there is one to be had. */
static bool
begin_gpu_holder(GsInputSort *sort)
{
	if (sort->gpu_reason != GS_FALLBACK_NONE || sort->spec->nested)
		return false;
	if (gpusort_row_holder_begin_gpu(&sort->holder, &sort->gpu_reason))
		return true;
	if (is_want_of_gpu(sort->gpu_reason))
		gpusort_stats_count_fallback(sort->gpu_reason);
	return false;
}

/* Begin a holder, or after an overflow, if there is no GPU, a builder. */
static void
begin_holder(GsInputSort *sort)
{
	if (begin_gpu_holder(sort))
		return;
	if (sort->runs.external != NULL)
		gpusort_row_runs_begin_builder(&sort->runs);
	else
		gpusort_row_holder_begin_cpu(&sort->holder);
}

void
gpusort_input_sort_begin(GsInputSort *sort, const GsSessionSpec *spec,
						 MemoryContext context)
{
	memset(sort, 0, sizeof(*sort));
	sort->spec = spec;
	gpusort_row_holder_init(&sort->holder, spec, context);
	gpusort_row_runs_init(&sort->runs, spec, context);
	begin_holder(sort);
}

void
gpusort_input_sort_end(GsInputSort *sort)
{
	gpusort_row_holder_end(&sort->holder);
	gpusort_row_runs_end(&sort->runs);
}

/* ----------------------------------------------------------------
 *		other processes
 * ----------------------------------------------------------------
 */

bool
gpusort_input_sort_gpu_handle(GsInputSort *sort, bool in_order,
							  GsClientHandle *handle)
{
	if (sort->holder.gpu == NULL || (sort->holder.stock_ties && !in_order))
		return false;

	/* The plan was made for the CPU, and a GPU has become available since. */
	if (gpusort_key_plan_string_words(sort->spec->key_plan) !=
		GPUSORT_GPU_STRING_WORDS)
		return false;
	sort->fed_by_others = true;
	*handle = gpusort_gpu_session_handle(sort->holder.gpu);
	return true;
}

bool
gpusort_input_sort_run_set(GsInputSort *sort, int nprocesses, bool in_order,
						   GsRunSetHandle *handle)
{
	if (sort->holder.gpu != NULL || (sort->holder.stock_ties && !in_order))
		return false;
	return gpusort_row_runs_make_set(&sort->runs, &sort->holder, nprocesses,
									 handle);
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Write the holder's rows and end it; false if they are lost. */
static bool
write_holder(GsInputSort *sort)
{
	if (sort->holder.gpu != NULL && !gpusort_row_holder_sort(&sort->holder))
		return false;
	if (!gpusort_row_runs_write(&sort->runs, &sort->holder))
		return false;
	gpusort_row_holder_end(&sort->holder);
	gpusort_external_limit_runs(sort->runs.external);
	return true;
}

/*
 * The holder takes no more rows: write them, and begin another one, or a
 * builder.  Returns false if they are lost.
 */
static bool
overflow(GsInputSort *sort)
{
	if (sort->runs.external == NULL)
		gpusort_row_runs_begin_overflow(&sort->runs,
										gpusort_row_holder_failure(&sort->holder));
	if (!write_holder(sort))
		return false;
	begin_holder(sort);
	return true;
}

/* Does the holder's refusal leave its rows where they are? */
static bool
keeps_its_rows(const GsInputSort *sort)
{
	if (sort->holder.gpu == NULL)
		return true;
	/* Others might still be adding rows. */
	return !sort->holder.stock_ties && !sort->fed_by_others &&
		gpusort_row_holder_failure(&sort->holder) == GS_FALLBACK_DEVICE_MEMORY;
}

bool
gpusort_input_sort_put_elsewhere(GsInputSort *sort, TupleTableSlot *slot)
{
	if (sort->runs.builder == NULL)
	{
		if (!keeps_its_rows(sort) || !overflow(sort))
			return false;
		if (sort->runs.builder == NULL)
			return gpusort_row_holder_put(&sort->holder, slot);
	}
	gpusort_run_builder_put(sort->runs.builder, slot->tts_values,
							slot->tts_isnull);
	return true;
}

/* Have other processes added what they were to add? */
static bool
input_is_complete(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;

	if (sort->holder.gpu != NULL && input->failure != NULL)
		sort->input_failure = input->failure(input->arg);
	return sort->input_failure == GS_FALLBACK_NONE;
}

/*
 * For stock_ties: other processes have put all rows into the GPU session, which
 * the CPU session has to have, too.  Read them again; false if that is not
 * possible.
 */
static bool
read_for_ties(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;
	TupleTableSlot *slot;

	input->rewind(input->arg);
	while (slot = input->next(input->arg), !TupIsNull(slot))
	{
		slot_getallattrs(slot);
		if (!gpusort_cpu_session_put(sort->holder.cpu, slot->tts_values,
									 slot->tts_isnull))
			return false;
	}
	return true;
}

bool
gpusort_input_sort_read(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;
	TupleTableSlot *slot;

	while (slot = input->next(input->arg), !TupIsNull(slot))
	{
		if (!gpusort_input_sort_put(sort, slot))
			return false;
	}
	if (!input_is_complete(sort))
		return false;
	if (sort->holder.stock_ties && sort->fed_by_others &&
		sort->holder.gpu != NULL)
		return read_for_ties(sort);
	return true;
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/* Sort the holder's rows where they are; false if that is not possible. */
static bool
sort_holder(GsInputSort *sort)
{
	return gpusort_row_holder_sort(&sort->holder) &&
		(!sort->holder.stock_ties ||
		 gpusort_row_holder_apply_stock_ties(&sort->holder));
}

bool
gpusort_input_sort_rows(GsInputSort *sort)
{
	GsRowHolder *holder = &sort->holder;
	GsRowRuns  *runs = &sort->runs;

	if (runs->builder != NULL)
		gpusort_row_runs_end_builder(runs);
	else if (runs->external != NULL)
	{
		if (!write_holder(sort))
			return false;
	}
	else if (!sort_holder(sort))
	{
		if (holder->gpu != NULL)
			return false;
		gpusort_row_runs_begin_overflow(runs, GS_FALLBACK_OUT_OF_MEMORY);
		(void) write_holder(sort);
	}
	else if (holder->gpu != NULL && gpusort_gpu_session_has_rest(holder->gpu))
	{
		if (holder->stock_ties)
			return false;
		gpusort_row_runs_begin_overflow(runs, GS_FALLBACK_DEVICE_MEMORY);
		if (!gpusort_row_runs_write(runs, holder))
			return false;
		gpusort_row_holder_end(holder);
	}
	sort->rows_sorted = true;
	return true;
}

bool
gpusort_input_sort_finish(GsInputSort *sort)
{
	GsRowRuns  *runs = &sort->runs;

	if (!sort->rows_sorted && !gpusort_input_sort_rows(sort))
		return false;
	if (sort->spec->target != NULL)
	{
		gpusort_row_runs_share(runs, &sort->holder);
		sort->nrows = runs->shared.nrows;
		return true;
	}
	if (runs->set != NULL)
		gpusort_row_runs_import(runs, &sort->holder);
	if (runs->external != NULL)
	{
		gpusort_external_perform(runs->external);
		sort->nrows = gpusort_external_count(runs->external);
	}
	else
		sort->nrows = gpusort_row_holder_count(&sort->holder);
	return true;
}

/* ----------------------------------------------------------------
 *		a second time, after the loss of a GPU
 * ----------------------------------------------------------------
 */

/* Why rows are lost. */
static GsFallback
reason_of_loss(const GsInputSort *sort)
{
	GsFallback	reason = gpusort_row_holder_failure(&sort->holder);

	if (reason != GS_FALLBACK_NONE)
		return reason;
	if (sort->input_failure != GS_FALLBACK_NONE)
		return sort->input_failure;
	return GS_FALLBACK_STOCK_TIES;
}

void
gpusort_input_sort_restart(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;

	/* This ends those who add rows to the GPU session, and need it for that. */
	input->rewind(input->arg);

	sort->gpu_reason = reason_of_loss(sort);
	gpusort_stats_count_fallback(sort->gpu_reason);
	gpusort_row_holder_end(&sort->holder);
	gpusort_row_runs_end(&sort->runs);
	sort->input_failure = GS_FALLBACK_NONE;
	sort->rows_sorted = false;
	begin_holder(sort);
}
