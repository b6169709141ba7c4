/*-------------------------------------------------------------------------
 *
 * input_top_n.c
 *		Drops rows of an input sort beyond its bound, which a LIMIT does not want.
 *
 * A row sorter is given a capacity of some times as many rows as are wanted.  When it
 * refuses a row, input_sort.c asks gpusort_input_top_n_may_drop_rows() whether dropping rows
 * makes enough room, and otherwise lets the sort overflow.  To drop rows, the row sorter is
 * sorted.  Its first rows, which are wanted, are added to a new memory sort, and the last of
 * them becomes the cutoff.  From then on, gpusort_input_sort_put() drops each row that sorts
 * after the cutoff.
 *
 * Rows that were on a GPU leave it in this way and do not return.  The GPU may have refused
 * some rows that had been sent to it already.  These are sorted in a sort of their own within
 * this one, whose first rows are added last, since they arrived last.
 *
 * In a parallel query, each process drops rows of its own.  Of the rows that are then left in
 * all of them, gpusort_input_top_n_drop_last_rows() has only the first ones returned.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "sort/base/sort_stats.h"
#include "sort/base/tuple_rows.h"
#include "sort/gpu/gpu_refused_rows.h"
#include "sort/input_overflow.h"
#include "sort/input_private.h"
#include "sort/input_sort.h"
#include "work.h"

/*
 * A row sorter is cut when it has this many times the rows that are wanted, and at
 * least MIN_CUT_ROWS.  With a larger multiple, fewer rows are sorted twice if the
 * input comes in descending order; with a smaller one, the cutoff is known earlier.
 * If N of M rows in random order are wanted, about N * (4 + ln(M / 4N)) are kept
 * at some time.
 */
#define CUT_MULTIPLE		4
#define MIN_CUT_ROWS		4096

/* Rows leave a GPU only if there are this many times the rows expected. */
#define GPU_CUT_MULTIPLE	2

/*
 * Rows that a full GPU has refused are sorted in this fraction of the memory.  The
 * rows wanted take up to half of the memory at the same time: see
 * bound_fits_in_memory().
 */
#define REST_PART			4

/* Do twice the rows that are wanted fit into the memory allowed? */
static bool
bound_fits_in_memory(const GsSortSpec *spec)
{
	return gpusort_memory_sort_estimate(gpusort_key_plan_words(spec->key_plan),
										2.0 * spec->bound,
										spec->expected_width) <=
		gpusort_sort_spec_memory(spec);
}

void
gpusort_input_top_n_limit_sorter(GsInputSort *sort)
{
	const GsSortSpec *spec = sort->spec;
	double		capacity = Max((double) spec->bound * CUT_MULTIPLE,
							   MIN_CUT_ROWS);

	if (spec->bound == 0)
		return;
	if (sort->location == GS_ROWS_ON_GPU)
	{
		if (!bound_fits_in_memory(spec))
			return;
		capacity = Max(capacity, spec->expected_rows * GPU_CUT_MULTIPLE);
	}
	gpusort_row_sorter_set_capacity(&sort->sorter, capacity);
}

