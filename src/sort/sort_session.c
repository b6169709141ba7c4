/*-------------------------------------------------------------------------
 *
 * sort_session.c
 *		The facade of a sort: rows go in, and come out in order.
 *
 * An input sort (input_sort.h) reads the input and sorts it.  A session adds a
 * cursor over the sorted rows, measures and counts the sort, and repeats it if a
 * GPU is lost together with the rows.
 *
 * Then the input is read again and sorted without a GPU.  If rows have been
 * returned already, this works only if the input comes in the same order as
 * before.  Rows with equal keys then also come out in the same order, and the
 * cursor continues where it was.  An index build instead discards what was
 * returned and starts with the first row again.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "portability/instr_time.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "sort/input_sort.h"
#include "sort/sort_session.h"

struct GsSortSession
{
	const GsSessionSpec *spec;
	MemoryContext context;
	GsInputSort sort;
	bool		sorted;			/* has gpusort_session_sort() succeeded? */
	bool		counted;		/* in statistics? not if part of another sort */

	/* The cursor. */
	int64		position;		/* of the row last returned, from 1; or 0 */
	int64		mark;
	bool		returned;		/* has any row been returned? */

	/* All settings when the input was read, if the rows are on a GPU. */
	char	   *settings;
	Size		settings_bytes;

	instr_time	begin_time;
	double		drain_ms;
	double		sort_ms;
};

/*
 * Called when the session's memory is freed.  If nothing has been sorted, an error
 * is the reason.  Must not use the spec, which may have been on the stack.
 */
static void
session_memory_is_freed(void *arg)
{
	GsSortSession *session = arg;

	if (session->counted && !session->sorted)
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

/* Rows that were sorted, with those that were dropped on the way. */
static int64
rows_of_input(const GsInputSort *sort)
{
	return gpusort_input_sort_count(sort) + gpusort_input_sort_dropped(sort);
}

static void
count_sort(GsSortSession *session)
{
	const GsInputSort *sort = &session->sort;
	GsSessionReport report;
	GsSortCounts counts = {.sorts = 1};

	if (!session->counted)
		return;
	gpusort_session_report(session, &report);
	counts.rows = rows_of_input(sort);
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) ((report.wait_ms + report.sort_ms) * 1000);
	counts.parallel_sorts = gpusort_input_sort_is_parallel(sort);
	counts.page_scans = session->spec->input.by_pages;
	gpusort_stats_count_sort(report.kind, &counts);
}

/* ----------------------------------------------------------------
 *		a second time, after the loss of a GPU
 * ----------------------------------------------------------------
 */

/*
 * The rows of the input may depend on settings, which the user of a cursor can
 * change between two rows.
 */
static char *
serialize_settings(MemoryContext context, Size *bytes)
{
	char	   *settings;

	*bytes = EstimateGUCStateSpace();
	settings = MemoryContextAllocZero(context, *bytes);
	SerializeGUCState(*bytes, settings);
	return settings;
}

/* Will the input come in the same order as before? */
static bool
comes_in_same_order(GsSortSession *session)
{
	Size		bytes;
	char	   *settings = serialize_settings(session->context, &bytes);

	return session->spec->input.repeat == GS_INPUT_SAME_ORDER &&
		bytes == session->settings_bytes &&
		memcmp(settings, session->settings, bytes) == 0;
}

/* The sorted rows were lost with a GPU session: sort them again. */
static void
sort_without_gpu(GsSortSession *session)
{
	MemoryContext caller =
		MemoryContextSwitchTo(MemoryContextGetParent(session->context));

	(void) lap_ms(&session->begin_time);
	gpusort_input_sort_restart(&session->sort);
	if (!gpusort_input_sort_read(&session->sort) ||
		!gpusort_input_sort_finish(&session->sort))
		elog(ERROR, "rows of a sort are lost without a GPU");
	MemoryContextSwitchTo(caller);
	session->sort_ms += lap_ms(&session->begin_time);
	count_sort(session);
}

/*
 * The GPU session was lost with rows that have not been returned yet.  Sort the
 * rows into the same order again, so that the cursor can continue.  Raises an
 * error if the order could differ from that of rows already returned.
 */
static void
recover(GsSortSession *session)
{
	const GsInputSort *sort = &session->sort;
	GsFallback	failure = gpusort_input_sort_loss(sort);
	int64		nrows = gpusort_input_sort_count(sort);

	if (session->returned && !comes_in_same_order(session))
	{
		gpusort_stats_count_fallback(failure);
		gpusort_stats_count_error();
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("could not read the remaining rows of a sort"),
				 errdetail("The reason is \"%s\".",
						   gpusort_fallback_text(failure)),
				 errhint("The query might succeed if retried.")));
	}
	sort_without_gpu(session);
	if (rows_of_input(sort) != nrows)
		elog(ERROR, "input of a sort had " INT64_FORMAT " rows and then "
			 INT64_FORMAT, nrows, rows_of_input(sort));
}

/* ----------------------------------------------------------------
 *		beginning and sorting
 * ----------------------------------------------------------------
 */

GsKeyPlan *
gpusort_session_key_plan(const GsSessionSpec *spec, GsFallback *reason)
{
	bool		gpu = gpusort_gpu_session_check(spec->expected_rows,
												spec->input.repeat) ==
		GS_FALLBACK_NONE;

	return gpusort_key_plan_create(&spec->keys,
								   gpu ? GPUSORT_GPU_STRING_WORDS : 1,
								   reason);
}

