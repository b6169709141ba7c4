/*-------------------------------------------------------------------------
 *
 * sort_session.c
 *		The facade of a sort: rows go in, and come out in order.
 *
 * A CPU session keeps encoded keys and packed rows apart: an ordering sorts
 * row numbers by the keys, and the rows are read from a row store in that
 * order, some rows being fetched ahead.
 *
 * When the next row does not fit into pg_gpusort.work_mem, or malloc() fails,
 * or row numbers run out, the session overflows: its rows go to a stock
 * tuplesort, and so do all that follow.  They go in the order in which they
 * came, and each chunk is freed as soon as its rows are over, so that both
 * sorts together stay within the budget while one grows and the other shrinks.
 * (Handing them over sorted would need all of the rows to the end.)  From then
 * on the session is as good as stock PostgreSQL's sort, and no worse.
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
#include "sort/ordering.h"
#include "sort/row_store.h"
#include "sort/sort_session.h"
#include "sort/stock_ties.h"

/* How many rows ahead rows are fetched into the cache. */
#define PREFETCH_ROWS		24

/*
 * Rows per chunk: about a part of those expected, and of those that can fit,
 * so that neither a small sort nor a small budget meets a large chunk.
 */
#define CHUNKS_EXPECTED		8
#define CHUNKS_IN_BUDGET	16
#define MIN_CHUNK_SHIFT		6
#define MAX_CHUNK_SHIFT		20

/* What sorting takes per row in addition to the key: two entries. */
#define ENTRY_BYTES			(2 * sizeof(uint64))

struct GsSortSession
{
	const GsSessionSpec *spec;
	MemoryContext context;
	bool		sorted;

	GsBudget   *budget;
	GsOrdering *ordering;
	GsRowStore *store;

	/* After sorting, unless overflown. */
	uint64	   *entries;
	int64		nrows;
	int64		position;		/* row last returned, from 1; 0: before all */
	int64		mark;
	bool		fetch_far;

