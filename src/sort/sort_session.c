/*-------------------------------------------------------------------------
 *
 * sort_session.c
 *		The facade of a sort: rows go in, and come out in order.
 *
 * Rows are held by a GPU session or by a CPU session, the holder.  When the
 * next one does not fit, the sort overflows: the holder's rows are written to
 * disk as a sorted run, and so are the rows that follow, batch by batch, either
 * by new GPU sessions or, as there is a GPU no more, by a run builder.  The
 * runs are merged in the end.
 *
 * A GPU session can be lost with its rows.  Then the input is read again, and
 * sorted without a GPU.  If rows were returned already, that is possible only
 * if the input comes in the same order as before, since then rows with equal
 * keys come out in the same order: the cursor goes on where it was.  Or the caller
 * does without the rows that were returned, and begins with the first one again.
 *
 * Other processes can add rows, either to the GPU session, or without one as
 * runs, each of which they have sorted in a session of their own.  Those are
 * merged with the rows that are here.
 *
 * For pg_gpusort.debug_stock_ties, a CPU session holds the rows beside a GPU
 * session.  Both must have them in the same order, bit for bit; the rows are
 * then returned from the CPU session.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "settings.h"
#include "sort/budget.h"
#include "sort/cpu_session.h"
#include "sort/external_sort.h"
#include "sort/gpu_runs.h"
#include "sort/gpu_session.h"
#include "sort/run_builder.h"
#include "sort/shared_run.h"
#include "sort/sort_session.h"
#include "sort/sorted_run.h"

struct GsSortSession
{
	const GsSessionSpec *spec;
	MemoryContext context;
	bool		sorted;

	/*
	 * The holder: a GPU or a CPU session of the rows, or a GPU session of a
	 * batch; both with stock_ties; none if a builder takes the rows.
	 */
	bool		stock_ties;		/* pg_gpusort.debug_stock_ties at the start */
	MemoryContext holder_context;
	GsGpuSession *gpu;
	GsGpuRuns  *runs;			/* reads 'gpu' once it is sorted, if need be */
	GsBudget   *budget;
	GsCpuSession *cpu;

	/* After an overflow. */
	GsExternalSort *external;
	GsRunBuilder *builder;		/* of the rows that come without a GPU */
	GsFallback	overflow;		/* why, or GS_FALLBACK_NONE */

	/* The cursor. */
	int64		nrows;
	int64		position;		/* row last returned, from 1; 0: before all */
	int64		mark;
	bool		returned;		/* has any row been returned? */
	bool		lost;			/* see gpusort_session_is_lost() */

	bool		fed_by_others;	/* have others been given the GPU session? */
	GsRunSet   *run_set;		/* to which others write runs, or NULL */
	int			nimported;		/* runs of others */
	bool		rows_sorted;	/* have all rows of this process been? */
	GsSharedRun shared_run;		/* with spec->target: what has been written */
	GsFallback	gpu_reason;		/* why the GPU is not used, or no more */
	GsFallback	input_failure;	/* see GsInput.failure */

	/* All settings when the input was read, if a GPU session has the rows. */
	char	   *settings;
	Size		settings_bytes;

	instr_time	begin_time;
	double		drain_ms;
	double		sort_ms;
};

/* Called when the session's memory goes: an error did it if nothing was sorted. */
static void
session_memory_is_freed(void *arg)
{
	GsSortSession *session = arg;

	if (!session->sorted && !session->spec->nested)
		gpusort_stats_count_error();
}

/* Milliseconds since *start, which becomes now. */
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

static void
count_sort(GsSortSession *session)
{
	GsSessionReport report;
	GsSortCounts counts = {.sorts = 1};

	if (session->spec->nested)
		return;
	gpusort_session_report(session, &report);
	counts.rows = session->nrows;
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) ((report.wait_ms + report.sort_ms) * 1000);
	counts.parallel_sorts = session->nimported > 0 ||
		(session->gpu != NULL && session->fed_by_others);
	counts.page_scans = session->spec->input.by_pages;
	gpusort_stats_count_sort(report.kind, &counts);
}

