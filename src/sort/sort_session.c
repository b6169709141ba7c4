/*-------------------------------------------------------------------------
 *
 * sort_session.c
 *		The facade of a sort: rows go in, and come out in order.
 *
 * Rows are held by a CPU session.  When the next one does not fit into
 * pg_gpusort.work_mem, or the system has no memory left, or row numbers run
 * out, the session overflows: its rows go to a stock tuplesort.  They go as they
 * lie in memory, which is freed behind them, so that one sort grows while the
 * other shrinks; handing them over sorted would need all of them to the end.
 * From then on the memory is shared half and half.  Rows that follow are sorted
 * in batches by a CPU session in its half, and handed over batch by batch; the
 * tuplesort, which sees its input sorted for long stretches, has less to do.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "settings.h"
#include "sort/budget.h"
#include "sort/cpu_session.h"
#include "sort/sort_session.h"

struct GsSortSession
{
	const GsSessionSpec *spec;
	MemoryContext context;
	bool		sorted;

	/* The rows held here; after an overflow a batch, or NULL without memory. */
	MemoryContext cpu_context;
	GsBudget   *budget;
	GsCpuSession *cpu;

	/* The cursor, unless overflown. */
	int64		nrows;
	int64		position;		/* row last returned, from 1; 0: before all */
	int64		mark;

	/* After an overflow. */
	GsFallback	overflow;		/* why, or GS_FALLBACK_NONE */
	Tuplesortstate *tuplesort;
	TupleTableSlot *tuplesort_slot; /* rows that come from it */
	TupleTableSlot *batch_slot; /* rows that go to it */
	int64		tuplesort_rows;

	instr_time	begin_time;
	double		drain_ms;
	double		sort_ms;
};

/* Called when the session's memory goes: an error did it if nothing was sorted. */
static void
session_memory_is_freed(void *arg)
{
	GsSortSession *session = arg;

	if (!session->sorted)
		gpusort_stats_count_error();
}

