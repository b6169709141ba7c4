/*-------------------------------------------------------------------------
 *
 * array_stats.c
 *		Counts sorts of arrays, for pg_stat_gpusort.
 *
 * Arrays can be short, and there can be one in each row of a query, so this
 * must not take long.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "portability/instr_time.h"

#include "sqlfn/array_stats.h"

/*
 * Shorter arrays are not timed.  Reading the clock would take a good part of their
 * time, of which there are not enough microseconds to count.
 */
#define MIN_TIMED_ELEMENTS	100

struct GsArraySortTimer
{
	MemoryContextCallback callback;
	uint64		elements;
	instr_time	start;			/* if there are enough of them */
	bool		ended;
};

/* Called when the memory context ends. */
static void
memory_is_freed(void *arg)
{
	GsArraySortTimer *timer = arg;

	if (!timer->ended)
		gpusort_stats_count_error();
}

GsArraySortTimer *
gpusort_array_stats_begin(uint64 elements)
{
	GsArraySortTimer *timer = palloc(sizeof(GsArraySortTimer));

	timer->elements = elements;
	timer->ended = false;
	timer->callback.func = memory_is_freed;
	timer->callback.arg = timer;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &timer->callback);
	if (elements >= MIN_TIMED_ELEMENTS)
		INSTR_TIME_SET_CURRENT(timer->start);
	return timer;
}

void
gpusort_array_stats_count(GsArraySortTimer *timer, GsSortKind kind,
						  uint64 bytes)
{
	GsSortCounts counts = {.sorts = 1,.array_sorts = 1};

	timer->ended = true;
	counts.rows = timer->elements;
	counts.bytes = bytes;
	if (timer->elements >= MIN_TIMED_ELEMENTS)
	{
		instr_time	duration;

		INSTR_TIME_SET_CURRENT(duration);
		INSTR_TIME_SUBTRACT(duration, timer->start);
		counts.sort_us = (uint64) INSTR_TIME_GET_MICROSEC(duration);
	}
	gpusort_stats_count_sort(kind, &counts);
}

void
gpusort_array_stats_cancel(GsArraySortTimer *timer)
{
	timer->ended = true;
}
