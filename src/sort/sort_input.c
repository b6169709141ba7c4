/*-------------------------------------------------------------------------
 *
 * sort_input.c
 *		The facade of a sort: adds rows and sorts them.
 *
 * Rows are added to a GPU session or a memory sort.  When that refuses a row, the sort is cut if
 * it has a bound, or it overflows: the rows are sorted and written as a run, and those that follow
 * become runs, too.
 *
 * With spec->bound, only that many rows are kept.  When a memory sort has several times as many,
 * it is cut: its rows are sorted, and only the first ones are kept.  The last of these is the
 * cutoff.  From then on, rows that sort after it are dropped as they arrive.
 *
 * After the last row, the rows of this process are sorted wherever they are, together with
 * those of other processes if there are any.  Runs are merged.  sort_rows.c returns the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "sort/base/sort_stats.h"
#include "sort/base/tuple_rows.h"
#include "sort/disk/run_set.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort_private.h"
#include "work.h"

static bool put_elsewhere(GsSort *sort, TupleTableSlot *slot);

/* Returns the milliseconds of the lap that ends now.  The next one begins. */
static double
lap_ms(GsSort *sort)
{
	instr_time	now;
	instr_time	lap;

	INSTR_TIME_SET_CURRENT(now);
	lap = now;
	INSTR_TIME_SUBTRACT(lap, sort->lap_start);
	sort->lap_start = now;
	return INSTR_TIME_GET_MILLISEC(lap);
}

/* ----------------------------------------------------------------
 *		keys
 * ----------------------------------------------------------------
 */

/* Let encodings keep recent values, within the sort's memory. */
static void
give_encodings_memory(const GsSortSpec *spec, GsKeyPlan *plan)
{
	gpusort_key_plan_set_memory(plan,
								gpusort_sort_spec_all_memory(spec) / GPUSORT_ENCODING_PART);
}

GsFallback
gpusort_sort_plan_keys(GsSortSpec *spec)
{
	bool		gpu = !spec->nested &&
		gpusort_gpu_session_check(spec->expected_rows) == GS_FALLBACK_NONE;
	GsFallback	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(&spec->keys,
											   gpu ? GPUSORT_GPU_STRING_WORDS : 1,
											   &reason);

	give_encodings_memory(spec, plan);
	spec->key_plan = plan;
	spec->check = gpusort_order_check_create(&spec->keys);
	return reason;
}

GsKeyPlan *
gpusort_sort_plan_leader_keys(const GsSortSpec *spec, unsigned string_words)
{
	GsKeyPlan  *plan = gpusort_key_plan_create_for_leader(&spec->keys, string_words);

	give_encodings_memory(spec, plan);
	return plan;
}

/* ----------------------------------------------------------------
 *		beginning and ending
 * ----------------------------------------------------------------
 */

/* Do twice the rows that are wanted fit into the memory allowed?  Then rows can be dropped. */
static bool
bound_fits_in_memory(const GsSortSpec *spec)
{
	return spec->bound > 0 &&
		gpusort_memory_sort_estimate(gpusort_key_plan_words(spec->key_plan),
									 2.0 * spec->bound,
									 spec->expected_width) <=
		gpusort_sort_spec_memory(spec);
}

/* Returns how many rows all processes together are expected to keep. */
static double
rows_kept(const GsSortSpec *spec)
{
	if (!bound_fits_in_memory(spec))
		return spec->expected_rows;
	return Min(spec->expected_rows, (double) spec->bound * Max(spec->processes, 1));
}

/*
 * Is a sort expected to be cut?  Then it has no GPU, since to drop a row takes less time than
 * to put it there.
 */
static bool
will_cut(const GsSortSpec *spec)
{
	return bound_fits_in_memory(spec) &&
		spec->expected_rows > gpusort_memory_sort_capacity(spec);
}

/* Open a session with a GPU.  Returns false if no GPU should or can be used. */
static bool
begin_gpu(GsSort *sort)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->gpu_reason != GS_FALLBACK_NONE || spec->nested)
		return false;
	if (will_cut(spec))
	{
		sort->gpu_reason = gpusort_gpu_session_check(spec->expected_rows);
		if (sort->gpu_reason == GS_FALLBACK_NONE)
			sort->gpu_reason = GS_FALLBACK_LIMIT;
	}
	else if (gpusort_gpu_rows_begin(&sort->gpu, spec, &sort->gpu_reason))
		return true;
	if (gpusort_fallback_is_want_of_gpu(sort->gpu_reason))
		gpusort_stats_count_fallback(sort->gpu_reason);
	return false;
}

