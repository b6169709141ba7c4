/*-------------------------------------------------------------------------
 *
 * input_sort.c
 *		Sorts the rows of an input, in memory or on disk.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "sort/base/sort_stats.h"
#include "sort/base/tuple_rows.h"
#include "sort/input_sort.h"
#include "work.h"

/*
 * A row sorter is cut when it has this many times the rows that are wanted, and at
 * least MIN_CUT_ROWS.  With a larger multiple, fewer rows are sorted twice if the
 * input comes in descending order; with a smaller one, the cutoff is known earlier.
 * If N of M rows in random order are wanted, about N * (4 + ln(M / 4N)) are kept
 * at some time.
 */
#define CUT_MULTIPLE		4
#define MIN_CUT_ROWS		4096

/* Rows leave a GPU only if there are this many times the rows expected. */
#define GPU_CUT_MULTIPLE	2

/*
 * Rows that a full GPU has refused are sorted in this fraction of the memory.  The
 * rows wanted take up to half of the memory at the same time: see
 * bound_fits_in_memory().
 */
#define REST_PART			4

/* May a sort go from one state to another?  See input_sort.h. */
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

static void
enter_state(GsInputSort *sort, GsSortState state)
{
	if (!is_next_state(sort->state, state))
		elog(ERROR, "a sort cannot go from state %d to %d", sort->state, state);
	sort->state = state;
}

/* Returns 'kept', which says whether the rows are still there. */
static bool
lost_unless(GsInputSort *sort, bool kept)
{
	if (kept)
		return true;
	enter_state(sort, GS_SORT_LOST);
	gpusort_row_sharing_give_up(&sort->sharing);
	return false;
}

/* Can rows move between these locations?  See input_sort.h. */
static bool
is_next_location(GsRowLocation from, GsRowLocation to)
{
	switch (to)
	{
		case GS_ROWS_ON_GPU:
			return false;
		case GS_ROWS_IN_MEMORY:
			return from == GS_ROWS_ON_GPU || from == GS_ROWS_IN_MEMORY;
		case GS_ROWS_IN_RUNS:
			return true;
		case GS_ROWS_IN_BATCH:
			return from == GS_ROWS_IN_RUNS;
		case GS_ROWS_SHARED:
			return from == GS_ROWS_IN_MEMORY || from == GS_ROWS_IN_RUNS;
	}
	return false;
}

static void
set_location(GsInputSort *sort, GsRowLocation location)
{
	if (!is_next_location(sort->location, location))
		elog(ERROR, "rows of a sort cannot move from location %d to %d",
			 sort->location, location);
	sort->location = location;
}

void
gpusort_input_sort_show_space(GsInputSort *sort)
{
	GsProgress *progress = sort->progress;
	GsGpuReport gpu = {0};
	uint32		devices = 0;

	if (sort->sorter.spread != NULL)
	{
		(void) gpusort_gpu_spread_report(sort->sorter.spread, &gpu);
		devices = gpusort_gpu_spread_devices(sort->sorter.spread);
	}
	progress->memory_bytes = sort->sorter.cpu == NULL ? 0 :
		gpusort_memory_sort_bytes(sort->sorter.cpu);
	progress->devices = devices;
	progress->device_bytes = gpu.device_bytes;
	progress->file_bytes = sort->runs.external == NULL ? 0 :
		gpusort_external_kb(sort->runs.external) * 1024;
	if (sort->copy.rows == NULL)
		return;
	progress->memory_bytes += gpusort_row_copy_memory(sort->copy.rows) -
		sort->copy.reserved;
	progress->file_bytes += gpusort_row_copy_file_kb(sort->copy.rows) * 1024;
}

static void
show_phase(GsInputSort *sort, GsProgressPhase phase)
{
	gpusort_input_sort_show_space(sort);
	sort->progress->phase = phase;
}

/* ----------------------------------------------------------------
 *		beginning and ending
 * ----------------------------------------------------------------
 */

/* Should the rows on a GPU be copied, and may they be? */
static bool
copies_rows(const GsSortSpec *spec)
{
	return gpusort_kept_copy_is_wanted(spec) && gpusort_row_copy_allowed(spec, false);
}

/* May rows not go to a GPU, because they could be lost without a copy? */
static bool
must_not_be_lost(const GsSortSpec *spec)
{
	return gpusort_kept_copy_is_wanted(spec) && !copies_rows(spec) &&
		spec->input.repeat == GS_INPUT_ONCE;
}

/*
 * Begin a row sorter on a GPU, with a copy of its rows if that is wanted.  Returns false
 * if no GPU should or can be used.
 */
