/*-------------------------------------------------------------------------
 *
 * sort_input.c
 *		The facade of a sort: begins it and adds rows.
 *
 * Rows are added to a GPU session or a memory sort.  When memory refuses a row, the sort is cut if
 * it has a bound, or it overflows: the rows are sorted and written as a run, and those that follow
 * become runs, too.  So do the rows that a GPU refuses.
 *
 * With spec->bound, only that many rows are kept.  When a memory sort has several times as many,
 * it is cut: its rows are sorted, and only the first ones are kept.  The last of these is the
 * cutoff.  From then on, rows that sort after it are dropped as they arrive.
 *
 * After the last row, sort_finish.c sorts the rows, and sort_rows.c returns them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "utils/memutils.h"

#include "core/radix_sort.h"
#include "sort/base/group_keys.h"
#include "sort/base/sort_stats.h"
#include "sort/base/tuple_rows.h"
#include "sort/disk/extent_file.h"
#include "sort/gpu/gpu_session.h"
#include "sort/sort_private.h"
#include "work.h"

static bool put_elsewhere(GsSort *sort, TupleTableSlot *slot);

/* ----------------------------------------------------------------
 *		keys
 * ----------------------------------------------------------------
 */

/* Let encodings keep recent values, within the sort's memory. */
static void
give_encodings_memory(const GsSortSpec *spec, GsKeyPlan *plan)
{
	gpusort_key_plan_set_memory(plan,
								gpusort_sort_spec_all_memory(spec) / GPUSORT_ENCODING_DIVISOR);
}

/* May this process open a session with a GPU?  Workers use that of the leader, or none. */
static bool
may_use_gpu(const GsSortSpec *spec)
{
	return !spec->nested && spec->team == NULL;
}

GsReason
gpusort_sort_plan_keys(GsSortSpec *spec)
{
	GsReason	reason;
	GsKeyPlan  *plan = gpusort_key_plan_create(&spec->keys, &reason);

	give_encodings_memory(spec, plan);
	spec->key_plan = plan;
	spec->check = gpusort_order_check_create(&spec->keys);
	return reason;
}

void
gpusort_sort_plan_leader_keys(GsSortSpec *spec)
{
	GsKeyPlan  *plan = gpusort_key_plan_create(&spec->keys, NULL);

	give_encodings_memory(spec, plan);
	spec->key_plan = plan;
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

	if (spec->session != NULL)
		return gpusort_gpu_rows_begin(&sort->gpu, spec, &sort->gpu_reason);
	if (sort->gpu_reason != GS_REASON_NONE || !may_use_gpu(spec))
		return false;
	if (gpusort_key_plan_is_distrusted(spec->key_plan))
	{
		gpusort_stats_count_reason(GS_REASON_WRONG_ORDER);
		return false;
	}
	if (will_cut(spec))
	{
		sort->gpu_reason = gpusort_gpu_session_check(spec->expected_rows, spec->expected_ties);
		if (sort->gpu_reason == GS_REASON_NONE)
			sort->gpu_reason = GS_REASON_LIMIT;
	}
	else if (gpusort_gpu_rows_begin(&sort->gpu, spec, &sort->gpu_reason))
		return true;
	if (gpusort_reason_is_no_gpu(sort->gpu_reason))
		gpusort_stats_count_reason(sort->gpu_reason);
	return false;
}