/* ----------------------------------------------------------------
 *		holders
 * ----------------------------------------------------------------
 */

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

/* The memory that the sort may use, in bytes. */
static Size
memory_limit(const GsSortSession *session)
{
	if (session->spec->memory > 0)
		return session->spec->memory;
	return (Size) gpusort_settings_work_mem() * 1024;
}

/* Begin a holder, or after an overflow, if there is no GPU, a builder. */
static void
begin_holder(GsSortSession *session)
{
	MemoryContext caller;

	session->holder_context = AllocSetContextCreate(session->context,
													"pg_gpusort rows",
													ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(session->holder_context);
	if (session->gpu_reason == GS_FALLBACK_NONE && !session->spec->nested)
	{
		session->gpu = gpusort_gpu_session_create(session->spec,
												  &session->gpu_reason);
		if (is_want_of_gpu(session->gpu_reason))
			gpusort_stats_count_fallback(session->gpu_reason);
	}
	if (session->gpu == NULL && session->external != NULL)
		session->builder = gpusort_run_builder_begin(session->spec,
													 session->external,
													 memory_limit(session), true);
	else if (session->gpu == NULL || session->stock_ties)
	{
		session->budget = gpusort_budget_create(memory_limit(session));
		session->cpu = gpusort_cpu_session_create(session->spec,
												  session->budget);
	}
	MemoryContextSwitchTo(caller);
}

static void
end_holder(GsSortSession *session)
{
	if (session->runs != NULL)
		gpusort_gpu_runs_end(session->runs);
	if (session->holder_context != NULL)
		MemoryContextDelete(session->holder_context);
	session->holder_context = NULL;
	session->gpu = NULL;
	session->runs = NULL;
	session->budget = NULL;
	session->cpu = NULL;
	session->builder = NULL;
}

/* Add a row to the holder; false if there is none or it is not possible. */
static inline bool
keep_row(GsSortSession *session, TupleTableSlot *slot)
{
	if (session->gpu != NULL)
	{
		if (!gpusort_gpu_session_put(session->gpu, slot->tts_values,
									 slot->tts_isnull))
			return false;
		if (likely(session->cpu == NULL))
			return true;
	}
	return session->cpu != NULL &&
		gpusort_cpu_session_put(session->cpu, slot->tts_values,
								slot->tts_isnull);
}

static int64
holder_count(const GsSortSession *session)
{
	return session->cpu != NULL ? gpusort_cpu_session_count(session->cpu) :
		gpusort_gpu_session_count(session->gpu);
}

/* Read a row of a sorted GPU session; false if its rows are lost. */
static inline bool
get_gpu_row(GsSortSession *session, int64 index, Datum *values, bool *isnull)
{
	if (unlikely(session->runs != NULL))
		return gpusort_gpu_runs_get(session->runs, index, values, isnull);
	return gpusort_gpu_session_get(session->gpu, index, values, isnull);
}

/* Read a row of the sorted holder; false if its rows are lost. */
static inline bool
get_held_row(GsSortSession *session, int64 index, TupleTableSlot *slot)
{
	if (session->cpu == NULL)
		return get_gpu_row(session, index, slot->tts_values, slot->tts_isnull);
	gpusort_cpu_session_get(session->cpu, index, slot->tts_values,
							slot->tts_isnull);
	return true;
}

/* Is a row the same bit for bit as that in 'slot'? */
static bool
is_same_row(TupleTableSlot *slot, const Datum *values, const bool *isnull)
{
	TupleDesc	tupdesc = slot->tts_tupleDescriptor;

	for (int i = 0; i < tupdesc->natts; i++)
	{
		if (isnull[i] != slot->tts_isnull[i])
			return false;
		if (!isnull[i] &&
			!datum_image_eq(values[i], slot->tts_values[i],
							TupleDescAttr(tupdesc, i)->attbyval,
							TupleDescAttr(tupdesc, i)->attlen))
			return false;
	}
	return true;
}

/* Compare both holders' rows; false if those of the GPU session are lost. */
static bool
compare_holders(GsSortSession *session)
{
	TupleDesc	tupdesc = session->spec->tupdesc;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsVirtual);
	Datum	   *values = palloc(tupdesc->natts * sizeof(Datum));
	bool	   *isnull = palloc(tupdesc->natts * sizeof(bool));
	int64		nrows = gpusort_cpu_session_count(session->cpu);
	int64		index = 0;

	if (gpusort_gpu_session_count(session->gpu) != nrows)
		elog(ERROR, "a GPU sorted " INT64_FORMAT " of " INT64_FORMAT " rows",
			 gpusort_gpu_session_count(session->gpu), nrows);
	while (index < nrows && get_gpu_row(session, index, values, isnull))
	{
		(void) get_held_row(session, index, slot);
		if (!is_same_row(slot, values, isnull))
			elog(ERROR, "GPU and CPU differ in sorted row " INT64_FORMAT,
				 index);
		index++;
	}
	ExecDropSingleTupleTableSlot(slot);
	return index == nrows;
}