	/* After an overflow. */
	GsFallback	overflow;		/* why, or GS_FALLBACK_NONE */
	Tuplesortstate *tuplesort;
	TupleTableSlot *tuplesort_slot;
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

static unsigned
choose_chunk_shift(const GsSessionSpec *spec, Size limit)
{
	Size		per_row = gpusort_row_store_width(spec->tupdesc) +
		gpusort_key_plan_words(spec->key_plan) * sizeof(uint64) + ENTRY_BYTES;
	double		rows = Min(spec->expected_rows / CHUNKS_EXPECTED,
						   (double) limit / per_row / CHUNKS_IN_BUDGET);
	unsigned	shift = MIN_CHUNK_SHIFT;

	while (shift < MAX_CHUNK_SHIFT && (double) ((Size) 2 << shift) <= rows)
		shift++;
	return shift;
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
	unsigned	chunk_shift;

	session->spec = spec;
	session->context = context;
	session->budget =
		gpusort_budget_create((Size) gpusort_settings_work_mem() * 1024);

	chunk_shift = choose_chunk_shift(spec, session->budget->limit);
	session->ordering =
		gpusort_ordering_create(session->budget,
								gpusort_key_plan_words(spec->key_plan),
								chunk_shift,
								gpusort_key_plan_nulls_first(spec->key_plan));
	session->store = gpusort_row_store_create(session->budget, spec->tupdesc,
											  chunk_shift);
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
begin_tuplesort(GsSortSession *session)
{
	const GsSessionSpec *spec = session->spec;

	session->tuplesort =
		tuplesort_begin_heap(spec->tupdesc, spec->keys.nkeys,
							 spec->keys.attnos, spec->keys.operators,
							 spec->keys.collations, spec->keys.nulls_first,
							 gpusort_settings_work_mem(), NULL,
							 spec->random_access ? TUPLESORT_RANDOMACCESS :
							 TUPLESORT_NONE);
	session->tuplesort_slot = MakeSingleTupleTableSlot(spec->tupdesc,
													   &TTSOpsMinimalTuple);
}

/* Hand all rows to a tuplesort, freeing them on the way. */
static void
overflow(GsSortSession *session, GsFallback reason)
{
	MemoryContext caller = MemoryContextSwitchTo(session->context);
	uint32		nrows = gpusort_ordering_count(session->ordering);
	unsigned	chunk_shift = gpusort_ordering_chunk_shift(session->ordering);
	TupleTableSlot *slot;

	session->overflow = reason;
	gpusort_stats_count_fallback(reason);
	begin_tuplesort(session);
	slot = MakeSingleTupleTableSlot(session->spec->tupdesc, &TTSOpsVirtual);
	for (uint32 row = 0; row < nrows; row++)
	{
		CHECK_FOR_INTERRUPTS();
		ExecClearTuple(slot);
		gpusort_row_store_get(session->store, row, slot->tts_values,
							  slot->tts_isnull);
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(session->tuplesort, slot);

		/* The last row of a chunk: its key and rows are not needed again. */
		if (((row + 1) & ((UINT32_C(1) << chunk_shift) - 1)) == 0)
		{
			gpusort_ordering_free_chunk(session->ordering, row >> chunk_shift);
			gpusort_row_store_free_chunk(session->store, row >> chunk_shift);
		}
	}
	session->tuplesort_rows = nrows;
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextSwitchTo(caller);
}

static GsFallback
reason_of_refusal(const GsSortSession *session)
{
	if (session->budget->out_of_memory)
		return GS_FALLBACK_OUT_OF_MEMORY;
	if (gpusort_ordering_is_full(session->ordering))
		return GS_FALLBACK_ROW_COUNT;
	return GS_FALLBACK_WORK_MEM;
}

/* ----------------------------------------------------------------
 *		rows in
 * ----------------------------------------------------------------
 */

/* Keep a row; false if it does not fit. */
static bool
keep_row(GsSortSession *session, TupleTableSlot *slot)
{
	uint64	   *key = gpusort_ordering_next_key(session->ordering);
	bool		apart;

	if (key == NULL)
		return false;
	slot_getallattrs(slot);
	apart = !gpusort_key_plan_encode(session->spec->key_plan, slot->tts_values,
									 slot->tts_isnull, key);
	return gpusort_row_store_put(session->store, slot->tts_values,
								 slot->tts_isnull) &&
		gpusort_ordering_add(session->ordering, apart);
}

void
gpusort_session_put(GsSortSession *session, TupleTableSlot *slot)
{
	if (session->tuplesort == NULL)
	{
		if (keep_row(session, slot))
			return;
		overflow(session, reason_of_refusal(session));
	}
	tuplesort_puttupleslot(session->tuplesort, slot);
	session->tuplesort_rows++;
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
	const GsSessionSpec *spec = session->spec;
	bool		stock_ties = gpusort_debug_stock_ties;

	session->drain_ms = lap_ms(&session->begin_time);
	if (session->tuplesort == NULL &&
		!gpusort_ordering_sort(session->ordering, stock_ties))
		overflow(session, GS_FALLBACK_OUT_OF_MEMORY);

	if (session->tuplesort != NULL)
		tuplesort_performsort(session->tuplesort);
	else
	{
		if (stock_ties)
			gpusort_stock_ties_apply(session->ordering, session->store,
									 spec->tupdesc, &spec->keys);
		session->entries = gpusort_ordering_entries(session->ordering);
		session->nrows = gpusort_ordering_count(session->ordering);
		session->fetch_far = gpusort_row_store_is_indirect(session->store);
	}
	session->sort_ms = lap_ms(&session->begin_time);
	session->sorted = true;
	count_sort(session);
}

/* ----------------------------------------------------------------
 *		rows out
 * ----------------------------------------------------------------
 */

static inline void
prefetch_rows(const GsSortSession *session, int64 index)
{
	if (session->fetch_far && index + 2 * PREFETCH_ROWS < session->nrows)
		gpusort_row_store_prefetch_far(session->store,
									   (uint32) session->entries[index + 2 * PREFETCH_ROWS]);
	if (index + PREFETCH_ROWS < session->nrows)
		gpusort_row_store_prefetch(session->store,
								   (uint32) session->entries[index + PREFETCH_ROWS]);
}

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
		prefetch_rows(session, index);
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
	gpusort_row_store_get(session->store, (uint32) session->entries[index],
						  slot->tts_values, slot->tts_isnull);
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
	report->space_kb = (session->budget->used + 1023) / 1024;
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
	strlcpy(report->method, method, sizeof(report->method));
}

void
gpusort_session_end(GsSortSession *session)
{
	if (session->tuplesort != NULL)
	{
		ExecDropSingleTupleTableSlot(session->tuplesort_slot);
		tuplesort_end(session->tuplesort);
	}
	MemoryContextDelete(session->context);
}

double
gpusort_session_estimate(const GsKeyPlan *key_plan, double rows,
						 int row_width)
{
	return rows * (MAXALIGN(row_width) + ENTRY_BYTES +
				   gpusort_key_plan_words(key_plan) * sizeof(uint64));
}