/* Begin what this process has in common with others, if there are any. */
static void
begin_participant(GsSort *sort)
{
	sort->participant = gpusort_participant_begin(sort->spec, sort->context);
	if (sort->spec->team != NULL)
		gpusort_cpu_sort_set_target(&sort->cpu, &sort->participant->target);
}

/* Begin a memory sort, whose rows other processes can sort if it is 'shared'. */
static void
begin_memory(GsSort *sort, bool shared)
{
	gpusort_cpu_sort_begin_rows(&sort->cpu, shared ? sort->participant->member : NULL);
}

/*
 * Choose where rows go: to a GPU session, or else to a memory sort, whose rows are sorted together
 * with those of other processes if these take part.  A process that will drop rows moves those
 * that it keeps to the others later.  'again' if rows have been lost.
 */
static void
begin_rows(GsSort *sort, bool again)
{
	if (begin_gpu(sort))
	{
		sort->location = GS_ROWS_ON_GPU;
		return;
	}

	if (!again)
		begin_participant(sort);
	begin_memory(sort, sort->participant != NULL && !bound_fits_in_memory(sort->spec));
	sort->location = GS_ROWS_IN_MEMORY;
}

/*
 * Called when the sort's memory is freed.  If nothing has been sorted, an error
 * is the reason.  Must not use the spec, which may have been on the stack.
 */
static void
memory_is_freed(void *arg)
{
	GsSort	   *sort = arg;

	if (sort->counted && !sort->sorted)
		gpusort_stats_count_error();
}

GsSort *
gpusort_sort_begin(const GsSortSpec *spec)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort sort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));
	GsSort	   *sort = palloc0(sizeof(GsSort));

	sort->spec = spec;
	sort->context = context;
	sort->counted = !spec->nested;
	sort->nrows_lost = -1;
	sort->progress = gpusort_progress_begin(context, spec->index_build ? -1 : spec->plan_node,
											spec->processes - 1, spec->expected_rows);
	callback->func = memory_is_freed;
	callback->arg = sort;
	MemoryContextRegisterResetCallback(context, callback);
	INSTR_TIME_SET_CURRENT(sort->lap_start);
	gpusort_cpu_sort_init(&sort->cpu, spec, context);
	begin_rows(sort, false);
	gpusort_sort_show_space(sort);
	MemoryContextSwitchTo(caller);
	return sort;
}

/* End what this process has in common with others. */
static void
end_participant(GsSort *sort)
{
	if (sort->participant != NULL)
		gpusort_participant_end(sort->participant);
	sort->participant = NULL;
	gpusort_cpu_sort_set_target(&sort->cpu, NULL);
	sort->ranges = NULL;
}

/* End what has the rows. */
static void
end_rows(GsSort *sort)
{
	gpusort_gpu_rows_end(&sort->gpu);
	gpusort_cpu_sort_end(&sort->cpu);
	end_participant(sort);
}

void
gpusort_sort_restart(GsSort *sort)
{
	GsProgress *progress = sort->progress;
	MemoryContext caller;

	if (sort->nrows > 0 && !sort->spec->index_build)
		sort->nrows_lost = sort->nrows + sort->ndropped;
	sort->gpu_reason = gpusort_sort_loss(sort);
	gpusort_stats_count_fallback(sort->gpu_reason);
	end_rows(sort);
	sort->failure = GS_FALLBACK_NONE;
	sort->cutoff = NULL;
	sort->ndropped = 0;
	sort->position = 0;
	gpusort_sort_enter(sort, GS_SORT_ADDING);
	caller = MemoryContextSwitchTo(sort->context);
	begin_rows(sort, true);
	MemoryContextSwitchTo(caller);
	gpusort_sort_show_phase(sort, GS_PHASE_READING);
	progress->rows_read = 0;
	progress->rows_sorted = 0;
	(void) lap_ms(sort);
}