GsSortSession *
gpusort_session_begin(const GsSessionSpec *spec)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort session",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));
	GsSortSession *session = palloc0(sizeof(GsSortSession));

	session->spec = spec;
	session->context = context;
	session->counted = !spec->nested;
	callback->func = session_memory_is_freed;
	callback->arg = session;
	MemoryContextRegisterResetCallback(context, callback);
	INSTR_TIME_SET_CURRENT(session->begin_time);
	gpusort_input_sort_begin(&session->sort, spec, context);
	MemoryContextSwitchTo(caller);
	return session;
}

bool
gpusort_session_gpu_handle(GsSortSession *session, bool in_order,
						   GsClientHandle *handle)
{
	return gpusort_input_sort_gpu_handle(&session->sort, in_order, handle);
}

bool
gpusort_session_run_set(GsSortSession *session, int nprocesses, bool in_order,
						GsRunSetHandle *handle)
{
	return gpusort_input_sort_run_set(&session->sort, nprocesses, in_order,
									  handle);
}

void
gpusort_session_put(GsSortSession *session, TupleTableSlot *slot)
{
	if (unlikely(!gpusort_input_sort_put(&session->sort, slot)))
		elog(ERROR, "rows of a sort are lost without a GPU");
}

void
gpusort_session_sort_put(GsSortSession *session)
{
	if (!gpusort_input_sort_rows(&session->sort))
		elog(ERROR, "rows of a sort are lost without a GPU");
}

void
gpusort_session_sort(GsSortSession *session)
{
	GsInputSort *sort = &session->sort;
	bool		complete;

	/* A GPU can be lost once: the second time there is none. */
	do
	{
		complete = gpusort_input_sort_read(sort);
		session->drain_ms += lap_ms(&session->begin_time);
		complete = complete && gpusort_input_sort_finish(sort);
		session->sort_ms += lap_ms(&session->begin_time);
		if (!complete)
			gpusort_input_sort_restart(sort);
	} while (!complete);
	session->sorted = true;
	if (gpusort_input_sort_is_on_gpu(sort))
		session->settings = serialize_settings(session->context,
											   &session->settings_bytes);
	count_sort(session);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

/* Move the cursor; false if it is then before the first or behind the last row. */
static inline bool
move_cursor(GsSortSession *session, bool forward)
{
	if (forward)
	{
		int64		nrows = gpusort_input_sort_count(&session->sort);

		if (session->position >= nrows)
		{
			if (unlikely(gpusort_input_sort_dropped(&session->sort) > 0))
				elog(ERROR, "more rows are asked of a sort than it was to keep");
			session->position = nrows + 1;
			return false;
		}
		session->position++;
		return true;
	}
	if (session->position <= 1)
	{
		session->position = 0;
		return false;
	}
	session->position--;
	return true;
}

/* Clear a virtual slot, which has nothing to free as a rule. */
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

bool
gpusort_session_next(GsSortSession *session, bool forward,
					 TupleTableSlot *slot)
{
	int64		before = session->position;

	clear_slot(slot);
	if (!move_cursor(session, forward))
		return false;
	if (unlikely(!gpusort_input_sort_get(&session->sort,
										 session->position - 1, slot)))
	{
		/* Undo the move: this row is asked for again. */
		session->position = before;
		if (session->spec->index_build)
			return false;
		recover(session);
		return gpusort_session_next(session, forward, slot);
	}
	session->returned = true;
	store_slot(slot);
	return true;
}

bool
gpusort_session_is_lost(const GsSortSession *session)
{
	return gpusort_input_sort_is_lost(&session->sort);
}

void
gpusort_session_sort_again(GsSortSession *session)
{
	sort_without_gpu(session);
	session->position = 0;
}

int64
gpusort_session_count(const GsSortSession *session)
{
	return gpusort_input_sort_count(&session->sort);
}

bool
gpusort_session_is_cut(const GsSortSession *session)
{
	return gpusort_input_sort_dropped(&session->sort) > 0;
}

bool
gpusort_session_can_rewind(const GsSortSession *session)
{
	return session->spec->random_access ||
		!gpusort_input_sort_is_on_disk(&session->sort);
}

void
gpusort_session_mark(GsSortSession *session)
{
	gpusort_input_sort_mark(&session->sort);
	session->mark = session->position;
}

void
gpusort_session_restore(GsSortSession *session)
{
	session->position = session->mark;
}

void
gpusort_session_rescan(GsSortSession *session)
{
	session->position = 0;
	session->mark = 0;
}

/* ----------------------------------------------------------------
 *		reports and end
 * ----------------------------------------------------------------
 */

void
gpusort_session_report(GsSortSession *session, GsSessionReport *report)
{
	gpusort_input_sort_report(&session->sort, report);
	report->drain_ms = session->drain_ms;
	if (report->kind == GS_SESSION_GPU)
		report->wait_ms = Max(session->sort_ms - report->sort_ms, 0);
	else
		report->sort_ms = session->sort_ms;
}

const GsSharedRun *
gpusort_session_shared_run(const GsSortSession *session)
{
	return gpusort_input_sort_shared_run(&session->sort);
}

void
gpusort_session_end(GsSortSession *session)
{
	gpusort_input_sort_end(&session->sort);
	MemoryContextDelete(session->context);
}