/* Begin what this process has in common with others, if there are any. */
static void
begin_participant(GsSort *sort)
{
	sort->participant = gpusort_participant_begin(sort->spec, sort->context);
	if (sort->spec->team != NULL)
		sort->cpu.target = &sort->participant->target;
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
 * that it keeps to the others later.
 */
static void
begin_rows(GsSort *sort)
{
	if (begin_gpu(sort))
	{
		sort->location = GS_ROWS_ON_GPU;
		return;
	}
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
	sort->counted = !spec->nested && spec->group_keys == 0;
	sort->nrows_lost = -1;
	sort->progress = spec->unseen ? palloc0(sizeof(GsProgress)) :
		gpusort_progress_begin(context, spec->index_build ? -1 : spec->plan_node,
							   spec->processes - 1, spec->expected_rows);
	callback->func = memory_is_freed;
	callback->arg = sort;
	MemoryContextRegisterResetCallback(context, callback);
	INSTR_TIME_SET_CURRENT(sort->lap_start);
	gpusort_cpu_sort_init(&sort->cpu, spec, context);
	begin_participant(sort);
	begin_rows(sort);
	gpusort_sort_show_space(sort);
	MemoryContextSwitchTo(caller);
	return sort;
}

void
gpusort_sort_end_participant(GsSort *sort)
{
	if (sort->participant != NULL)
		gpusort_participant_end(sort->participant);
	sort->participant = NULL;
	sort->cpu.target = NULL;
	sort->ranges = NULL;
}

/* End what has the rows. */
static void
end_rows(GsSort *sort)
{
	gpusort_gpu_rows_end(&sort->gpu);
	gpusort_cpu_sort_end(&sort->cpu);
	gpusort_sort_end_participant(sort);
}

void
gpusort_sort_restart(GsSort *sort)
{
	GsProgress *progress = sort->progress;
	MemoryContext caller;

	if (sort->nrows > 0 && !sort->spec->index_build)
		sort->nrows_lost = sort->nrows + sort->ndropped;
	sort->gpu_reason = gpusort_sort_loss(sort);
	gpusort_stats_count_reason(sort->gpu_reason);
	end_rows(sort);
	sort->failure = GS_REASON_NONE;
	sort->cutoff = NULL;
	sort->ndropped = 0;
	sort->position = 0;
	gpusort_sort_enter(sort, GS_SORT_ADDING);
	caller = MemoryContextSwitchTo(sort->context);
	begin_rows(sort);
	MemoryContextSwitchTo(caller);
	gpusort_sort_show_phase(sort, GS_PHASE_READING);
	progress->rows_read = 0;
	progress->rows_sorted = 0;
	(void) gpusort_sort_lap_ms(sort);
}

void
gpusort_sort_end_reading(GsSort *sort)
{
	gpusort_gpu_rows_close(&sort->gpu);
	gpusort_cpu_sort_end(&sort->cpu);
	if (sort->participant != NULL)
		gpusort_participant_close(sort->participant);
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

/* Will the processes sort their rows in memory, as far as the estimates tell? */
static bool
will_fit_in_memory(const GsSortSpec *spec)
{
	return gpusort_shared_sort_fits(gpusort_key_plan_words(spec->key_plan), rows_kept(spec),
									spec->expected_width, gpusort_sort_spec_memory(spec),
									spec->processes);
}

/* Are rows expected on disk, although temp_file_limit does not allow that? */
static bool
will_exceed_limit(const GsSortSpec *spec)
{
	return !will_fit_in_memory(spec) &&
		!gpusort_shared_runs_allowed(rows_kept(spec), spec->expected_width);
}

bool
gpusort_sort_open(GsSort *sort)
{
	/* Few sorts on a GPU overflow. */
	if (sort->participant == NULL ||
		(sort->location == GS_ROWS_IN_MEMORY && will_exceed_limit(sort->spec)))
		return false;
	gpusort_participant_open(sort->participant);
	sort->cpu.target = &sort->participant->target;
	return true;
}

void
gpusort_sort_pair(GsSort *first, GsSort *second)
{
	first->second = second;
	gpusort_participants_pair(first->participant, second->participant);
}

bool
gpusort_sort_attach(GsSort *sort)
{
	bool		in_time = sort->participant == NULL ||
		gpusort_participant_attach(sort->participant);

	for (GsSort *s = sort; s != NULL; s = s->second)
	{
		s->counted = !s->spec->nested;
		s->together = s->participant != NULL;
		if (s != sort)
			s->participant->phase = sort->participant->phase;
	}
	return in_time;
}

void
gpusort_sort_stop(GsSort *sort)
{
	if (sort->participant != NULL)
		gpusort_participant_stop(sort->participant);
}

void
gpusort_sort_fail(GsSort *sort, GsReason reason)
{
	sort->failure = reason;
	(void) gpusort_sort_lost_unless(sort, false);
}

/* ----------------------------------------------------------------
 *		overflow
 * ----------------------------------------------------------------
 */

/* Returns how many rows all processes have put into a GPU session, about, unless it is sorted. */
static double
count_session_rows(const GsSort *sort)
{
	double		nrows = gpusort_gpu_session_count(sort->gpu.session);
	GsGpuReport report;

	if (nrows > 0)
		return nrows;
	gpusort_gpu_session_report(sort->gpu.session, &report);
	nrows = report.rows_put;
	/* The others will have put about as many, unless this process is late. */
	if (sort->participant != NULL)
		nrows *= gpusort_participant_processes(sort->participant);
	return Max(nrows, sort->spec->expected_rows);
}

bool
gpusort_sort_may_write_session(const GsSort *sort)
{
	const GsSortSpec *spec = sort->spec;

	if (!gpusort_sort_spec_can_restart(spec))
		return true;
	/* If a memory sort can drop rows, better read the input again. */
	return !bound_fits_in_memory(spec) &&
		gpusort_shared_runs_allowed(count_session_rows(sort), spec->expected_width);
}

/* Rows go to disk, so the processes cannot sort all of them in memory, or on a GPU. */
static void
begin_runs(GsSort *sort, GsReason reason)
{
	if (sort->participant != NULL)
		gpusort_participant_spill(sort->participant);
	gpusort_cpu_sort_begin_runs(&sort->cpu, reason);
}

void
gpusort_sort_write_memory(GsSort *sort, GsReason reason)
{
	gpusort_sort_show_phase(sort, GS_PHASE_WRITING_RUN);
	begin_runs(sort, reason);
	gpusort_cpu_sort_write_rows(&sort->cpu);
	gpusort_cpu_sort_limit_runs(&sort->cpu);
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
}

/* Memory has refused a row: let its rows, and those that follow, go to disk. */
static void
write_memory(GsSort *sort)
{
	gpusort_sort_write_memory(sort, gpusort_memory_sort_refusal(sort->cpu.rows));
	gpusort_sort_show_phase(sort, GS_PHASE_READING);
}

/* Are the rows on a GPU still there, and better kept, after it has refused a row? */
static bool
keeps_its_rows(const GsSort *sort)
{
	switch (gpusort_gpu_session_failure(sort->gpu.session))
	{
		case GS_REASON_DEVICE_MEMORY:
			return gpusort_sort_may_write_session(sort);
		case GS_REASON_ROW_WIDTH:
		case GS_REASON_ENUM_LABELS:
			return !gpusort_sort_spec_can_restart(sort->spec);
		default:
			return false;
	}
}

/*
 * The GPU takes no more rows of this process.  Those that it does not have become runs, as those
 * that follow will; those that it has, after the last row (sort_finish.c).  Returns false if rows
 * are lost.
 */
static bool
leave_session(GsSort *sort)
{
	GsGpuSession *session = sort->gpu.session;
	TupleTableSlot *slot;

	if (!keeps_its_rows(sort))
		return false;
	begin_runs(sort, gpusort_gpu_session_failure(session));
	slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	while (gpusort_gpu_session_take_rest(session, slot->tts_values, slot->tts_isnull))
		gpusort_cpu_sort_add(&sort->cpu, slot->tts_values, slot->tts_isnull);
	ExecDropSingleTupleTableSlot(slot);
	if (gpusort_gpu_session_failure(session) == GS_REASON_SERVICE_LOST)
		return false;
	gpusort_sort_set_location(sort, GS_ROWS_IN_RUNS);
	return true;
}

bool
gpusort_sort_flush_session(GsSort *sort)
{
	return gpusort_gpu_session_flush(sort->gpu.session) || leave_session(sort);
}

/* ----------------------------------------------------------------
 *		the cutoff
 *
 * This is the last row wanted among those that have arrived so far.  A row that sorts after it can
 * be dropped as soon as its key is known.  For most rows, the first word of the key decides.  The
 * comparators of the sort operators are called only if all words are equal and are not exact.
 * ----------------------------------------------------------------
 */

struct GsCutoff
{
	const GsSortSpec *spec;
	unsigned	words;
	bool		exact;			/* is the encoding of all keys exact? */
	int			first_inexact;	/* number of the sort key */
	AttrNumber	last_attno;		/* highest column among the sort keys */
	bool		null_key;		/* is its first sort key NULL? */
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];

	GsGroupKeys *keys;			/* its sort keys, unless words are exact */
};

/* Create a cutoff, which must be set before it is used, in the current memory context. */
static GsCutoff *
cutoff_create(const GsSortSpec *spec)
{
	GsCutoff   *cutoff = palloc0(sizeof(GsCutoff));

	cutoff->spec = spec;
	cutoff->words = gpusort_key_plan_words(spec->key_plan);
	cutoff->exact = gpusort_key_plan_is_exact(spec->key_plan,
											  &cutoff->first_inexact);
	for (int k = 0; k < spec->keys.nkeys; k++)
		cutoff->last_attno = Max(cutoff->last_attno, spec->keys.attnos[k]);
	if (!cutoff->exact)
		cutoff->keys = gpusort_group_keys_create(spec, spec->keys.nkeys);
	return cutoff;
}

/* Does a row whose words equal those of the cutoff sort before it? */
static bool
comes_before(GsCutoff *cutoff, const TupleTableSlot *slot)
{
	return gpusort_group_keys_compare(cutoff->keys, cutoff->first_inexact, slot->tts_values,
									  slot->tts_isnull) < 0;
}

/*
 * Can a row be dropped, because it sorts after the cutoff?  That includes a row with
 * equal keys, since it arrived later.  Deforms the slot only up to the last sort key.
 */
static pg_noinline bool
cutoff_drops(GsCutoff *cutoff, TupleTableSlot *slot)
{
	const GsKeyPlan *plan = cutoff->spec->key_plan;
	uint64		key[GPUSORT_CPU_MAX_KEY_WORDS];
	bool		null_key;

	slot_getsomeattrs(slot, cutoff->last_attno);
	null_key = !gpusort_key_plan_encode(plan, slot->tts_values, slot->tts_isnull,
										key);
	if (unlikely(null_key != cutoff->null_key))
		return null_key != gpusort_key_plan_nulls_first(plan);
	for (unsigned w = 0; w < cutoff->words; w++)
		if (key[w] != cutoff->key[w])
			return key[w] > cutoff->key[w];
	return cutoff->exact || !comes_before(cutoff, slot);
}

/* ----------------------------------------------------------------
 *		dropping rows beyond the bound
 *
 * In a parallel query, each process drops rows of its own, and then moves the others to memory
 * that all processes share.  Of these, only the first ones are returned (sort_finish.c).
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
	return nrows - bound > nrows / GPUSORT_LEAST_CUT_DIVISOR;
}

/* Set the cutoff to the row in the arrays of a slot, whose sort keys are copied. */
static void
set_cutoff(GsSort *sort, TupleTableSlot *slot)
{
	GsCutoff   *cutoff = sort->cutoff;

	if (cutoff == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(sort->context);

		cutoff = sort->cutoff = cutoff_create(sort->spec);
		MemoryContextSwitchTo(caller);
	}
	if (!cutoff->exact)
		gpusort_group_keys_keep(cutoff->keys, slot->tts_values, slot->tts_isnull);
	cutoff->null_key = !gpusort_key_plan_encode(sort->spec->key_plan, slot->tts_values,
												slot->tts_isnull, cutoff->key);
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

/*
 * Move the rows of a memory sort that are wanted to another one, which is 'shared' after the last
 * row.  It may overflow.
 */
static void
cut(GsSort *sort, bool shared)
{
	if (!gpusort_cpu_sort_sort_rows(&sort->cpu))
	{
		write_memory(sort);
		return;
	}
	keep_first_rows(sort);
	move_rows(sort, shared);
}

void
gpusort_sort_share_rows(GsSort *sort)
{
	if (!has_private_rows(sort))
		return;
	if (may_cut(sort))
		cut(sort, true);
	else
		move_rows(sort, true);
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Add the row in a slot.  Returns false if rows are lost. */
static inline bool
put(GsSort *sort, TupleTableSlot *slot)
{
	if (sort->cutoff != NULL && cutoff_drops(sort->cutoff, slot))
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
	if (sort->location == GS_ROWS_ON_GPU && !leave_session(sort))
		return false;
	if (sort->location == GS_ROWS_IN_MEMORY)
	{
		if (may_cut(sort))
		{
			cut(sort, false);
			return put(sort, slot);
		}
		write_memory(sort);
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