void
gpusort_sort_end(GsSort *sort)
{
	end_rows(sort);
	MemoryContextDelete(sort->context);
}

/* ----------------------------------------------------------------
 *		other processes
 * ----------------------------------------------------------------
 */

bool
gpusort_sort_gpu_handle(GsSort *sort, GsClientHandle *handle)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->location != GS_ROWS_ON_GPU)
		return false;

	/* The plan was made for the CPU, and a GPU has become available since. */
	if (gpusort_key_plan_string_words(spec->key_plan) !=
		GPUSORT_GPU_STRING_WORDS)
		return false;

	/*
	 * A row that is too long for a chunk has the input read again once others
	 * have put rows into the session.
	 */
	if (!spec->repeatable)
		return false;
	sort->fed_by_others = true;
	*handle = gpusort_gpu_session_handle(sort->gpu.session);
	return true;
}

/*
 * Let other processes take part.  Returns false if there is no team, or if rows are 'expected' on
 * disk and temp_file_limit does not allow that.
 */
static bool
open_participant(GsSort *sort, bool expected)
{
	const GsSortSpec *spec = sort->spec;

	if (sort->participant == NULL ||
		(expected && !gpusort_shared_runs_allowed(rows_kept(spec), spec->expected_width)))
		return false;
	gpusort_participant_open(sort->participant);
	gpusort_cpu_sort_set_target(&sort->cpu, &sort->participant->target);
	return true;
}

bool
gpusort_sort_allow_overflow(GsSort *sort)
{
	if (!sort->fed_by_others)
		return false;
	begin_participant(sort);
	return open_participant(sort, true);
}

/* Will the processes sort their rows in memory, as far as the estimates tell? */
static bool
will_fit_in_memory(const GsSortSpec *spec)
{
	return gpusort_shared_sort_fits(gpusort_key_plan_words(spec->key_plan), rows_kept(spec),
									spec->expected_width, gpusort_sort_spec_memory(spec),
									spec->processes);
}

bool
gpusort_sort_open(GsSort *sort)
{
	return sort->location == GS_ROWS_IN_MEMORY &&
		open_participant(sort, !will_fit_in_memory(sort->spec));
}

GsTeam *
gpusort_sort_team(const GsSort *sort)
{
	return sort->participant != NULL ? sort->participant->team : NULL;
}

bool
gpusort_sort_attach(GsSort *sort)
{
	return sort->participant == NULL || gpusort_participant_attach(sort->participant);
}

void
gpusort_sort_await_others(GsSort *sort)
{
	gpusort_participant_await_others(sort->participant);
}

void
gpusort_sort_stop(GsSort *sort)
{
	if (sort->participant != NULL)
		gpusort_participant_stop(sort->participant);
}

void
gpusort_sort_fail(GsSort *sort, GsFallback reason)
{
	sort->failure = reason;
	(void) gpusort_sort_lost_unless(sort, false);
}

/* ----------------------------------------------------------------
 *		overflow
 * ----------------------------------------------------------------
 */

/*
 * May rows of a GPU be written?  Not if there are more than temp_file_limit allows, and the
 * sort can start over: they may fit in memory then.
 */
static bool
may_write_rows(const GsSort *sort)
{
	if (sort->location != GS_ROWS_ON_GPU || !sort->spec->repeatable)
		return true;
	/* If a memory sort can drop rows, better read the input again. */
	return !bound_fits_in_memory(sort->spec) &&
		gpusort_shared_runs_allowed(gpusort_gpu_session_rows_put(sort->gpu.session),
									sort->spec->expected_width);
}

