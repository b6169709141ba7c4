/*-------------------------------------------------------------------------
 *
 * stock_sort.c
 *		Sorts rows with PostgreSQL's tuplesort, if an encoding of their keys is distrusted.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "portability/instr_time.h"
#include "utils/tuplesort.h"

#include "settings.h"
#include "sort/base/progress.h"
#include "sort/stock_sort.h"
#include "work.h"

struct GsStockSort
{
	MemoryContext context;		/* of the sort and the tuplesort */
	GsProgress *progress;
	Tuplesortstate *tuplesort;
	TupleTableSlot *slot;		/* for tuples of the tuplesort */
	int64		position;		/* of the row last returned, from 1; or 0 */
	int64		mark;
	bool		after_last;		/* has the end been reached since? */
	double		drain_ms;
	double		sort_ms;
};

static double
ms_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

/*
 * The tuplesort must not be asked for its space while rows are added: it would report how
 * it did the sort as of then.
 */
static void
show_memory(GsStockSort *sort)
{
	sort->progress->memory_bytes = MemoryContextMemAllocated(sort->context, true);
}

/* Show that the rows are sorted. */
static void
show_sorted(GsStockSort *sort)
{
	GsProgress *progress = sort->progress;
	TuplesortInstrumentation stats;

	tuplesort_get_stats(sort->tuplesort, &stats);
	show_memory(sort);
	if (stats.spaceType == SORT_SPACE_TYPE_DISK)
		progress->file_bytes = stats.spaceUsed * 1024;
	progress->phase = GS_PHASE_RETURNING;
	progress->rows_sorted = progress->rows_read;
}

GsStockSort *
gpusort_stock_sort(const GsSortSpec *spec, const GsSortKeys *keys,
				   TupleDesc tupdesc, PlanState *input)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_gpusort stock sort",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GsStockSort *sort = palloc0(sizeof(GsStockSort));
	TupleTableSlot *row;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	sort->context = context;
	sort->progress = gpusort_progress_begin(context, spec->plan_node, spec->processes - 1,
											spec->expected_rows);
	sort->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	sort->tuplesort =
		tuplesort_begin_heap(tupdesc, keys->nkeys, keys->attnos,
							 keys->operators, keys->collations,
							 keys->nulls_first, gpusort_settings_work_mem(),
							 NULL, spec->random_access ? TUPLESORT_RANDOMACCESS :
							 TUPLESORT_NONE);
	MemoryContextSwitchTo(caller);
	while (row = ExecProcNode(input), !TupIsNull(row))
	{
		CHECK_FOR_INTERRUPTS();
		if (++sort->progress->rows_read % GPUSORT_ROWS_PER_REPORT == 0)
			show_memory(sort);
		tuplesort_puttupleslot(sort->tuplesort, row);
	}
	sort->drain_ms = ms_since(start);
	sort->progress->phase = GS_PHASE_SORTING;
	tuplesort_performsort(sort->tuplesort);
	show_sorted(sort);
	sort->sort_ms = ms_since(start) - sort->drain_ms;
	return sort;
}

/* Move to the next or previous row and get its tuple.  Returns false if there is none. */
static bool
get_tuple(GsStockSort *sort, bool forward, TupleTableSlot *slot)
{
	bool		found = tuplesort_gettupleslot(sort->tuplesort, forward, false, slot, NULL);

	if (forward && !sort->after_last)
		sort->position++;
	else if (!forward && sort->position > 0)
		sort->position--;
	sort->after_last = forward && !found;
	if (found)
		sort->progress->rows_returned = sort->position;
	return found;
}

void
gpusort_stock_sort_next(GsStockSort *sort, bool forward, TupleTableSlot *slot)
{
	TupleTableSlot *from = sort->slot;
	int			natts = slot->tts_tupleDescriptor->natts;

	if (TTS_IS_MINIMALTUPLE(slot))
	{
		(void) get_tuple(sort, forward, slot);
		return;
	}
	ExecClearTuple(slot);
	if (!get_tuple(sort, forward, from))
		return;
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
}

void
gpusort_stock_sort_rescan(GsStockSort *sort)
{
	tuplesort_rescan(sort->tuplesort);
	sort->position = 0;
	sort->after_last = false;
}

void
gpusort_stock_sort_mark(GsStockSort *sort)
{
	tuplesort_markpos(sort->tuplesort);
	sort->mark = sort->position;
}

void
gpusort_stock_sort_restore(GsStockSort *sort)
{
	tuplesort_restorepos(sort->tuplesort);
	sort->position = sort->mark;
	sort->after_last = false;
}

void
gpusort_stock_sort_report(GsStockSort *sort, GsSortReport *report)
{
	TuplesortInstrumentation stats;

	tuplesort_get_stats(sort->tuplesort, &stats);
	memset(report, 0, sizeof(*report));
	report->kind = GS_KIND_EXTERNAL;
	report->fallback = GS_FALLBACK_WRONG_ORDER;
	report->space = stats.spaceType == SORT_SPACE_TYPE_DISK ? GS_SPACE_DISK :
		GS_SPACE_MEMORY;
	report->space_kb = stats.spaceUsed;
	report->drain_ms = sort->drain_ms;
	report->sort_ms = sort->sort_ms;
	strlcpy(report->method, tuplesort_method_name(stats.sortMethod),
			sizeof(report->method));
}

void
gpusort_stock_sort_end(GsStockSort *sort)
{
	ExecDropSingleTupleTableSlot(sort->slot);
	tuplesort_end(sort->tuplesort);
	MemoryContextDelete(sort->context);
}
