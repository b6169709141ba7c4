/*-------------------------------------------------------------------------
 *
 * sort.c
 *		The facade of a sort: reads an input and returns its rows in order.
 *
 * An input sort (input_sort.h) reads the input and sorts it.  This file adds a
 * cursor over the sorted rows, measures and counts the sort, and repeats it if a
 * GPU is lost together with the rows.
 *
 * Then the input is read again and sorted without a GPU.  If rows have been returned already,
 * or the input cannot be read again, the query ends with an error.  An index build instead
 * discards what was returned and starts with the first row again.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

#include "key/distrust.h"
#include "sort/base/tuple_rows.h"
#include "sort/input_loss.h"
#include "sort/input_overflow.h"
#include "sort/input_report.h"
#include "sort/input_sort.h"
#include "sort/sort.h"

struct GsSort
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsProgress *progress;
	GsInputSort input;
	bool		sorted;			/* has gpusort_sort_perform() succeeded? */
	bool		counted;		/* in statistics? not if part of another sort */

	/* The cursor. */
	int64		position;		/* of the row last returned, from 1; or 0 */
	int64		mark;
	bool		returned;		/* has any row been returned? */

	/* Are the rows in order? */
	GsCheckedRows checked;
	char	   *wrong_encoding; /* no, because of that; or NULL */

	instr_time	begin_time;
	double		drain_ms;
	double		sort_ms;
};

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

/* Returns the milliseconds since *start, and sets *start to now. */
static double
lap_ms(instr_time *start)
{
	instr_time	now;
	instr_time	lap;

	INSTR_TIME_SET_CURRENT(now);
	lap = now;
	INSTR_TIME_SUBTRACT(lap, *start);
	*start = now;
	return INSTR_TIME_GET_MILLISEC(lap);
}

/* Returns the number of rows sorted, including those dropped on the way. */
static int64
rows_of_input(const GsInputSort *input)
{
	return gpusort_input_sort_count(input) + gpusort_input_sort_dropped(input);
}

static void
count_sort(GsSort *sort)
{
	const GsInputSort *input = &sort->input;
	GsSortReport report;
	GsSortCounts counts = {.sorts = 1};

	if (!sort->counted)
		return;
	gpusort_sort_report(sort, &report);
	counts.rows = rows_of_input(input);
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) ((report.wait_ms + report.sort_ms) * 1000);
	counts.parallel_sorts = gpusort_input_sort_is_parallel(input);
	counts.page_scans = sort->spec->input.by_pages;
	gpusort_stats_count_sort(report.kind, &counts);
}

/* ----------------------------------------------------------------
 *		a second time, after the loss of a GPU
 * ----------------------------------------------------------------
 */

/* Raise an error, unless rows that were lost with a GPU session can be read again. */
static void
check_restart(GsSort *sort)
{
	GsFallback	failure;

	if (!sort->returned && sort->spec->input.repeatable)
		return;
	failure = gpusort_input_loss_reason(&sort->input);
	gpusort_stats_count_fallback(failure);
	if (sort->sorted)
		gpusort_stats_count_error();
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 sort->returned ?
			 errmsg("could not read the remaining rows of a sort") :
			 errmsg("could not sort rows that cannot be read a second time"),
			 errdetail("The reason is \"%s\".", gpusort_fallback_text(failure)),
			 errhint("The query might succeed if retried.")));
}

/* The sorted rows were lost with a GPU session: sort them again. */
static void
sort_without_gpu(GsSort *sort)
{
	MemoryContext caller =
		MemoryContextSwitchTo(MemoryContextGetParent(sort->context));

	(void) lap_ms(&sort->begin_time);
	gpusort_input_loss_restart(&sort->input);
	if (!gpusort_input_sort_read(&sort->input) ||
		!gpusort_input_sort_finish(&sort->input))
		elog(ERROR, "rows of a sort are lost without a GPU");
	MemoryContextSwitchTo(caller);
	sort->sort_ms += lap_ms(&sort->begin_time);
	count_sort(sort);
}