/* For stock_ties: may the rows be returned? */
static bool
check_holder(GsSortSession *session)
{
	if (session->gpu != NULL && !compare_holders(session))
		return false;
	gpusort_cpu_session_apply_stock_ties(session->cpu);
	return true;
}

/* Sort the holder's rows; false if that is not possible. */
static bool
sort_holder(GsSortSession *session)
{
	MemoryContext caller = MemoryContextSwitchTo(session->holder_context);
	bool		sorted;

	if (session->gpu != NULL)
		session->runs = gpusort_gpu_runs_create(session->spec, session->gpu);
	sorted = (session->gpu == NULL || gpusort_gpu_session_sort(session->gpu)) &&
		(session->cpu == NULL || gpusort_cpu_session_sort(session->cpu)) &&
		(!session->stock_ties || session->external != NULL ||
		 check_holder(session));
	MemoryContextSwitchTo(caller);
	return sorted;
}

/* ----------------------------------------------------------------
 *		overflow
 * ----------------------------------------------------------------
 */

/* The rows do not fit into the holder's memory: count why, and begin. */
static void
begin_overflow(GsSortSession *session, GsFallback reason)
{
	MemoryContext caller = MemoryContextSwitchTo(session->context);

	if (reason == GS_FALLBACK_WORK_MEM && session->spec->index_build)
		reason = GS_FALLBACK_MAINTENANCE_MEM;
	session->overflow = reason;
	/* The leader counts what becomes of its whole sort. */
	if (session->spec->target == NULL)
		gpusort_stats_count_fallback(reason);
	session->external = gpusort_external_begin(session->spec, memory_limit(session));
	MemoryContextSwitchTo(caller);
}

/* Write the rows that a GPU had no memory for. */
static void
write_rest(GsSortSession *session, TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(session->holder_context);
	GsRunBuilder *builder = gpusort_run_builder_begin(session->spec,
													  session->external,
													  memory_limit(session), false);

	while (gpusort_gpu_session_take_rest(session->gpu, slot->tts_values,
										 slot->tts_isnull))
		gpusort_run_builder_put(builder, slot->tts_values, slot->tts_isnull);
	gpusort_run_builder_end(builder);
	MemoryContextSwitchTo(caller);
}

/* Write the rows of a sorted GPU session; false if they are lost. */
static bool
write_gpu_rows(GsSortSession *session)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(session->spec->tupdesc,
													&TTSOpsVirtual);
	int64		nrows = gpusort_gpu_session_count(session->gpu);
	int			place = gpusort_external_runs(session->external);
	int64		index = 0;

	/* The last ones first: they lie in chunks of the pool that are needed. */
	write_rest(session, slot);
	gpusort_external_begin_run(session->external);
	while (index < nrows && get_gpu_row(session, index, slot->tts_values,
										slot->tts_isnull))
	{
		gpusort_external_put(session->external, slot->tts_values,
							 slot->tts_isnull);
		index++;
	}
	gpusort_external_end_run(session->external, place);
	ExecDropSingleTupleTableSlot(slot);
	return index == nrows;
}

