/*-------------------------------------------------------------------------
 *
 * bounded_sort.c
 *		Sorts rows of which only few are wanted, with a top-N heap.
 *
 * This uses a stock tuplesort, which drops rows that are not among the first ones so
 * far as they arrive.  It decides by itself whether to use a heap, and goes to disk
 * if even the rows that are wanted do not fit in memory.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "portability/instr_time.h"
#include "utils/tuplesort.h"

#include "settings.h"
#include "sort/bounded_sort.h"
#include "work.h"

struct GsBoundedSort
{
	Tuplesortstate *tuplesort;
	TupleTableSlot *slot;		/* for tuples of the tuplesort */
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

GsBoundedSort *
gpusort_bounded_sort(const GsSortSpec *spec, const GsSortKeys *keys,
					 TupleDesc tupdesc, int64 bound)
{
	GsBoundedSort *sort = palloc0(sizeof(GsBoundedSort));
	TupleTableSlot *row;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	sort->slot = MakeSingleTupleTableSlot(tupdesc, &TTSOpsMinimalTuple);
	sort->tuplesort =
		tuplesort_begin_heap(tupdesc, keys->nkeys, keys->attnos,
							 keys->operators, keys->collations,
							 keys->nulls_first, gpusort_settings_work_mem(),
							 NULL, TUPLESORT_ALLOWBOUNDED |
							 (spec->random_access ? TUPLESORT_RANDOMACCESS :
							  TUPLESORT_NONE));
	tuplesort_set_bound(sort->tuplesort, bound);
	while (row = spec->input.next(spec->input.arg), !TupIsNull(row))
	{
		CHECK_FOR_INTERRUPTS();
		tuplesort_puttupleslot(sort->tuplesort, row);
	}
	sort->drain_ms = ms_since(start);
	tuplesort_performsort(sort->tuplesort);
	sort->sort_ms = ms_since(start) - sort->drain_ms;
	return sort;
}

void
gpusort_bounded_next(GsBoundedSort *sort, bool forward, TupleTableSlot *slot)
{
	TupleTableSlot *from = sort->slot;
	int			natts = slot->tts_tupleDescriptor->natts;

	if (TTS_IS_MINIMALTUPLE(slot))
	{
		(void) tuplesort_gettupleslot(sort->tuplesort, forward, false, slot, NULL);
		return;
	}
	ExecClearTuple(slot);
	if (!tuplesort_gettupleslot(sort->tuplesort, forward, false, from, NULL))
		return;
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, natts * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
}

void
gpusort_bounded_rescan(GsBoundedSort *sort)
{
	tuplesort_rescan(sort->tuplesort);
}

void
gpusort_bounded_report(GsBoundedSort *sort, GsSortReport *report)
{
	TuplesortInstrumentation stats;

	tuplesort_get_stats(sort->tuplesort, &stats);
	memset(report, 0, sizeof(*report));
	report->kind = GS_KIND_EXTERNAL;
	report->fallback = GS_FALLBACK_LIMIT;
	report->space = stats.spaceType == SORT_SPACE_TYPE_DISK ? GS_SPACE_DISK :
		GS_SPACE_MEMORY;
	report->space_kb = stats.spaceUsed;
	report->drain_ms = sort->drain_ms;
	report->sort_ms = sort->sort_ms;
	strlcpy(report->method, tuplesort_method_name(stats.sortMethod),
			sizeof(report->method));
}

void
gpusort_bounded_end(GsBoundedSort *sort)
{
	ExecDropSingleTupleTableSlot(sort->slot);
	tuplesort_end(sort->tuplesort);
	pfree(sort);
}