/* The GPU session was lost with rows none of which has been returned: sort them again. */
static void
recover(GsSort *sort)
{
	const GsInputSort *input = &sort->input;
	int64		nrows = gpusort_input_sort_count(input);

	check_restart(sort);
	sort_without_gpu(sort);
	if (rows_of_input(input) != nrows)
		elog(ERROR, "input of a sort had " INT64_FORMAT " rows and then "
			 INT64_FORMAT, nrows, rows_of_input(input));
}

/* ----------------------------------------------------------------
 *		beginning and sorting
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
	sort->progress = gpusort_progress_begin(context, spec->index_build ? -1 : spec->plan_node,
											spec->processes - 1, spec->expected_rows);
	callback->func = memory_is_freed;
	callback->arg = sort;
	MemoryContextRegisterResetCallback(context, callback);
	INSTR_TIME_SET_CURRENT(sort->begin_time);
	gpusort_input_sort_begin(&sort->input, spec, sort->progress, context);
	MemoryContextSwitchTo(caller);
	return sort;
}

bool
gpusort_sort_gpu_handle(GsSort *sort, GsClientHandle *handle)
{
	return gpusort_input_sort_gpu_handle(&sort->input, handle);
}

bool
gpusort_sort_run_set(GsSort *sort, int nprocesses, bool ahead,
					 GsRunSetHandle *handle)
{
	return gpusort_input_sort_run_set(&sort->input, nprocesses, ahead, handle);
}

GsSharedSort *
gpusort_sort_shared(const GsSort *sort)
{
	return gpusort_input_sort_shared(&sort->input);
}

void
gpusort_sort_stop(GsSort *sort)
{
	gpusort_input_sort_stop(&sort->input);
}

bool
gpusort_sort_allow_overflow(GsSort *sort, int nprocesses, bool ahead,
							GsRunSetHandle *handle)
{
	return gpusort_input_sort_allow_overflow(&sort->input, nprocesses, ahead, handle);
}

bool
gpusort_sort_overflow(GsSort *sort)
{
	return gpusort_input_overflow_write_session(&sort->input);
}

void
gpusort_sort_leave(GsSort *sort)
{
	gpusort_input_sort_leave(&sort->input);
}

bool
gpusort_sort_attach(GsSort *sort)
{
	return gpusort_input_sort_attach(&sort->input);
}

bool
gpusort_sort_put(GsSort *sort, TupleTableSlot *slot)
{
	gpusort_input_sort_show_rows(&sort->input, sort->progress->rows_read + 1);
	return gpusort_input_sort_add(&sort->input, slot);
}

bool
gpusort_sort_end_put(GsSort *sort, bool *ahead)
{
	bool		kept;

	sort->drain_ms += lap_ms(&sort->begin_time);
	kept = gpusort_input_sort_rows_ahead(&sort->input, ahead);
	sort->sort_ms += lap_ms(&sort->begin_time);
	return kept;
}

void
gpusort_sort_give_up(GsSort *sort)
{
	gpusort_input_sort_give_up(&sort->input);
}

GsFallback
gpusort_sort_loss(const GsSort *sort)
{
	return gpusort_input_loss_reason(&sort->input);
}

/* Have the check look at the next place where rows of different origin meet. */
static void
aim_check(GsSort *sort)
{
	int64		joint = gpusort_input_sort_next_joint(&sort->input);

	/* The row with that number is at a position counted from 1. */
	if (joint > 0)
		gpusort_checked_rows_aim(&sort->checked, joint + 1 - sort->position);
}

/* Read the input and sort it.  Returns false if rows are lost. */
static bool
try_sort(GsSort *sort)
{
	GsInputSort *input = &sort->input;
	bool		complete = gpusort_input_sort_read(input);

	sort->drain_ms += lap_ms(&sort->begin_time);
	complete = complete && gpusort_input_sort_finish(input);
	sort->sort_ms += lap_ms(&sort->begin_time);
	return complete;
}