/* Write the rows on a GPU, or in memory.  Returns false if they are lost. */
static bool
move_to_runs(GsSort *sort)
{
	if (sort->location == GS_ROWS_ON_GPU)
	{
		if (!gpusort_gpu_rows_write(&sort->gpu, &sort->cpu))
			return false;
		gpusort_gpu_rows_end(&sort->gpu);
	}
	else
		gpusort_cpu_sort_write_rows(&sort->cpu);
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

/* As above, but sort a GPU session first, and limit the number of runs. */
static bool
sort_to_runs(GsSort *sort)
{
	if (sort->location == GS_ROWS_ON_GPU && !gpusort_gpu_rows_sort(&sort->gpu, sort->spec))
		return false;
	if (!move_to_runs(sort))
		return false;
	gpusort_external_limit_runs(sort->cpu.external);
	return true;
}

/* Returns why a row was refused, or rows were lost. */
static GsFallback
refusal(const GsSort *sort)
{
	return sort->location == GS_ROWS_ON_GPU ? gpusort_gpu_session_failure(sort->gpu.session) :
		gpusort_memory_sort_refusal(sort->cpu.rows);
}

/*
 * A row is refused.  Let the others, and those that follow, go to disk.  Returns false if rows are
 * lost.
 */
static bool
write_rows(GsSort *sort)
{
	gpusort_sort_show_phase(sort, GS_PHASE_WRITING_RUN);

	/* Rows go to disk, so the processes cannot sort their rows in memory. */
	if (sort->participant != NULL)
		gpusort_participant_spill(sort->participant);
	gpusort_cpu_sort_begin_runs(&sort->cpu, refusal(sort));
	if (!sort_to_runs(sort))
		return false;
	gpusort_sort_show_phase(sort, GS_PHASE_READING);
	return true;
}

/*
 * The GPU session of all processes is full.  Write its rows, but keep the session, since
 * other processes may still have to find that out.  Returns false if the rows are lost.
 */
static bool
drain_session(GsSort *sort)
{
	gpusort_cpu_sort_begin_runs(&sort->cpu, GS_FALLBACK_DEVICE_MEMORY);
	if (!gpusort_gpu_rows_sort(&sort->gpu, sort->spec) ||
		!gpusort_gpu_rows_write(&sort->gpu, &sort->cpu) ||
		!gpusort_gpu_session_release(sort->gpu.session))
		return false;
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

bool
gpusort_sort_overflow(GsSort *sort)
{
	Assert(sort->location == GS_ROWS_ON_GPU && sort->fed_by_others);
	gpusort_sort_show_phase(sort, GS_PHASE_WRITING_RUN);
	if (sort->participant != NULL)
		gpusort_participant_spill(sort->participant);
	if (!gpusort_sort_lost_unless(sort, drain_session(sort)))
		return false;
	gpusort_sort_show_phase(sort, GS_PHASE_READING);
	return true;
}

/* ----------------------------------------------------------------
 *		dropping rows beyond the bound
 *
 * In a parallel query, each process drops rows of its own, and then moves the others to memory
 * that all processes share.  Of these, drop_last_rows() has only the first ones returned.
 * ----------------------------------------------------------------
 */

/* Are the rows in memory that only this process accesses? */
static bool
has_private_rows(const GsSort *sort)
{
	return sort->location == GS_ROWS_IN_MEMORY &&
		gpusort_memory_sort_budget(sort->cpu.rows)->shared == NULL;
}

/* Would dropping the rows that are not wanted make enough room? */
static bool
may_cut(const GsSort *sort)
{
	int64		bound = sort->spec->bound;
	int64		nrows;

	if (bound == 0 || !has_private_rows(sort))
		return false;
	nrows = gpusort_memory_sort_count(sort->cpu.rows);
	return nrows - bound > nrows / GPUSORT_LEAST_CUT_PART;
}

/*
 * Set the cutoff to the row in the arrays of a slot.  If there is not enough memory
 * for its keys, there is no cutoff, and all rows are kept until the next cut.
 */
static void
set_cutoff(GsSort *sort, const TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	GsCutoff   *cutoff = sort->cutoff;

	if (cutoff == NULL)
		cutoff = gpusort_cutoff_create(sort->spec);
	MemoryContextSwitchTo(caller);
	if (gpusort_cutoff_set(cutoff, slot->tts_values, slot->tts_isnull))
		sort->cutoff = cutoff;
}

/*
 * Move the rows of a memory sort to another one, which may overflow.  They move in the order of
 * arrival, so that ties keep that order.
 */
static void
move_rows(GsSort *sort, bool shared)
{
	MemoryContext context;
	GsMemorySort *old = gpusort_cpu_sort_detach_rows(&sort->cpu, &context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);

	begin_memory(sort, shared);
	sort->most_bytes = Max(sort->most_bytes, gpusort_memory_sort_bytes(old));
	while (gpusort_memory_sort_take(old, slot->tts_values, slot->tts_isnull))
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_cpu_sort_put(&sort->cpu, slot->tts_values, slot->tts_isnull))
			(void) put_elsewhere(sort, slot);
	}
	MemoryContextDelete(context);
	ExecDropSingleTupleTableSlot(slot);
}