/* Write the holder's rows and end it; false if they are lost. */
static bool
write_holder(GsSortSession *session)
{
	if (session->gpu == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(session->holder_context);

		gpusort_run_builder_write(session->spec, session->external,
								  session->cpu, memory_limit(session));
		MemoryContextSwitchTo(caller);
	}
	else if (!sort_holder(session) || !write_gpu_rows(session))
		return false;
	end_holder(session);
	gpusort_external_limit_runs(session->external);
	return true;
}

static GsFallback
holder_refusal(const GsSortSession *session)
{
	return session->gpu != NULL ? gpusort_gpu_session_failure(session->gpu) :
		gpusort_cpu_session_refusal(session->cpu);
}

/*
 * The holder takes no more rows: write them, and begin another one, or a
 * builder.  Returns false if they are lost.
 */
static bool
overflow(GsSortSession *session)
{
	if (session->external == NULL)
		begin_overflow(session, holder_refusal(session));
	if (!write_holder(session))
		return false;
	begin_holder(session);
	return true;
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Does the holder's refusal leave its rows where they are? */
static bool
keeps_its_rows(const GsSortSession *session)
{
	if (session->gpu == NULL)
		return true;
	/* Others might still be adding rows. */
	return !session->stock_ties && !session->fed_by_others &&
		gpusort_gpu_session_failure(session->gpu) == GS_FALLBACK_DEVICE_MEMORY;
}

/* Find a place for a row that no holder takes; false if rows are lost. */
static bool
put_elsewhere(GsSortSession *session, TupleTableSlot *slot)
{
	if (session->builder == NULL)
	{
		if (!keeps_its_rows(session) || !overflow(session))
			return false;
		if (session->builder == NULL)
			return keep_row(session, slot);
	}
	gpusort_run_builder_put(session->builder, slot->tts_values,
							slot->tts_isnull);
	return true;
}

/* Have other processes added what they were to add? */
static bool
input_is_complete(GsSortSession *session)
{
	const GsInput *input = &session->spec->input;

	if (session->gpu != NULL && input->failure != NULL)
		session->input_failure = input->failure(input->arg);
	return session->input_failure == GS_FALLBACK_NONE;
}

/*
 * For stock_ties: other processes have put all rows into the GPU session, which
 * the CPU session has to have, too.  Read them again; false if that is not
 * possible.
 */
static bool
read_for_ties(GsSortSession *session)
{
	const GsInput *input = &session->spec->input;
	TupleTableSlot *slot;

	input->rewind(input->arg);
	while (slot = input->next(input->arg), !TupIsNull(slot))
	{
		slot_getallattrs(slot);
		if (!gpusort_cpu_session_put(session->cpu, slot->tts_values,
									 slot->tts_isnull))
			return false;
	}
	return true;
}

/* Read the input; false if rows are lost. */
static bool
drain(GsSortSession *session)
{
	const GsInput *input = &session->spec->input;

	for (;;)
	{
		TupleTableSlot *slot = input->next(input->arg);

		if (TupIsNull(slot))
			return input_is_complete(session);
		slot_getallattrs(slot);
		if (!keep_row(session, slot) && !put_elsewhere(session, slot))
			return false;
	}
}

/*
 * All rows of this process are in: sort them in memory, or have them in sorted
 * runs; false if they are lost.
 */
static bool
sort_rows(GsSortSession *session)
{
	if (session->builder != NULL)
	{
		gpusort_run_builder_end(session->builder);
		end_holder(session);
	}
	else if (session->external != NULL)
	{
		if (!write_holder(session))
			return false;
	}
	else if (!sort_holder(session))
	{
		if (session->gpu != NULL)
			return false;
		begin_overflow(session, GS_FALLBACK_OUT_OF_MEMORY);
		(void) write_holder(session);
	}
	else if (session->gpu != NULL && gpusort_gpu_session_has_rest(session->gpu))
	{
		if (session->stock_ties)
			return false;
		begin_overflow(session, GS_FALLBACK_DEVICE_MEMORY);
		if (!write_gpu_rows(session))
			return false;
		end_holder(session);
	}
	session->rows_sorted = true;
	return true;
}

/* Add a run of another process to those there are, or to the rows in memory. */
static void
import_run(GsSortSession *session, const GsSharedRun *run)
{
	if (session->external == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(session->context);

		session->external = gpusort_external_begin(session->spec,
												   memory_limit(session));
		if (gpusort_cpu_session_count(session->cpu) > 0)
			gpusort_external_hold(session->external, session->cpu);
		MemoryContextSwitchTo(caller);
	}
	gpusort_external_import(session->external, session->run_set, run);
	session->nimported++;
	if (run->overflow != GS_FALLBACK_NONE &&
		session->overflow == GS_FALLBACK_NONE)
	{
		session->overflow = run->overflow;
		gpusort_stats_count_fallback(run->overflow);
	}
}

/* Add the rows that other processes have sorted. */
static void
import_runs(GsSortSession *session)
{
	const GsInput *input = &session->spec->input;
	const GsSharedRun *run;

	for (int n = 0; (run = input->run(input->arg, n)) != NULL; n++)
		if (run->nrows > 0)
			import_run(session, run);
}

/* Write the sorted rows as the run that another process will read. */
static void
share_rows(GsSortSession *session)
{
	GsExternalSort *external = session->external;
	MemoryContext caller;

	session->shared_run.overflow = session->overflow;
	if (external != NULL)
		gpusort_external_share(external, &session->shared_run);
	else if (gpusort_cpu_session_count(session->cpu) > 0)
	{
		caller = MemoryContextSwitchTo(session->context);
		external = gpusort_external_begin(session->spec, memory_limit(session));
		gpusort_run_builder_put_sorted(external, session->cpu);
		gpusort_external_share_run(external, &session->shared_run);
		gpusort_external_end(external);
		MemoryContextSwitchTo(caller);
	}
	session->nrows = session->shared_run.nrows;
}

/* All rows are in: have them in order; false if rows are lost. */
static bool
finish(GsSortSession *session)
{
	if (!session->rows_sorted && !sort_rows(session))
		return false;
	if (session->spec->target != NULL)
	{
		share_rows(session);
		return true;
	}
	if (session->run_set != NULL)
		import_runs(session);
	if (session->external != NULL)
	{
		gpusort_external_perform(session->external);
		session->nrows = gpusort_external_count(session->external);
	}
	else
		session->nrows = holder_count(session);
	return true;
}

/* ----------------------------------------------------------------
 *		a second time, after the loss of a GPU
 * ----------------------------------------------------------------
 */

static void
forget_rows(GsSortSession *session)
{
	session->gpu_reason = gpusort_gpu_session_failure(session->gpu);
	if (session->gpu_reason == GS_FALLBACK_NONE)
		session->gpu_reason = session->input_failure;
	if (session->gpu_reason == GS_FALLBACK_NONE)
		session->gpu_reason = GS_FALLBACK_STOCK_TIES;
	session->input_failure = GS_FALLBACK_NONE;
	gpusort_stats_count_fallback(session->gpu_reason);
	end_holder(session);
	if (session->external != NULL)
		gpusort_external_end(session->external);
	session->external = NULL;
	session->overflow = GS_FALLBACK_NONE;
	session->rows_sorted = false;
}

/* The GPU session is lost: prepare to read the input again. */
static void
start_again(GsSortSession *session)
{
	const GsInput *input = &session->spec->input;

	/* This ends those who add rows to the GPU session, and need it for that. */
	input->rewind(input->arg);
	forget_rows(session);
	begin_holder(session);
}

/*
 * What the input gives may depend on settings, which the user of a cursor can
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

/* The GPU session is lost with sorted rows: sort them once more. */
static void
sort_without_gpu(GsSortSession *session)
{
	MemoryContext caller =
		MemoryContextSwitchTo(MemoryContextGetParent(session->context));

	(void) lap_ms(&session->begin_time);
	start_again(session);
	if (!drain(session) || !finish(session))
		elog(ERROR, "rows of a sort are lost without a GPU");
	MemoryContextSwitchTo(caller);
	session->sort_ms += lap_ms(&session->begin_time);
	count_sort(session);
}

/*
 * The GPU session is lost with rows that were not returned yet: have the rows
 * in the same order again, and the cursor where it was.
 */
static void
recover(GsSortSession *session)
{
	GsFallback	failure = gpusort_gpu_session_failure(session->gpu);
	int64		nrows = session->nrows;

	if (session->returned && !comes_in_same_order(session))
	{
		gpusort_stats_count_fallback(failure);
		gpusort_stats_count_error();
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("the rest of a sort's rows is lost"),
				 errdetail("Reason: %s.", gpusort_fallback_text(failure)),
				 errhint("The query can be run again.")));
	}
	sort_without_gpu(session);
	if (session->nrows != nrows)
		elog(ERROR, "input of a sort had " INT64_FORMAT " rows and then "
			 INT64_FORMAT, nrows, session->nrows);
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
	session->stock_ties = gpusort_debug_stock_ties && !spec->index_build &&
		(!spec->nested || spec->target != NULL);
	callback->func = session_memory_is_freed;
	callback->arg = session;
	MemoryContextRegisterResetCallback(context, callback);
	INSTR_TIME_SET_CURRENT(session->begin_time);
	begin_holder(session);
	MemoryContextSwitchTo(caller);
	return session;
}

