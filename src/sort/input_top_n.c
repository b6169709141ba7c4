/*-------------------------------------------------------------------------
 *
 * input_top_n.c
 *		Drops rows of an input sort beyond its bound, which a LIMIT does not want.
 *
 * A memory sort is given a capacity of some times as many rows as are wanted.  When it
 * refuses a row, input_sort.c asks gpusort_input_top_n_may_cut() whether dropping rows
 * makes enough room, and otherwise lets the sort overflow.  To be cut, the memory sort is
 * sorted.  Its first rows, which are wanted, are added to a new memory sort, and the last of
 * them becomes the cutoff.  From then on, gpusort_input_sort_put() drops each row that sorts
 * after the cutoff.
 *
 * In a parallel query, each process drops rows of its own.  Of the rows that are then left in
 * all of them, gpusort_input_top_n_drop_last_rows() has only the first ones returned.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"

#include "sort/base/tuple_rows.h"
#include "sort/input_overflow.h"
#include "sort/input_private.h"
#include "sort/input_sort.h"
#include "work.h"

bool
gpusort_input_top_n_fits_in_memory(const GsSortSpec *spec)
{
	return spec->bound > 0 &&
		gpusort_memory_sort_estimate(gpusort_key_plan_words(spec->key_plan),
									 2.0 * spec->bound,
									 spec->expected_width) <=
		gpusort_sort_spec_memory(spec);
}

bool
gpusort_input_top_n_will_cut(const GsSortSpec *spec)
{
	return gpusort_input_top_n_fits_in_memory(spec) &&
		spec->expected_rows > gpusort_memory_sort_capacity(spec);
}

bool
gpusort_input_top_n_may_cut(const GsInputSort *sort)
{
	int64		bound = sort->spec->bound;
	int64		nrows;

	if (bound == 0 || sort->location != GS_ROWS_IN_MEMORY)
		return false;
	nrows = gpusort_row_sorter_count(&sort->sorter);
	return nrows - bound > nrows / GPUSORT_LEAST_CUT_PART;
}

/*
 * Set the cutoff to the row in the arrays of a slot.  If there is not enough memory
 * for its keys, there is no cutoff, and all rows are kept until the next cut.
 */
static void
set_cutoff(GsInputSort *sort, const TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->sorter.parent);
	GsCutoff   *cutoff = sort->cutoff;

	if (cutoff == NULL)
		cutoff = gpusort_cutoff_create(sort->spec);
	MemoryContextSwitchTo(caller);
	if (gpusort_cutoff_set(cutoff, slot->tts_values, slot->tts_isnull))
		sort->cutoff = cutoff;
}

void
gpusort_input_top_n_cut(GsInputSort *sort)
{
	int64		bound = sort->spec->bound;
	GsRowSorter old = sort->sorter;
	TupleTableSlot *slot;

	if (!gpusort_row_sorter_sort(&sort->sorter))
	{
		(void) gpusort_input_overflow_write_rows(sort);
		return;
	}
	slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	gpusort_memory_sort_get(old.cpu, bound - 1, slot->tts_values, slot->tts_isnull);
	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	set_cutoff(sort, slot);

	/* They move in the order of arrival, so that ties keep that order. */
	gpusort_row_sorter_init(&sort->sorter, sort->spec, old.parent);
	gpusort_row_sorter_begin_cpu(&sort->sorter);
	gpusort_row_runs_reserve_readers(&sort->runs, &sort->sorter);
	sort->most_bytes = Max(sort->most_bytes, gpusort_memory_sort_bytes(old.cpu));
	sort->ndropped += gpusort_memory_sort_count(old.cpu) - bound;
	gpusort_memory_sort_keep_first(old.cpu, bound);
	while (gpusort_memory_sort_take(old.cpu, slot->tts_values, slot->tts_isnull))
	{
		CHECK_FOR_INTERRUPTS();
		if (!gpusort_row_sorter_put(&sort->sorter, slot))
			(void) gpusort_input_sort_put_elsewhere(sort, slot);
	}
	gpusort_row_sorter_end(&old);
	ExecDropSingleTupleTableSlot(slot);
}

void
gpusort_input_top_n_drop_last_rows(GsInputSort *sort)
{
	int64		unwanted = sort->nrows - sort->spec->bound;

	if (sort->ndropped > 0 && unwanted > 0)
	{
		sort->ndropped += unwanted;
		sort->nrows -= unwanted;
	}
}