/* Set the cutoff to the last row of a sorted memory sort that is wanted, and drop the others. */
static void
keep_first_rows(GsSort *sort)
{
	GsMemorySort *rows = sort->cpu.rows;
	int64		bound = sort->spec->bound;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);

	gpusort_memory_sort_get(rows, bound - 1, slot->tts_values, slot->tts_isnull);
	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	set_cutoff(sort, slot);
	sort->ndropped += gpusort_memory_sort_count(rows) - bound;
	gpusort_memory_sort_keep_first(rows, bound);
	ExecDropSingleTupleTableSlot(slot);
}

/* Sort the rows in memory.  Returns false if the system has no memory for that. */
static bool
sort_in_memory(GsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->cpu.rows_context);
	bool		sorted = gpusort_memory_sort_sort(sort->cpu.rows);

	MemoryContextSwitchTo(caller);
	return sorted;
}

/*
 * Move the rows of a memory sort that are wanted to another one, which is 'shared' after the last
 * row.  It may overflow.
 */
static void
cut(GsSort *sort, bool shared)
{
	if (!sort_in_memory(sort))
	{
		(void) write_rows(sort);
		return;
	}
	keep_first_rows(sort);
	move_rows(sort, shared);
}

/* After the last row: have the rows that are wanted where all processes can sort them. */
static void
share_rows(GsSort *sort)
{
	if (may_cut(sort))
		cut(sort, true);
	else
		move_rows(sort, true);
}