/* Add a row, which is wanted, from the arrays of a slot. */
static bool
put_wanted(GsInputSort *sort, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	return gpusort_row_sorter_put(&sort->sorter, slot) ||
		gpusort_input_sort_put_elsewhere(sort, slot);
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

/* Begin a memory sort in place of the current row sorter, and return the latter. */
static GsRowSorter
replace_sorter(GsInputSort *sort)
{
	GsRowSorter old = sort->sorter;

	gpusort_row_sorter_init(&sort->sorter, sort->spec, old.parent);
	gpusort_row_sorter_begin_cpu(&sort->sorter);
	gpusort_input_state_set_location(sort, GS_ROWS_IN_MEMORY);
	gpusort_row_runs_reserve_readers(&sort->runs, &sort->sorter);
	gpusort_input_top_n_limit_sorter(sort);
	return old;
}

/*
 * Cut a memory sort: sort its rows, and move those that are wanted to a new one.  They
 * move in the order of arrival, so that ties keep that order.  Returns false if rows
 * are lost.
 */
static bool
cut_sorter(GsInputSort *sort)
{
	int64		bound = sort->spec->bound;
	TupleTableSlot *slot;
	GsRowSorter old;
	bool		kept = true;

	if (!gpusort_row_sorter_sort(&sort->sorter))
		return gpusort_input_overflow_write_rows(sort);
	slot = MakeSingleTupleTableSlot(sort->spec->tupdesc, &TTSOpsVirtual);
	gpusort_memory_sort_get(sort->sorter.cpu, bound - 1, slot->tts_values,
							slot->tts_isnull);
	gpusort_tuple_row_get_keys(sort->spec, slot->tts_values, slot->tts_isnull);
	set_cutoff(sort, slot);

	old = replace_sorter(sort);
	sort->most_bytes = Max(sort->most_bytes,
						   gpusort_memory_sort_bytes(old.cpu));
	sort->ndropped += gpusort_memory_sort_count(old.cpu) - bound;
	gpusort_memory_sort_keep_first(old.cpu, bound);
	while (kept && gpusort_memory_sort_take(old.cpu, slot->tts_values,
											slot->tts_isnull))
		kept = put_wanted(sort, slot);
	gpusort_row_sorter_end(&old);
	ExecDropSingleTupleTableSlot(slot);
	return kept;
}

/* ----------------------------------------------------------------
 *		rows on a GPU
 * ----------------------------------------------------------------
 */

/*
 * Sort the rows that a full GPU has refused, which arrived after all others, in a sort
 * of their own.
 */
static GsInputSort *
sort_rest(GsInputSort *sort, GsGpuSession *session, TupleTableSlot *slot)
{
	GsSortSpec *spec = palloc(sizeof(GsSortSpec));
	GsInputSort *rest = palloc(sizeof(GsInputSort));

	*spec = *sort->spec;
	spec->nested = true;
	spec->processes = 0;
	spec->random_access = false;
	spec->target = NULL;
	spec->memory = gpusort_sort_spec_memory(sort->spec) / REST_PART;
	gpusort_input_sort_begin(rest, spec, gpusort_progress_unseen(), CurrentMemoryContext);
	while (gpusort_gpu_session_take_rest(session, slot->tts_values, slot->tts_isnull))
	{
		CHECK_FOR_INTERRUPTS();
		(void) gpusort_input_sort_put(rest, ExecStoreVirtualTuple(slot));
		ExecClearTuple(slot);
	}
	(void) gpusort_input_sort_finish(rest);
	return rest;
}

/* Add those rows of that sort that are wanted, and end it. */
static void
put_rest(GsInputSort *sort, GsInputSort *rest, TupleTableSlot *slot)
{
	for (int64 position = 0; position < rest->nrows; position++)
	{
		CHECK_FOR_INTERRUPTS();
		(void) gpusort_input_sort_get(rest, position, slot);
		gpusort_tuple_row_get_keys(sort->spec, slot->tts_values,
								   slot->tts_isnull);
		(void) gpusort_input_sort_put(sort, ExecStoreVirtualTuple(slot));
		ExecClearTuple(slot);
	}
	sort->ndropped += rest->ndropped;
	gpusort_input_sort_end(rest);
}

bool
gpusort_input_top_n_leave_gpu(GsInputSort *sort, GsFallback reason)
{
	MemoryContext context = AllocSetContextCreate(sort->sorter.context,
												  "pg_gpusort rest",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->spec->tupdesc,
													&TTSOpsVirtual);
	int64		nrows = gpusort_row_sorter_count(&sort->sorter);
	int64		wanted = Min(nrows, sort->spec->bound);
	int64		position = 0;
	GsInputSort *rest;
	GsRowSorter gpu;

	/* Refused rows occupy pool chunks that reading needs, so move them first. */
	rest = sort_rest(sort, sort->sorter.gpu, slot);
	gpu = replace_sorter(sort);
	sort->gpu_reason = reason;	/* none is used again, if memory is full */
	while (position < wanted &&
		   gpusort_row_sorter_get_gpu(&gpu, position, slot->tts_values,
									  slot->tts_isnull))
	{
		gpusort_tuple_row_get_keys(sort->spec, slot->tts_values,
								   slot->tts_isnull);
		if (++position == sort->spec->bound)
			set_cutoff(sort, slot);
		(void) put_wanted(sort, slot);
	}
	MemoryContextSwitchTo(caller);
	if (position < wanted)
	{
		gpusort_input_sort_end(rest);
		gpusort_row_sorter_end(&sort->sorter);
		sort->sorter = gpu;
		return false;
	}
	sort->ndropped += nrows - wanted;
	put_rest(sort, rest, slot);
	ExecDropSingleTupleTableSlot(slot);
	gpusort_row_sorter_end(&gpu);
	gpusort_stats_count_fallback(reason);
	return true;
}

/* ----------------------------------------------------------------
 *		what the other files call
 * ----------------------------------------------------------------
 */

bool
gpusort_input_top_n_may_drop_rows(const GsInputSort *sort)
{
	const GsRowSorter *sorter = &sort->sorter;
	int64		bound = sort->spec->bound;
	int64		nrows;

	if (bound == 0)
		return false;
	if (sort->location == GS_ROWS_ON_GPU)
		return bound_fits_in_memory(sort->spec);
	nrows = gpusort_row_sorter_count(sorter);
	return nrows - bound > nrows / GPUSORT_LEAST_CUT_PART;
}

bool
gpusort_input_top_n_drop_rows(GsInputSort *sort)
{
	GsFallback	reason;

	if (sort->location == GS_ROWS_IN_MEMORY)
		return cut_sorter(sort);
	reason = gpusort_row_sorter_failure(&sort->sorter);
	return gpusort_row_sorter_sort(&sort->sorter) &&
		gpusort_input_top_n_leave_gpu(sort, reason);
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