static bool
begin_gpu_sorter(GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->gpu_reason != GS_FALLBACK_NONE || spec->nested)
		return false;
	if (must_not_be_lost(spec))
	{
		sort->gpu_reason = gpusort_gpu_session_check(spec->expected_rows);
		if (sort->gpu_reason == GS_FALLBACK_NONE)
			sort->gpu_reason = GS_FALLBACK_INPUT_ONCE;
	}
	else if (gpusort_row_sorter_begin_gpu(&sort->sorter, &sort->gpu_reason))
	{
		if (copies_rows(spec))
			gpusort_kept_copy_begin(&sort->copy, &sort->sorter);
		return true;
	}
	if (gpusort_fallback_is_want_of_gpu(sort->gpu_reason))
		gpusort_stats_count_fallback(sort->gpu_reason);
	return false;
}

/*
 * Can batches of rows that do not fit in memory be sorted on a GPU?  They can if a GPU has
 * too little memory for all rows, too.
 */
static bool
may_use_batches(const GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->no_batches || sort->sorter.stock_ties)
		return false;
	/* An index build would have to end its workers, if a GPU is lost. */
	if (spec->index_build && spec->processes > 1)
		return false;
	if (spec->input.has_devices != NULL && !spec->input.has_devices(spec->input.arg))
		return false;
	if (spec->nested)
		return spec->batch_processes > 0;
	return (sort->gpu_reason == GS_FALLBACK_NONE ||
			sort->gpu_reason == GS_FALLBACK_DEVICE_MEMORY) &&
		!must_not_be_lost(spec);
}

/* Begin a row sorter on a GPU for a batch of rows.  Returns false if there is none. */
static bool
begin_batch_sorter(GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;
	int			processes = spec->nested ? spec->batch_processes : Max(spec->processes, 1);
	GsFallback	reason;

	if (!may_use_batches(sort))
		return false;
	if (!gpusort_row_sorter_begin_batch(&sort->sorter, processes, &reason))
	{
		/* A worker does not count this, and the leader only once. */
		if (!spec->nested && sort->gpu_reason == GS_FALLBACK_NONE &&
			gpusort_fallback_is_want_of_gpu(reason))
			gpusort_stats_count_fallback(reason);
		sort->gpu_reason = reason;
		return false;
	}
	sort->gpu_reason = GS_FALLBACK_NONE;
	if (!spec->nested && copies_rows(spec))
		gpusort_kept_copy_begin(&sort->copy, &sort->sorter);
	return true;
}

/* Do twice the rows that are wanted fit into the memory allowed? */
static bool
bound_fits_in_memory(const GsSortSpec *spec)
{
	return gpusort_memory_sort_estimate(gpusort_key_plan_words(spec->key_plan),
										2.0 * spec->bound,
										spec->expected_width) <=
		gpusort_sort_spec_memory(spec);
}

/* Make a new row sorter refuse rows once it should be cut. */
static void
limit_sorter(GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;
	double		capacity = Max((double) spec->bound * CUT_MULTIPLE,
							   MIN_CUT_ROWS);

	if (spec->bound == 0)
		return;
	if (sort->location == GS_ROWS_ON_GPU)
	{
		if (!bound_fits_in_memory(spec))
			return;
		capacity = Max(capacity, spec->expected_rows * GPU_CUT_MULTIPLE);
	}
	gpusort_row_sorter_set_capacity(&sort->sorter, capacity);
}

/* Begin the first row sorter.  'again' if rows have been lost. */
static void
begin_sorter(GsInputSort *sort, bool again)
{
	if (begin_gpu_sorter(sort))
	{
		sort->location = GS_ROWS_ON_GPU;
		limit_sorter(sort);
		return;
	}

	/* With a bound, each process keeps few rows, and those are merged. */
	if (!again && sort->spec->bound == 0)
		gpusort_row_sharing_begin(&sort->sharing, sort->spec,
								  sort->sorter.parent);
	if (gpusort_row_sharing_is_on(&sort->sharing) && !sort->sorter.stock_ties)
		gpusort_row_sorter_begin_shared(&sort->sorter, sort->sharing.member);
	else
		gpusort_row_sorter_begin_cpu(&sort->sorter);
	sort->location = GS_ROWS_IN_MEMORY;
	limit_sorter(sort);
}

/* After an overflow: begin a row sorter on a GPU, or else a run builder. */
static void
begin_batch(GsInputSort *sort)
{
	if (begin_batch_sorter(sort))
		set_location(sort, GS_ROWS_IN_BATCH);
	else
		gpusort_row_runs_begin_builder(&sort->runs);
}

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
	Assert(spec->bound == 0 || !sort->sorter.stock_ties);
	begin_sorter(sort, false);
	gpusort_input_sort_show_space(sort);
}

void
gpusort_input_sort_end(GsInputSort *sort)
{
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_row_sorter_end(&sort->drained);
	gpusort_row_runs_end(&sort->runs);
	gpusort_row_sharing_end(&sort->sharing);
	gpusort_kept_copy_end(&sort->copy);
}