static void
begin_cpu_session(GsSortSession *session, int limit_kb)
{
	MemoryContext caller;

	session->cpu_context = AllocSetContextCreate(session->context,
												 "pg_gpusort rows",
												 ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(session->cpu_context);
	session->budget = gpusort_budget_create((Size) limit_kb * 1024);
	session->cpu = gpusort_cpu_session_create(session->spec, session->budget);
	MemoryContextSwitchTo(caller);
}

static void
end_cpu_session(GsSortSession *session)
{
	MemoryContextDelete(session->cpu_context);
	session->cpu_context = NULL;
	session->budget = NULL;
	session->cpu = NULL;
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
	begin_cpu_session(session, gpusort_settings_work_mem());
	callback->func = session_memory_is_freed;
	callback->arg = session;
	MemoryContextRegisterResetCallback(context, callback);
	INSTR_TIME_SET_CURRENT(session->begin_time);
	MemoryContextSwitchTo(caller);
	return session;
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

/* ----------------------------------------------------------------
 *		overflow
 * ----------------------------------------------------------------
 */

static void
begin_tuplesort(GsSortSession *session, int limit_kb)
{
	const GsSessionSpec *spec = session->spec;

	session->tuplesort =
		tuplesort_begin_heap(spec->tupdesc, spec->keys.nkeys,
							 spec->keys.attnos, spec->keys.operators,
							 spec->keys.collations, spec->keys.nulls_first,
							 limit_kb, NULL,
							 spec->random_access ? TUPLESORT_RANDOMACCESS :
							 TUPLESORT_NONE);
	session->tuplesort_slot = MakeSingleTupleTableSlot(spec->tupdesc,
													   &TTSOpsMinimalTuple);
	session->batch_slot = MakeSingleTupleTableSlot(spec->tupdesc,
												   &TTSOpsVirtual);
}

static void
put_to_tuplesort(GsSortSession *session, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	tuplesort_puttupleslot(session->tuplesort, slot);
	session->tuplesort_rows++;
}

/* Hand over the rows as they are, freeing them on the way. */
static void
hand_over_unsorted(GsSortSession *session)
{
	TupleTableSlot *slot = session->batch_slot;

	while (gpusort_cpu_session_take(session->cpu, slot->tts_values,
									slot->tts_isnull))
	{
		ExecStoreVirtualTuple(slot);
		put_to_tuplesort(session, slot);
		ExecClearTuple(slot);
	}
	end_cpu_session(session);
}

/* Sort the batch and hand it over. */
static void
hand_over_batch(GsSortSession *session)
{
	TupleTableSlot *slot = session->batch_slot;
	int64		nrows = gpusort_cpu_session_count(session->cpu);

	if (!gpusort_cpu_session_sort(session->cpu))
	{
		hand_over_unsorted(session);
		return;
	}
	for (int64 row = 0; row < nrows; row++)
	{
		gpusort_cpu_session_get(session->cpu, row, slot->tts_values,
								slot->tts_isnull);
		ExecStoreVirtualTuple(slot);
		put_to_tuplesort(session, slot);
		ExecClearTuple(slot);
	}
	end_cpu_session(session);
}

/* The rows do not fit: hand them over, and go on in batches. */
static void
overflow(GsSortSession *session, GsFallback reason)
{
	MemoryContext caller = MemoryContextSwitchTo(session->context);
	int			half_kb = gpusort_settings_work_mem() / 2;

	if (session->tuplesort == NULL)
	{
		session->overflow = reason;
		gpusort_stats_count_fallback(reason);

		/* Without memory there are no batches, and no other half. */
		begin_tuplesort(session, reason == GS_FALLBACK_OUT_OF_MEMORY ?
						gpusort_settings_work_mem() : half_kb);
		hand_over_unsorted(session);
	}
	else
		hand_over_batch(session);
	if (reason != GS_FALLBACK_OUT_OF_MEMORY)
		begin_cpu_session(session, half_kb);
	MemoryContextSwitchTo(caller);
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Keep a row in the CPU session; false if there is none or it is full. */
static bool
keep_row(GsSortSession *session, TupleTableSlot *slot)
{
	return session->cpu != NULL &&
		gpusort_cpu_session_put(session->cpu, slot->tts_values,
								slot->tts_isnull);
}

void
gpusort_session_put(GsSortSession *session, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	if (keep_row(session, slot))
		return;
	if (session->cpu != NULL)
	{
		overflow(session, gpusort_cpu_session_refusal(session->cpu));
		if (keep_row(session, slot))
			return;
	}

	/* Not even a batch has room for it. */
	put_to_tuplesort(session, slot);
}

static void
count_sort(GsSortSession *session)
{
	GsSessionReport report;
	GsSortCounts counts = {.sorts = 1};

	gpusort_session_report(session, &report);
	counts.rows = session->tuplesort != NULL ? session->tuplesort_rows :
		session->nrows;
	counts.bytes = (uint64) report.space_kb * 1024;
	counts.drain_us = (uint64) (report.drain_ms * 1000);
	counts.sort_us = (uint64) (report.sort_ms * 1000);
	gpusort_stats_count_sort(report.kind, &counts);
}

void
gpusort_session_sort(GsSortSession *session)
{
	session->drain_ms = lap_ms(&session->begin_time);
	if (session->tuplesort == NULL && !gpusort_cpu_session_sort(session->cpu))
		overflow(session, GS_FALLBACK_OUT_OF_MEMORY);
	if (session->tuplesort != NULL)
	{
		if (session->cpu != NULL)
			hand_over_batch(session);
		tuplesort_performsort(session->tuplesort);
	}
	else
		session->nrows = gpusort_cpu_session_count(session->cpu);
	session->sort_ms = lap_ms(&session->begin_time);
	session->sorted = true;
	count_sort(session);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

/* The next row of a tuplesort, which comes in a slot of another kind. */
static bool
next_of_tuplesort(GsSortSession *session, bool forward, TupleTableSlot *slot)
{
	TupleTableSlot *from = session->tuplesort_slot;
	int			natts = slot->tts_tupleDescriptor->natts;

	if (!tuplesort_gettupleslot(session->tuplesort, forward, false, from, NULL))
		return false;
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	return true;
}

bool
gpusort_session_next(GsSortSession *session, bool forward,
					 TupleTableSlot *slot)
{
	int64		index;

	ExecClearTuple(slot);
	if (session->tuplesort != NULL)
		return next_of_tuplesort(session, forward, slot);

	if (forward)
	{
		if (session->position >= session->nrows)
		{
			session->position = session->nrows + 1;
			return false;
		}
		index = session->position++;
	}
	else
	{
		if (session->position <= 1)
		{
			session->position = 0;
			return false;
		}
		index = --session->position - 1;
	}
	gpusort_cpu_session_get(session->cpu, index, slot->tts_values,
							slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
	return true;
}

bool
gpusort_session_can_rewind(const GsSortSession *session)
{
	return session->spec->random_access || session->tuplesort == NULL;
}

void
gpusort_session_mark(GsSortSession *session)
{
	if (session->tuplesort != NULL)
		tuplesort_markpos(session->tuplesort);
	else
		session->mark = session->position;
}

void
gpusort_session_restore(GsSortSession *session)
{
	if (session->tuplesort != NULL)
		tuplesort_restorepos(session->tuplesort);
	else
		session->position = session->mark;
}

void
gpusort_session_rescan(GsSortSession *session)
{
	if (session->tuplesort != NULL)
		tuplesort_rescan(session->tuplesort);
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
	const char *method = "cpu radix";

	memset(report, 0, sizeof(*report));
	report->kind = GS_SESSION_CPU;
	report->fallback = session->overflow;
	report->drain_ms = session->drain_ms;
	report->sort_ms = session->sort_ms;
	if (session->tuplesort != NULL)
	{
		TuplesortInstrumentation instrumentation;

		tuplesort_get_stats(session->tuplesort, &instrumentation);
		method = tuplesort_method_name(instrumentation.sortMethod);
		report->kind = GS_SESSION_EXTERNAL;
		report->on_disk = instrumentation.spaceType == SORT_SPACE_TYPE_DISK;
		report->space_kb = instrumentation.spaceUsed;
	}
	else
		report->space_kb = (session->budget->used + 1023) / 1024;
	strlcpy(report->method, method, sizeof(report->method));
}

void
gpusort_session_end(GsSortSession *session)
{
	if (session->tuplesort != NULL)
	{
		ExecDropSingleTupleTableSlot(session->tuplesort_slot);
		ExecDropSingleTupleTableSlot(session->batch_slot);
		tuplesort_end(session->tuplesort);
	}
	MemoryContextDelete(session->context);
}