/* Begin to check the order of the rows that will be returned. */
static void
begin_check(GsSort *sort)
{
	const GsSortSpec *spec = sort->spec;
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	gpusort_checked_rows_begin(&sort->checked, spec->check, spec->tupdesc,
							   spec->tuple_attno > 0,
							   gpusort_input_sort_has_lasting_rows(&sort->input));
	MemoryContextSwitchTo(caller);

	/* A worker, which returns no rows, checks none. */
	if (sort->checked.check != NULL)
		aim_check(sort);
}

bool
gpusort_sort_perform_once(GsSort *sort)
{
	sort->sorted = try_sort(sort);
	return sort->sorted;
}

void
gpusort_sort_perform(GsSort *sort)
{
	GsInputSort *input = &sort->input;

	/*
	 * A GPU can be lost only once, because the second attempt does not use
	 * one.
	 */
	while (!try_sort(sort))
	{
		check_restart(sort);
		gpusort_input_loss_restart(input);
	}
	sort->sorted = true;
	begin_check(sort);
	count_sort(sort);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

/* Move the cursor.  Returns false if it is then before the first or after the last row. */
static inline bool
move_cursor(GsSort *sort, bool forward)
{
	if (forward)
	{
		int64		nrows = gpusort_input_sort_count(&sort->input);

		if (sort->position >= nrows)
		{
			if (unlikely(gpusort_input_sort_dropped(&sort->input) > 0))
				elog(ERROR, "more rows are asked of a sort than it was to keep");
			sort->position = nrows + 1;
			return false;
		}
		sort->position++;
		return true;
	}
	if (sort->position <= 1)
	{
		sort->position = 0;
		return false;
	}
	sort->position--;
	return true;
}

/* Clear a virtual slot, which usually has nothing to free. */
static inline void
clear_slot(TupleTableSlot *slot)
{
	if (unlikely(TTS_SHOULDFREE(slot)))
		ExecClearTuple(slot);
	slot->tts_flags |= TTS_FLAG_EMPTY;
	slot->tts_nvalid = 0;
}

/* Store what was written into the slot's arrays. */
static inline void
store_slot(TupleTableSlot *slot)
{
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
}

/* Compare a row with the one before it, or keep it for the row after it. */
static bool
compare_row(GsSort *sort, TupleTableSlot *slot)
{
	bool		in_order;

	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	in_order = gpusort_checked_rows_compare(&sort->checked, slot->tts_values,
											slot->tts_isnull);
	aim_check(sort);
	return in_order;
}

/* Is the row that is returned in order, as far as that is checked? */
static inline bool
is_in_order(GsSort *sort, bool forward, TupleTableSlot *slot)
{
	GsCheckedRows *checked = &sort->checked;

	if (unlikely(!forward))
	{
		gpusort_checked_rows_forget(checked);
		return true;
	}
	if (checked->quick &&
		likely(gpusort_checked_rows_quick(checked, slot->tts_values, slot->tts_isnull)))
		return gpusort_checked_rows_skip(checked) || compare_row(sort, slot);
	if (checked->check == NULL)
		return true;
	if (checked->shared != GS_COMPARE_OTHERWISE &&
		unlikely(!gpusort_checked_rows_first(checked, slot->tts_values, slot->tts_isnull)))
		return false;
	return gpusort_checked_rows_skip(checked) || compare_row(sort, slot);
}

/*
 * A row is not in order.  The result of a query is wrong, and some of it may have been used
 * already; but an index build can start over.
 */
static void
report_wrong_order(GsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	sort->wrong_encoding = gpusort_checked_rows_distrust(&sort->checked);
	MemoryContextSwitchTo(caller);
	if (sort->spec->index_build)
		return;
	gpusort_stats_count_fallback(GS_FALLBACK_WRONG_ORDER);
	gpusort_stats_count_error();
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("sorted rows are not in order"),
			 errdetail("They were sorted by type %s.", sort->wrong_encoding),
			 errhint("Run the query again. PostgreSQL itself sorts by this type until the %s.",
					 gpusort_distrust_is_shared() ? "server restarts" : "session ends")));
}