/* If rows have been dropped, return only those within the bound. */
static void
drop_last_rows(GsSort *sort)
{
	int64		unwanted = sort->nrows - sort->spec->bound;

	if (sort->ndropped > 0 && unwanted > 0)
	{
		sort->ndropped += unwanted;
		sort->nrows -= unwanted;
	}
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Are the rows still there after one was refused? */
static bool
keeps_its_rows(const GsSort *sort)
{
	GsFallback	failure;

	if (sort->location == GS_ROWS_IN_MEMORY)
		return true;
	failure = refusal(sort);
	/* We cannot read the rows while other processes may still be adding some. */
	return !(sort->fed_by_others && sort->location == GS_ROWS_ON_GPU) &&
		(failure == GS_FALLBACK_DEVICE_MEMORY ||
		 (failure == GS_FALLBACK_ROW_WIDTH && !sort->spec->repeatable));
}

/* Add the row in a slot.  Returns false if rows are lost. */
static inline bool
put(GsSort *sort, TupleTableSlot *slot)
{
	if (sort->cutoff != NULL && gpusort_cutoff_drops(sort->cutoff, slot))
	{
		sort->ndropped++;
		return true;
	}
	slot_getallattrs(slot);
	if (sort->location == GS_ROWS_ON_GPU)
		return likely(gpusort_gpu_session_put(sort->gpu.session, slot->tts_values,
											  slot->tts_isnull)) ||
			put_elsewhere(sort, slot);
	return likely(gpusort_cpu_sort_put(&sort->cpu, slot->tts_values, slot->tts_isnull)) ||
		put_elsewhere(sort, slot);
}

/*
 * Add a row that was refused, if necessary after an overflow or a cut.  Returns false if rows are
 * lost.
 */
static bool
put_elsewhere(GsSort *sort, TupleTableSlot *slot)
{
	if (sort->location != GS_ROWS_IN_RUNS)
	{
		if (!keeps_its_rows(sort))
			return false;
		if (may_cut(sort))
		{
			cut(sort, false);
			return put(sort, slot);
		}
		if (!may_write_rows(sort) || !write_rows(sort))
			return false;
	}
	gpusort_cpu_sort_add(&sort->cpu, slot->tts_values, slot->tts_isnull);
	return true;
}

bool
gpusort_sort_add(GsSort *sort, TupleTableSlot *slot)
{
	/* Show that the row has been read before it is added. */
	if (unlikely(++sort->progress->rows_read % GPUSORT_ROWS_PER_REPORT == 0))
		gpusort_sort_show_space(sort);
	return likely(put(sort, slot)) || gpusort_sort_lost_unless(sort, false);
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
sort_with_rest(GsSort *sort)
{
	if (!may_write_rows(sort))
	{
		sort->failure = GS_FALLBACK_DEVICE_MEMORY;
		return false;
	}
	gpusort_cpu_sort_begin_runs(&sort->cpu, GS_FALLBACK_DEVICE_MEMORY);
	return move_to_runs(sort);
}

/* Have other processes written runs, since the GPU session is full? */
static bool
has_overflowed(const GsSort *sort)
{
	return sort->participant != NULL && gpusort_gpu_session_is_full(sort->gpu.session);
}

/* Sort the rows of a GPU session.  Returns false if they are lost. */
static bool
sort_gpu(GsSort *sort)
{
	if (!gpusort_gpu_rows_sort(&sort->gpu, sort->spec))
		return false;
	if (gpusort_gpu_session_has_rest(sort->gpu.session) || has_overflowed(sort))
		return sort_with_rest(sort);
	return true;
}

/* Sort the rows of a memory sort, on disk if there is not enough memory. */
static void
sort_memory(GsSort *sort)
{
	gpusort_cpu_sort_sort(&sort->cpu);
	if (sort->cpu.external != NULL)
		gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
}

/* Sort the rows of this process without those of others.  Returns false if they are lost. */
static bool
sort_apart(GsSort *sort)
{
	if (sort->location == GS_ROWS_ON_GPU)
		return sort_gpu(sort);
	if (sort->location == GS_ROWS_IN_MEMORY)
		sort_memory(sort);
	return true;
}

/*
 * Rows of other processes are in runs.  Write those of this one, too, unless that has been done.
 * Returns false if they are lost.
 */
static bool
settle(GsSort *sort)
{
	if (sort->location == GS_ROWS_IN_RUNS)
		return true;
	gpusort_sort_show_phase(sort, GS_PHASE_WRITING_RUN);
	gpusort_cpu_sort_begin_runs(&sort->cpu, sort->location == GS_ROWS_ON_GPU ?
								GS_FALLBACK_DEVICE_MEMORY : GS_FALLBACK_NONE);
	return sort_to_runs(sort);
}

/* Likewise, and merge the runs of all processes. */
static bool
merge_together(GsSort *sort)
{
	GsTogether	together;

	if (!settle(sort))
		return false;
	gpusort_sort_show_phase(sort, GS_PHASE_MERGING);
	together = gpusort_participant_merge(sort->participant, sort->cpu.external,
										 sort->cpu.overflow);
	if (together == GS_TOGETHER_IN_RUNS)
		gpusort_sort_set_location(sort, GS_ROWS_SHARED);
	return together != GS_TOGETHER_LOST;
}

/* Sort the rows of all processes together.  Returns false if they are lost. */
static bool
sort_together(GsSort *sort)
{
	/* Do not wait with that until all others have come so far. */
	if (sort->location == GS_ROWS_IN_MEMORY &&
		gpusort_participant_wants_runs(sort->participant) && !settle(sort))
		return false;
	if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_sort_show_phase(sort, GS_PHASE_MERGING);

	switch (gpusort_participant_place(sort->participant, sort->cpu.rows))
	{
		case GS_TOGETHER_IN_MEMORY:
			gpusort_sort_set_location(sort, GS_ROWS_SHARED);
			return true;
		case GS_TOGETHER_IN_RUNS:
			return merge_together(sort);
		case GS_APART:
			return sort_apart(sort);
		case GS_TOGETHER_LOST:
			break;
	}
	return false;
}

/* Sort the rows of this process.  Returns false if they are lost. */
static bool
sort_rows(GsSort *sort)
{
	GsParticipant *participant = sort->participant;

	if (participant != NULL && participant->attached && has_private_rows(sort) &&
		!gpusort_participant_wants_runs(participant))
		share_rows(sort);
	if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_cpu_sort_write_rows(&sort->cpu);
	if (participant == NULL)
		return sort_apart(sort);
	gpusort_participant_add_dropped(participant, sort->ndropped);
	return sort_together(sort);
}

/* The last row of this process has been added: sort them.  Returns false if they are lost. */
static bool
end_adding(GsSort *sort)
{
	bool		kept;

	sort->drain_ms += lap_ms(sort);
	gpusort_sort_show_phase(sort, GS_PHASE_SORTING);
	kept = gpusort_sort_lost_unless(sort, sort_rows(sort));
	if (kept)
		gpusort_sort_enter(sort, GS_SORT_SORTED);
	sort->sort_ms += lap_ms(sort);
	return kept;
}

bool
gpusort_sort_end_adding(GsSort *sort, bool *ahead)
{
	if (!end_adding(sort))
		return false;
	*ahead = sort->location == GS_ROWS_SHARED;
	return true;
}

/*
 * Rows that are merged together can be read only once, and forward.  Write them as a run, which
 * can be read again, and backward.
 */
static void
write_shared_rows(GsSort *sort)
{
	GsCpuSort  *cpu = &sort->cpu;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);

	gpusort_cpu_sort_begin_anew(cpu);
	gpusort_external_begin_run(cpu->external);
	for (int64 i = 0; i < sort->nrows; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_range_reader_get(sort->ranges, i, slot->tts_values, slot->tts_isnull);
		gpusort_external_put(cpu->external, slot->tts_values, slot->tts_isnull);
	}
	gpusort_external_read_run(cpu->external);
	ExecDropSingleTupleTableSlot(slot);
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
}

/* The processes have sorted their rows together.  The leader will return them. */
static void
read_shared_rows(GsSort *sort)
{
	if (sort->spec->team != NULL)
		return;
	sort->ranges = gpusort_participant_read(sort->participant);
	sort->nrows = sort->ranges->nrows;
	sort->ndropped = gpusort_participant_dropped(sort->participant);
	drop_last_rows(sort);
	gpusort_cpu_sort_note_overflow(&sort->cpu,
								   gpusort_participant_overflow(sort->participant));
	if (sort->participant->merged && sort->spec->random_access)
		write_shared_rows(sort);
}

/* No other process has rows. */
static void
read_own_rows(GsSort *sort)
{
	if (sort->location == GS_ROWS_ON_GPU)
		sort->nrows = gpusort_gpu_session_count(sort->gpu.session);
	else
	{
		if (sort->location == GS_ROWS_IN_RUNS)
			gpusort_sort_show_phase(sort, GS_PHASE_MERGING);
		gpusort_cpu_sort_perform(&sort->cpu);
		sort->nrows = gpusort_cpu_sort_count(&sort->cpu);
	}
	drop_last_rows(sort);
}

/* All rows of this process are sorted.  Read those of all processes in one order. */
static void
finish_rows(GsSort *sort)
{
	/* Each process has taken the rows that were refused. */
	if (sort->location != GS_ROWS_ON_GPU && sort->gpu.session != NULL &&
		gpusort_gpu_session_has_rest(sort->gpu.session))
		elog(ERROR, "rows of a sort are left in the pool");
	if (sort->location == GS_ROWS_SHARED)
		read_shared_rows(sort);
	else
		read_own_rows(sort);
	/* Nobody has written runs, so the memory for merging them is not needed. */
	if (sort->location == GS_ROWS_ON_GPU)
		end_participant(sort);
	gpusort_sort_enter(sort, GS_SORT_READY);
	gpusort_sort_show_phase(sort, GS_PHASE_RETURNING);
	sort->progress->rows_sorted = sort->nrows + sort->ndropped;
	if (sort->nrows_lost >= 0 && sort->nrows_lost != sort->nrows + sort->ndropped)
		elog(ERROR, "input of a sort had " INT64_FORMAT " rows and then "
			 INT64_FORMAT, sort->nrows_lost, sort->nrows + sort->ndropped);
}

bool
gpusort_sort_finish(GsSort *sort)
{
	if (sort->state == GS_SORT_ADDING)
		(void) end_adding(sort);
	if (sort->state == GS_SORT_SORTED)
		finish_rows(sort);
	sort->sort_ms += lap_ms(sort);
	if (sort->state == GS_SORT_LOST)
	{
		if (sort->spec->team == NULL)
			gpusort_sort_check_restart(sort);
		return false;
	}
	sort->sorted = true;
	if (sort->spec->team == NULL)
	{
		gpusort_sort_begin_check(sort);
		gpusort_sort_count_it(sort);
	}
	return true;
}