bool
gpusort_session_gpu_handle(GsSortSession *session, bool in_order,
						   GsClientHandle *handle)
{
	if (session->gpu == NULL || (session->stock_ties && !in_order))
		return false;

	/* The plan was made for the CPU, and a GPU has become available since. */
	if (gpusort_key_plan_string_words(session->spec->key_plan) !=
		GPUSORT_GPU_STRING_WORDS)
		return false;
	session->fed_by_others = true;
	*handle = gpusort_gpu_session_handle(session->gpu);
	return true;
}

bool
gpusort_session_run_set(GsSortSession *session, int nprocesses, bool in_order,
						GsRunSetHandle *handle)
{
	MemoryContext caller;

	if (session->gpu != NULL || (session->stock_ties && !in_order) ||
		!gpusort_shared_runs_allowed(session->spec->expected_rows,
									 session->spec->expected_width))
		return false;
	caller = MemoryContextSwitchTo(session->context);
	session->run_set = gpusort_run_set_create();
	*handle = gpusort_run_set_handle(session->run_set);
	MemoryContextSwitchTo(caller);

	/* Their runs will be read beside the rows that are here. */
	(void) gpusort_budget_reserve(session->budget, nprocesses *
								  gpusort_run_file_reader_bytes(memory_limit(session)));
	return true;
}