bool
gpusort_sort_next(GsSort *sort, bool forward,
				  TupleTableSlot *slot)
{
	int64		before = sort->position;

	clear_slot(slot);
	if (!move_cursor(sort, forward))
		return false;
	if (unlikely(!gpusort_input_sort_get(&sort->input,
										 sort->position - 1, slot)))
	{
		/* Undo the move: this row is asked for again. */
		sort->position = before;
		if (sort->spec->index_build)
			return false;
		recover(sort);
		return gpusort_sort_next(sort, forward, slot);
	}
	if (unlikely(!is_in_order(sort, forward, slot)))
	{
		report_wrong_order(sort);
		return false;
	}
	sort->returned = true;
	sort->progress->rows_returned = sort->position;
	store_slot(slot);
	return true;
}

bool
gpusort_sort_check_in_place(GsSort *sort, const Datum *values, const bool *isnull)
{
	if (sort->checked.check == NULL ||
		likely(gpusort_checked_rows_add(&sort->checked, values, isnull)))
		return true;
	report_wrong_order(sort);
	return false;
}

const char *
gpusort_sort_wrong_encoding(const GsSort *sort)
{
	return sort->wrong_encoding;
}

bool
gpusort_sort_in_place(GsSort *sort, GsRowsInPlace *rows)
{
	return sort->position < gpusort_input_sort_count(&sort->input) &&
		gpusort_input_sort_in_place(&sort->input, sort->position, rows);
}

void
gpusort_sort_lend(GsSort *sort, GsRecallRows recall, void *arg)
{
	gpusort_input_sort_lend(&sort->input, recall, arg);
}

void
gpusort_sort_skip(GsSort *sort, uint32 n)
{
	sort->position += n;
	sort->returned = true;
	sort->progress->rows_returned = sort->position;
}

bool
gpusort_sort_is_lost(const GsSort *sort)
{
	return gpusort_input_sort_is_lost(&sort->input);
}

void
gpusort_sort_perform_again(GsSort *sort)
{
	sort_without_gpu(sort);
	sort->position = 0;
	begin_check(sort);
}

int64
gpusort_sort_count(const GsSort *sort)
{
	return gpusort_input_sort_count(&sort->input);
}

bool
gpusort_sort_is_cut(const GsSort *sort)
{
	return gpusort_input_sort_dropped(&sort->input) > 0;
}

bool
gpusort_sort_can_rewind(const GsSort *sort)
{
	return sort->spec->random_access ||
		!gpusort_input_sort_is_on_disk(&sort->input);
}

void
gpusort_sort_mark(GsSort *sort)
{
	gpusort_input_sort_mark(&sort->input);
	sort->mark = sort->position;
}

void
gpusort_sort_restore(GsSort *sort)
{
	sort->position = sort->mark;
	gpusort_input_sort_restore(&sort->input, sort->position);
	gpusort_checked_rows_forget(&sort->checked);
}

void
gpusort_sort_rescan(GsSort *sort)
{
	sort->position = 0;
	sort->mark = 0;
	gpusort_checked_rows_forget(&sort->checked);
}

/* ----------------------------------------------------------------
 *		reports and end
 * ----------------------------------------------------------------
 */

void
gpusort_sort_report(GsSort *sort, GsSortReport *report)
{
	gpusort_input_report_fill(&sort->input, report);
	report->drain_ms = sort->drain_ms;
	if (report->kind == GS_KIND_GPU)
		report->wait_ms = Max(sort->sort_ms - report->sort_ms, 0);
	else
		report->sort_ms = sort->sort_ms;
}

const GsSharedRun *
gpusort_sort_shared_run(const GsSort *sort)
{
	return gpusort_input_sort_shared_run(&sort->input);
}

void
gpusort_sort_end(GsSort *sort)
{
	gpusort_input_sort_end(&sort->input);
	MemoryContextDelete(sort->context);
}