/* ----------------------------------------------------------------
 *		other processes
 * ----------------------------------------------------------------
 */

bool
gpusort_input_sort_gpu_handle(GsInputSort *sort, bool in_order,
							  GsClientHandle *handle)
{
	if (sort->location != GS_ROWS_ON_GPU || (sort->sorter.stock_ties && !in_order))
		return false;

	/* The plan was made for the CPU, and a GPU has become available since. */
	if (gpusort_key_plan_string_words(sort->spec->key_plan) !=
		GPUSORT_GPU_STRING_WORDS)
		return false;

	/* The input must be read again for stock_ties, or if there are no copies. */
	if (sort->spec->input.repeat == GS_INPUT_ONCE &&
		(sort->sorter.stock_ties ||
		 (gpusort_kept_copy_is_wanted(sort->spec) && !gpusort_row_copy_allowed(sort->spec, true))))
		return false;
	gpusort_kept_copy_end(&sort->copy);
	gpusort_gpu_session_keep_copy(sort->sorter.gpu, NULL);
	sort->fed_by_others = true;
	*handle = gpusort_gpu_spread_handle(sort->sorter.spread);
	return true;
}

bool
gpusort_input_sort_copy_set(GsInputSort *sort, GsRunSetHandle *handle)
{
	return gpusort_kept_copy_share(&sort->copy, &sort->sorter, handle);
}