void
gpusort_session_put(GsSortSession *session, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	if (unlikely(!keep_row(session, slot)) && !put_elsewhere(session, slot))
		elog(ERROR, "rows of a sort are lost without a GPU");
}

void
gpusort_session_sort_put(GsSortSession *session)
{
	if (!sort_rows(session))
		elog(ERROR, "rows of a sort are lost without a GPU");
}

void
gpusort_session_sort(GsSortSession *session)
{
	bool		complete;

	/* A GPU can be lost once: the second time there is none. */
	do
	{
		complete = drain(session);
		if (complete && session->stock_ties && session->fed_by_others &&
			session->gpu != NULL)
			complete = read_for_ties(session);
		session->drain_ms += lap_ms(&session->begin_time);
		complete = complete && finish(session);
		session->sort_ms += lap_ms(&session->begin_time);
		if (!complete)
			start_again(session);
	} while (!complete);
	session->sorted = true;
	if (session->gpu != NULL)
		session->settings = serialize_settings(session->context,
											   &session->settings_bytes);
	count_sort(session);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

/* Move the cursor; false if it then stands before or behind all rows. */
static inline bool
move_cursor(GsSortSession *session, bool forward)
{
	if (forward)
	{
		if (session->position >= session->nrows)
		{
			session->position = session->nrows + 1;
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

/* Read a sorted row; false if the rows are lost. */
static inline bool
get_row(GsSortSession *session, int64 index, TupleTableSlot *slot)
{
	if (session->external == NULL)
		return get_held_row(session, index, slot);
	gpusort_external_get(session->external, index, slot->tts_values,
						 slot->tts_isnull);
	return true;
}

bool
gpusort_session_next(GsSortSession *session, bool forward,
					 TupleTableSlot *slot)
{
	int64		before = session->position;

	clear_slot(slot);
	if (!move_cursor(session, forward))
		return false;
	if (unlikely(!get_row(session, session->position - 1, slot)))
	{
		/* As if it had never been asked for. */
		session->position = before;
		if (session->spec->index_build)
		{
			session->lost = true;
			return false;
		}
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
	return session->lost;
}

void
gpusort_session_sort_again(GsSortSession *session)
{
	sort_without_gpu(session);
	session->lost = false;
	session->position = 0;
}

int64
gpusort_session_count(const GsSortSession *session)
{
	return session->nrows;
}

bool
gpusort_session_can_rewind(const GsSortSession *session)
{
	return session->spec->random_access || session->external == NULL;
}

void
gpusort_session_mark(GsSortSession *session)
{
	if (session->external != NULL)
		gpusort_external_mark(session->external);
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

static void
report_external(GsSortSession *session, GsSessionReport *report)
{
	/* Runs of processes that all sorted in memory are no overflow. */
	bool		memory = session->overflow == GS_FALLBACK_NONE;

	report->kind = memory ? GS_SESSION_CPU : GS_SESSION_EXTERNAL;
	report->space = GS_SPACE_DISK;
	report->space_kb = gpusort_external_kb(session->external);
	strlcpy(report->method, memory ? "cpu radix, merged" :
			gpusort_external_method(session->external),
			sizeof(report->method));
}

static void
report_gpu(GsSortSession *session, GsSessionReport *report)
{
	GsGpuReport gpu;

	gpusort_gpu_session_report(session->gpu, &gpu);
	report->kind = GS_SESSION_GPU;
	report->space = GS_SPACE_DEVICE;
	report->space_kb = (gpu.device_bytes + 1023) / 1024;
	report->wait_ms = Max(session->sort_ms - gpu.sort_ms, 0);
	report->sort_ms = gpu.sort_ms;
	report->fetch_ms = gpu.fetch_ms;
	strlcpy(report->method, "gpu onesweep", sizeof(report->method));
}

void
gpusort_session_report(GsSortSession *session, GsSessionReport *report)
{
	memset(report, 0, sizeof(*report));
	report->fallback = session->overflow;
	report->gpu_reason = session->gpu_reason;
	report->drain_ms = session->drain_ms;
	report->sort_ms = session->sort_ms;
	if (session->external != NULL)
		report_external(session, report);
	else if (session->gpu != NULL)
		report_gpu(session, report);
	else
	{
		report->kind = GS_SESSION_CPU;
		report->space_kb = (session->budget->used + 1023) / 1024;
		strlcpy(report->method, "cpu radix", sizeof(report->method));
	}
}

const GsSharedRun *
gpusort_session_shared_run(const GsSortSession *session)
{
	return &session->shared_run;
}

void
gpusort_session_end(GsSortSession *session)
{
	end_holder(session);
	if (session->external != NULL)
		gpusort_external_end(session->external);
	MemoryContextDelete(session->context);
}