bool
gpusort_input_sort_allow_overflow(GsInputSort *sort, int nprocesses, bool ahead,
								  GsRunSetHandle *handle)
{
	const GsSortSpec *spec = sort->spec;

	if (!sort->fed_by_others || sort->sorter.stock_ties || spec->bound > 0 ||
		gpusort_kept_copy_is_wanted(spec))
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
gpusort_input_sort_run_set(GsInputSort *sort, int nprocesses, bool in_order,
						   bool ahead, GsRunSetHandle *handle)
{
	bool		shared = gpusort_row_sharing_is_on(&sort->sharing);

	if (sort->location != GS_ROWS_IN_MEMORY ||
		(sort->sorter.stock_ties && !in_order))
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

int
gpusort_input_sort_batch_processes(const GsInputSort *sort)
{
	/* Workers do not copy the rows of a batch. */
	if (gpusort_kept_copy_is_wanted(sort->spec) || sort->spec->bound > 0)
		return 0;
	return may_use_batches(sort) ? sort->spec->processes : 0;
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

/* Write the rows of the row sorter and end it.  Returns false if they are lost. */
static bool
write_sorter(GsInputSort *sort)
{
	gpusort_kept_copy_leave_memory(&sort->copy, &sort->sorter);
	if (sort->location != GS_ROWS_IN_MEMORY &&
		!gpusort_row_sorter_sort(&sort->sorter))
		return false;
	if (!gpusort_row_runs_write(&sort->runs, &sort->sorter))
		return false;
	gpusort_row_sorter_end(&sort->sorter);
	if (sort->location != GS_ROWS_IN_MEMORY)
		sort->nbatches++;
	/* The rows cannot be lost any more. */
	if (sort->location != GS_ROWS_IN_MEMORY && sort->copy.rows != NULL)
		gpusort_row_copy_clear(sort->copy.rows);
	set_location(sort, GS_ROWS_IN_RUNS);
	gpusort_external_limit_runs(sort->runs.external);
	return true;
}

/*
 * A batch is lost with the GPU, but the rows before it are in runs.  Take the rows of the
 * batch from their copy, and make runs of them and of those that follow.  Returns false if
 * there is no copy.
 */
static bool
recover_batch(GsInputSort *sort)
{
	TupleTableSlot *slot;

	if (sort->location != GS_ROWS_IN_BATCH || sort->copy.rows == NULL)
		return false;
	gpusort_gpu_spread_copy_rest(sort->sorter.spread);
	sort->gpu_reason = gpusort_input_sort_loss(sort);
	sort->no_batches = true;
	gpusort_stats_count_fallback(sort->gpu_reason);
	gpusort_row_sorter_end(&sort->sorter);
	set_location(sort, GS_ROWS_IN_RUNS);
	gpusort_row_runs_begin_builder(&sort->runs);
	gpusort_kept_copy_begin_taking(&sort->copy, &sort->sorter, false);
	while ((slot = gpusort_kept_copy_take(&sort->copy, &sort->sorter)) != NULL)
		(void) gpusort_run_builder_put(sort->runs.builder, slot->tts_values,
									   slot->tts_isnull);
	return true;
}

/*
 * The row sorter takes no more rows.  Write its rows to disk, and begin another row
 * sorter, or a run builder.  Returns false if rows are lost.
 */
static bool
overflow(GsInputSort *sort)
{
	show_phase(sort, GS_PHASE_WRITING_RUN);

	/* Rows go to disk, so the processes cannot sort their rows together. */
	gpusort_row_sharing_refuse(&sort->sharing);
	if (sort->location != GS_ROWS_IN_BATCH)
		gpusort_row_runs_begin_overflow(&sort->runs,
										gpusort_row_sorter_failure(&sort->sorter));
	if (write_sorter(sort))
		begin_batch(sort);
	else if (!recover_batch(sort))
		return false;
	show_phase(sort, GS_PHASE_READING);
	return true;
}

/*
 * The GPU sessions of all processes are full.  Write their rows, but keep the sessions, since
 * other processes may still have to find that out.  Returns false if the rows are lost.
 */
static bool
drain_sessions(GsInputSort *sort)
{
	gpusort_row_runs_begin_overflow(&sort->runs, GS_FALLBACK_DEVICE_MEMORY);
	if (!gpusort_row_sorter_sort(&sort->sorter) ||
		!gpusort_row_runs_write(&sort->runs, &sort->sorter) ||
		!gpusort_gpu_spread_release(sort->sorter.spread))
		return false;
	sort->nbatches++;
	sort->drained = sort->sorter;
	gpusort_row_sorter_init(&sort->sorter, sort->spec, sort->drained.parent);
	set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

bool
gpusort_input_sort_overflow(GsInputSort *sort)
{
	Assert(sort->location == GS_ROWS_ON_GPU && sort->fed_by_others);
	show_phase(sort, GS_PHASE_WRITING_RUN);
	if (!lost_unless(sort, drain_sessions(sort)))
		return false;
	begin_batch(sort);
	show_phase(sort, GS_PHASE_READING);
	return true;
}

/* Are the rows still there after the row sorter has refused one? */
static bool
keeps_its_rows(const GsInputSort *sort)
{
	GsFallback	failure;

	if (sort->location == GS_ROWS_IN_MEMORY)
		return true;
	if (gpusort_gpu_spread_is_lost(sort->sorter.spread))
		return false;
	failure = gpusort_row_sorter_failure(&sort->sorter);
	/* We cannot read the rows while other processes may still be adding some. */
	return !sort->sorter.stock_ties &&
		!(sort->fed_by_others && sort->location == GS_ROWS_ON_GPU) &&
		(failure == GS_FALLBACK_DEVICE_MEMORY || failure == GS_FALLBACK_LIMIT);
}

/* ----------------------------------------------------------------
 *		dropping rows beyond the bound
 * ----------------------------------------------------------------
 */

/* Add a row, which is wanted, from the arrays of a slot. */
static bool
put_wanted(GsInputSort *sort, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	return gpusort_row_sorter_put(&sort->sorter, slot) ||
		gpusort_input_sort_put_elsewhere(sort, slot);
}

/*
 * Set the cutoff to the row in the arrays of a slot.  If there is not enough memory
 * for its keys, there is no cutoff, and all rows are kept until the next cut.
 */
static void
set_cutoff(GsInputSort *sort, const TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->sorter.parent);
	GsCutoff   *cutoff = sort->cutoff;

	if (cutoff == NULL)
		cutoff = gpusort_cutoff_create(sort->spec);
	MemoryContextSwitchTo(caller);
	if (gpusort_cutoff_set(cutoff, slot->tts_values, slot->tts_isnull))
		sort->cutoff = cutoff;
}

/* Begin a memory sort in place of the current row sorter, and return the latter. */
static GsRowSorter
replace_sorter(GsInputSort *sort)
{
	GsRowSorter old = sort->sorter;

	gpusort_row_sorter_init(&sort->sorter, sort->spec, old.parent);
	gpusort_row_sorter_begin_cpu(&sort->sorter);
	set_location(sort, GS_ROWS_IN_MEMORY);
	gpusort_row_runs_reserve_readers(&sort->runs, &sort->sorter);
	limit_sorter(sort);
	return old;
}

/*
 * Cut a memory sort: sort its rows, and move those that are wanted to a new one.  They
 * move in the order of arrival, so that ties keep that order.  Returns false if rows
 * are lost.
 */
static bool
cut_sorter(GsInputSort *sort)
{
	int64		bound = sort->spec->bound;
	TupleTableSlot *slot;
	GsRowSorter old;
	bool		kept = true;

	if (!gpusort_row_sorter_sort(&sort->sorter))
		return overflow(sort);
	slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	gpusort_memory_sort_get(sort->sorter.cpu, bound - 1, slot->tts_values,
							slot->tts_isnull);
	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	set_cutoff(sort, slot);

	old = replace_sorter(sort);
	sort->most_bytes = Max(sort->most_bytes,
						   gpusort_memory_sort_bytes(old.cpu));
	sort->ndropped += gpusort_memory_sort_count(old.cpu) - bound;
	gpusort_memory_sort_keep_first(old.cpu, bound);
	while (kept && gpusort_memory_sort_take(old.cpu, slot->tts_values,
											slot->tts_isnull))
		kept = put_wanted(sort, slot);
	gpusort_row_sorter_end(&old);
	ExecDropSingleTupleTableSlot(slot);
	return kept;
}

/*
 * Sort the rows that a full GPU has refused, which arrived after all others, in a sort
 * of their own.
 */
static GsInputSort *
sort_rest(GsInputSort *sort, GsGpuSpread *gpus, TupleTableSlot *slot)
{
	GsSortSpec *spec = palloc(sizeof(GsSortSpec));
	GsInputSort *rest = palloc(sizeof(GsInputSort));

	*spec = *sort->spec;
	spec->nested = true;
	spec->processes = 0;
	spec->random_access = false;
	spec->target = NULL;
	spec->memory = gpusort_sort_spec_memory(sort->spec) / REST_PART;
	gpusort_input_sort_begin(rest, spec, gpusort_progress_unseen(), CurrentMemoryContext);
	while (gpusort_gpu_spread_take_rest(gpus, slot->tts_values,
										slot->tts_isnull))
	{
		CHECK_FOR_INTERRUPTS();
		(void) gpusort_input_sort_put(rest, ExecStoreVirtualTuple(slot));
		ExecClearTuple(slot);
	}
	(void) gpusort_input_sort_finish(rest);
	return rest;
}

/* Add those rows of that sort that are wanted, and end it. */
static void
put_rest(GsInputSort *sort, GsInputSort *rest, TupleTableSlot *slot)
{
	for (int64 position = 0; position < rest->nrows; position++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) gpusort_input_sort_get(rest, position, slot);
		gpusort_tuple_row_get_keys(sort->spec, slot->tts_values,
								   slot->tts_isnull);
		(void) gpusort_input_sort_put(sort, ExecStoreVirtualTuple(slot));
		ExecClearTuple(slot);
	}
	sort->ndropped += rest->ndropped;
	gpusort_input_sort_end(rest);
}

/*
 * Move the rows that are wanted from a GPU session, which is sorted, to a memory sort.
 * Returns false if they are lost.
 */
static bool
leave_gpu(GsInputSort *sort, GsFallback reason)
{
	MemoryContext context = AllocSetContextCreate(sort->sorter.context,
												  "pg_gpusort rest",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc,
													&TTSOpsVirtual);
	int64		nrows = gpusort_row_sorter_count(&sort->sorter);
	int64		wanted = Min(nrows, sort->spec->bound);
	int64		position = 0;
	GsInputSort *rest;
	GsRowSorter gpu;

	gpusort_kept_copy_leave_memory(&sort->copy, &sort->sorter);

	/* Refused rows occupy pool chunks that reading needs, so move them first. */
	rest = sort_rest(sort, sort->sorter.spread, slot);
	gpu = replace_sorter(sort);
	sort->gpu_reason = reason;	/* none is used again, if memory is full */
	while (position < wanted &&
		   gpusort_row_sorter_get_gpu(&gpu, position, slot->tts_values,
									  slot->tts_isnull))
	{
		gpusort_tuple_row_get_keys(sort->spec, slot->tts_values,
								   slot->tts_isnull);
		if (++position == sort->spec->bound)
			set_cutoff(sort, slot);
		(void) put_wanted(sort, slot);
	}
	MemoryContextSwitchTo(caller);
	if (position < wanted)
	{
		gpusort_input_sort_end(rest);
		gpusort_row_sorter_end(&sort->sorter);
		sort->sorter = gpu;
		return false;
	}
	sort->ndropped += nrows - wanted;
	gpusort_kept_copy_end(&sort->copy);
	put_rest(sort, rest, slot);
	ExecDropSingleTupleTableSlot(slot);
	gpusort_row_sorter_end(&gpu);
	gpusort_stats_count_fallback(reason);
	return true;
}

/*
 * Would dropping the rows that are not wanted make enough room?  Rows on disk are not
 * dropped.
 */
static bool
may_drop_rows(const GsInputSort *sort)
{
	const GsRowSorter *sorter = &sort->sorter;
	int64		bound = sort->spec->bound;
	int64		nrows;

	if (bound == 0 || sort->location == GS_ROWS_IN_BATCH)
		return false;
	if (sort->location == GS_ROWS_ON_GPU)
		return bound_fits_in_memory(sort->spec);
	nrows = gpusort_row_sorter_count(sorter);
	return nrows - bound > nrows / GPUSORT_LEAST_CUT_PART;
}

/* Drop the rows that are not wanted.  Returns false if rows are lost. */
static bool
drop_rows(GsInputSort *sort)
{
	GsFallback	reason;

	if (sort->location == GS_ROWS_IN_MEMORY)
		return cut_sorter(sort);
	reason = gpusort_row_sorter_failure(&sort->sorter);
	return gpusort_row_sorter_sort(&sort->sorter) && leave_gpu(sort, reason);
}

/* If a GPU has no memory for more rows, continue on another one.  Returns false if not. */
static bool
use_another_gpu(GsInputSort *sort)
{
	return sort->sorter.spread != NULL &&
		gpusort_row_sorter_failure(&sort->sorter) == GS_FALLBACK_DEVICE_MEMORY &&
		gpusort_row_sorter_grow(&sort->sorter);
}

/* Add a row to the run builder.  If that has written a run, a GPU may have room now. */
static void
build_run(GsInputSort *sort, TupleTableSlot *slot)
{
	if (!gpusort_run_builder_put(sort->runs.builder, slot->tts_values, slot->tts_isnull) ||
		!begin_batch_sorter(sort))
		return;
	gpusort_row_runs_end_builder(&sort->runs);
	set_location(sort, GS_ROWS_IN_BATCH);
}

bool
gpusort_input_sort_put_elsewhere(GsInputSort *sort, TupleTableSlot *slot)
{
	if (sort->copy.reserved > 0)
	{
		/* The memory sort can have the memory of a copy that is being read. */
		gpusort_kept_copy_leave_memory(&sort->copy, &sort->sorter);
		return gpusort_input_sort_put(sort, slot);
	}
	if (sort->location != GS_ROWS_IN_RUNS)
	{
		if (use_another_gpu(sort))
			return gpusort_input_sort_put(sort, slot);
		if (!keeps_its_rows(sort))
		{
			if (!recover_batch(sort))
				return false;
		}
		else if (may_drop_rows(sort))
			return drop_rows(sort) && gpusort_input_sort_put(sort, slot);
		else if (!overflow(sort))
			return false;
		if (sort->location == GS_ROWS_IN_BATCH)
			return gpusort_input_sort_put(sort, slot);
	}
	build_run(sort, slot);
	return true;
}

/* Have other processes added all of their rows, or written them as runs? */
static bool
input_is_complete(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;

	if ((sort->location == GS_ROWS_ON_GPU || sort->runs.set != NULL) &&
		input->failure != NULL)
		sort->input_failure = input->failure(input->arg);
	gpusort_kept_copy_import(&sort->copy, &sort->sorter);

	/* Each process has taken the rows that were refused. */
	if (sort->input_failure == GS_FALLBACK_NONE && sort->drained.spread != NULL &&
		gpusort_gpu_spread_has_rest(sort->drained.spread))
		elog(ERROR, "rows of a sort are left in the pool");
	return sort->input_failure == GS_FALLBACK_NONE;
}

/*
 * For stock_ties: other processes have put all rows into the GPU session, but the
 * memory sort needs them, too.  Read them again.  Returns false if they do not fit in
 * memory.
 */
static bool
read_for_ties(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;
	TupleTableSlot *slot;

	input->rewind(input->arg);
	while (slot = input->next(input->arg), !TupIsNull(slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (!gpusort_memory_sort_put(sort->sorter.cpu, slot->tts_values,
									 slot->tts_isnull))
			return false;
	}
	return true;
}

/* Returns the next row: of the copy of lost rows, if there is one, or of the input. */
static TupleTableSlot *
next_row(GsInputSort *sort)
{
	const GsInput *input = &sort->spec->input;
	TupleTableSlot *slot;

	if (unlikely(sort->copy.slot != NULL))
	{
		slot = gpusort_kept_copy_take(&sort->copy, &sort->sorter);
		if (slot != NULL)
			return slot;
	}
	if (sort->input_ended)
		return NULL;
	slot = input->next(input->arg);
	sort->input_ended = TupIsNull(slot);
	return slot;
}

static bool
read_input(GsInputSort *sort)
{
	TupleTableSlot *slot;
	int64		nrows = 0;

	while (slot = next_row(sort), !TupIsNull(slot))
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_input_sort_show_rows(sort, ++nrows);
		if (!gpusort_input_sort_put(sort, slot))
		{
			gpusort_kept_copy_add_refused(&sort->copy, &sort->sorter, slot);
			return false;
		}
	}
	if (!input_is_complete(sort))
		return false;
	if (sort->sorter.stock_ties && sort->fed_by_others &&
		sort->location == GS_ROWS_ON_GPU)
		return read_for_ties(sort);
	return true;
}

bool
gpusort_input_sort_add(GsInputSort *sort, TupleTableSlot *slot)
{
	return lost_unless(sort, gpusort_input_sort_put(sort, slot));
}

void
gpusort_input_sort_give_up(GsInputSort *sort)
{
	(void) lost_unless(sort, false);
}

bool
gpusort_input_sort_read(GsInputSort *sort)
{
	return lost_unless(sort, read_input(sort));
}

/* ----------------------------------------------------------------
 *		sorting
 * ----------------------------------------------------------------
 */

/* Sort the rows of a memory sort.  Returns false if there is not enough memory. */
static bool
sort_sorter(GsInputSort *sort)
{
	return gpusort_row_sorter_sort(&sort->sorter) &&
		(!sort->sorter.stock_ties ||
		 gpusort_row_sorter_apply_stock_ties(&sort->sorter));
}

static bool sort_rows(GsInputSort *sort);

/*
 * A GPU session is sorted, but the device refused the last rows.  Add these.  Returns
 * false if rows are lost.
 */
static bool
sort_with_rest(GsInputSort *sort)
{
	if (sort->sorter.stock_ties)
		return false;
	if (may_drop_rows(sort))
		return leave_gpu(sort, GS_FALLBACK_DEVICE_MEMORY) &&
			sort_rows(sort);
	gpusort_kept_copy_leave_memory(&sort->copy, &sort->sorter);
	gpusort_row_runs_begin_overflow(&sort->runs, GS_FALLBACK_DEVICE_MEMORY);
	if (!gpusort_row_runs_write(&sort->runs, &sort->sorter))
		return false;
	sort->nbatches++;
	gpusort_row_sorter_end(&sort->sorter);
	set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

/* Have other processes written runs, since the GPU sessions are full? */
static bool
has_overflowed(const GsInputSort *sort)
{
	return sort->runs.set != NULL && gpusort_gpu_spread_has_no_room(sort->sorter.spread);
}

/* Sort the rows of GPU sessions.  Returns false if they are lost. */
static bool
sort_gpu(GsInputSort *sort)
{
	if (!gpusort_row_sorter_sort(&sort->sorter))
		return false;
	if (gpusort_gpu_spread_has_rest(sort->sorter.spread) || has_overflowed(sort))
		return sort_with_rest(sort);
	return !sort->sorter.stock_ties ||
		gpusort_row_sorter_apply_stock_ties(&sort->sorter);
}

/* Sort the rows of a memory sort, on disk if there is not enough memory. */
static void
sort_memory(GsInputSort *sort)
{
	if (sort_sorter(sort))
		return;
	gpusort_row_runs_begin_overflow(&sort->runs, GS_FALLBACK_OUT_OF_MEMORY);
	(void) write_sorter(sort);
}

/*
 * Merge the runs together with those of other processes, if they all do that.  Otherwise,
 * the rows remain in runs.
 */
static void
merge_together(GsInputSort *sort)
{
	show_phase(sort, GS_PHASE_MERGING);
	if (gpusort_row_sharing_merge(&sort->sharing, sort->runs.external,
								  sort->runs.overflow))
		set_location(sort, GS_ROWS_SHARED);
}

/*
 * For stock_ties: this process has all rows, which are sorted.  Move them to a shared memory
 * sort in this order, in which ties then remain.  Returns false if they do not fit there.
 */
static bool
share_in_stock_order(GsInputSort *sort)
{
	GsRowSorter old = sort->sorter;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc,
													&TTSOpsVirtual);
	bool		fits = true;

	gpusort_row_sorter_init(&sort->sorter, sort->spec, old.parent);
	gpusort_row_sorter_begin_shared(&sort->sorter, sort->sharing.member);
	for (int64 row = 0; fits && row < gpusort_row_sorter_count(&old); row++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_memory_sort_get(old.cpu, row, slot->tts_values, slot->tts_isnull);
		gpusort_tuple_row_get_keys(sort->spec, slot->tts_values,
								   slot->tts_isnull);
		fits = gpusort_row_sorter_put(&sort->sorter, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	gpusort_row_sorter_end(fits ? &old : &sort->sorter);
	if (fits)
		sort->sorter.stock_ties = false;
	else
		sort->sorter = old;
	return fits;
}

/*
 * Sort rows that are in memory together with those of other processes, if they all do that.
 * If those of others do not fit, all of them are merged together on disk.
 */
static void
sort_together(GsInputSort *sort)
{
	bool		sorted = false;
	bool		stays = false;

	if (gpusort_row_sharing_is_on(&sort->sharing) && sort->sorter.stock_ties)
	{
		sorted = sort_sorter(sort);
		stays = !sorted || !share_in_stock_order(sort);
	}
	if (gpusort_row_sharing_sort(&sort->sharing, stays ? NULL : sort->sorter.cpu,
								 sort->ahead))
		set_location(sort, GS_ROWS_SHARED);
	else if (gpusort_row_sharing_wants_runs(&sort->sharing))
	{
		gpusort_row_runs_begin(&sort->runs);
		(void) write_sorter(sort);
		merge_together(sort);
	}
	else if (!sorted || !stays)
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
			(void) gpusort_row_sharing_sort(&sort->sharing, NULL, false);
			merge_together(sort);
			return true;
		case GS_ROWS_IN_BATCH:
			return (write_sorter(sort) || recover_batch(sort)) && sort_rows(sort);
		case GS_ROWS_SHARED:
			break;
	}
	return false;
}

bool
gpusort_input_sort_rows(GsInputSort *sort)
{
	show_phase(sort, GS_PHASE_SORTING);
	if (!lost_unless(sort, sort_rows(sort)))
		return false;
	enter_state(sort, GS_SORT_SORTED);
	return true;
}

bool
gpusort_input_sort_rows_ahead(GsInputSort *sort, bool *ahead)
{
	sort->ahead = *ahead;
	if (!gpusort_input_sort_rows(sort))
		return false;
	*ahead = sort->ahead && sort->location == GS_ROWS_SHARED;
	return true;
}

/* If rows have been dropped, return only those within the bound. */
static void
drop_last_rows(GsInputSort *sort)
{
	int64		unwanted = sort->nrows - sort->spec->bound;

	if (sort->ndropped > 0 && unwanted > 0)
	{
		sort->ndropped += unwanted;
		sort->nrows -= unwanted;
	}
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
		show_phase(sort, GS_PHASE_MERGING);
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
			set_location(sort, GS_ROWS_IN_RUNS);
	}
	if (sort->location == GS_ROWS_IN_RUNS)
	{
		gpusort_external_perform(runs->external);
		sort->nrows = gpusort_external_count(runs->external);
	}
	else
		sort->nrows = gpusort_row_sorter_count(&sort->sorter);
	drop_last_rows(sort);
}

bool
gpusort_input_sort_finish(GsInputSort *sort)
{
	if (sort->state == GS_SORT_ADDING && !gpusort_input_sort_rows(sort))
		return false;
	if (sort->location == GS_ROWS_SHARED)
		read_shared_rows(sort);
	else
		combine_rows(sort);
	/* Nobody has written runs, so the memory for merging them is not needed. */
	if (sort->location == GS_ROWS_ON_GPU)
		gpusort_row_sharing_end(&sort->sharing);
	/* With stock_ties, rows are returned from memory. */
	if (sort->location != GS_ROWS_ON_GPU || sort->sorter.stock_ties)
		gpusort_kept_copy_end(&sort->copy);
	enter_state(sort, GS_SORT_READY);
	show_phase(sort, GS_PHASE_RETURNING);
	sort->progress->rows_sorted = sort->nrows + sort->ndropped;
	return true;
}

/* ----------------------------------------------------------------
 *		a second time, after the loss of a GPU
 * ----------------------------------------------------------------
 */

GsFallback
gpusort_input_sort_loss(const GsInputSort *sort)
{
	GsFallback	reason = GS_FALLBACK_NONE;

	if (sort->sorter.spread != NULL)
		reason = gpusort_gpu_spread_failure(sort->sorter.spread);
	if (reason != GS_FALLBACK_NONE)
		return reason;
	if (sort->input_failure != GS_FALLBACK_NONE)
		return sort->input_failure;
	return GS_FALLBACK_STOCK_TIES;
}

bool
gpusort_input_sort_can_restart(const GsInputSort *sort)
{
	return sort->copy.rows != NULL || sort->spec->input.repeat != GS_INPUT_ONCE;
}

void
gpusort_input_sort_restart(GsInputSort *sort)
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

	sort->gpu_reason = gpusort_input_sort_loss(sort);
	sort->no_batches = true;
	gpusort_stats_count_fallback(sort->gpu_reason);
	gpusort_row_sorter_end(&sort->sorter);
	gpusort_row_sorter_end(&sort->drained);
	gpusort_row_runs_end(&sort->runs);
	gpusort_row_sharing_end(&sort->sharing);
	sort->nbatches = 0;
	sort->input_failure = GS_FALLBACK_NONE;
	sort->cutoff = NULL;
	sort->ndropped = 0;
	enter_state(sort, GS_SORT_ADDING);
	begin_sorter(sort, true);
	if (sort->copy.rows != NULL)
		gpusort_kept_copy_begin_taking(&sort->copy, &sort->sorter,
									   sort->location == GS_ROWS_IN_MEMORY);
	show_phase(sort, GS_PHASE_READING);
	sort->progress->rows_read = 0;
	sort->progress->rows_sorted = 0;
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
	if (!gpusort_input_sort_is_on_gpu(sort) || sort->sorter.stock_ties)
		return false;
	return gpusort_gpu_spread_in_place(sort->sorter.spread, position, rows);
}

void
gpusort_input_sort_lend(GsInputSort *sort, GsRecallRows recall, void *arg)
{
	if (gpusort_input_sort_is_on_gpu(sort))
		gpusort_gpu_spread_lend(sort->sorter.spread, recall, arg);
}
