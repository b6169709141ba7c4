/*-------------------------------------------------------------------------
 *
 * input_sort.h
 *		Reads an input, and has its rows in order, in memory or on disk.
 *
 * Rows go to a holder.  When the next one does not fit, the sort overflows: the
 * holder's rows become a run, and so do the rows that follow, batch by batch,
 * either by new holders with a GPU session or, as there is a GPU no more, by a
 * run builder.  The runs are merged in the end.
 *
 * A GPU session can be lost with its rows.  Whatever returns false for that is to
 * be followed by gpusort_input_sort_restart(), after which the input is read
 * once more, and sorted without a GPU; so it happens once.
 *
 * With spec->bound, only that many rows are kept: whenever a holder has several
 * times as many, those that come behind the first ones are dropped, and from
 * then on rows are dropped as they come that are behind the last one kept.
 *
 * Other processes can add rows, either to the GPU session, or without one as
 * runs, each of which they have sorted in a session of their own.
 *
 * The struct is open since each row passes put() and get(), which are therefore
 * inline.  Others may read its members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_SORT_H
#define GPUSORT_INPUT_SORT_H

#include "executor/tuptable.h"

#include "service/service_client.h"
#include "sort/base/session_spec.h"
#include "sort/cutoff.h"
#include "sort/row_holder.h"
#include "sort/row_runs.h"

typedef struct GsInputSort
{
	const GsSessionSpec *spec;
	GsRowHolder holder;			/* of all rows, or after an overflow of a
								 * batch, unless a builder takes them */
	GsRowRuns	runs;
	bool		fed_by_others;	/* have others been given the GPU session? */
	bool		rows_sorted;	/* have all rows of this process been? */
	GsFallback	gpu_reason;		/* why the GPU is not used, or no more */
	GsFallback	input_failure;	/* see GsInput.failure */
	GsCutoff   *cutoff;			/* rows behind it are not wanted, or NULL */
	int64		ndropped;		/* rows that are not wanted, of all processes */
	Size		most_bytes;		/* that holders of dropped rows had */
	int64		nrows;			/* after finishing: those that are kept */
} GsInputSort;

/*
 * Begin, with all memory in and below 'context', whose end also ends the sort.
 * What 'spec' points to must stay.
 */
extern void gpusort_input_sort_begin(GsInputSort *sort,
									 const GsSessionSpec *spec,
									 MemoryContext context);

/* See gpusort_session_gpu_handle() and gpusort_session_run_set(). */
extern bool gpusort_input_sort_gpu_handle(GsInputSort *sort, bool in_order,
										  GsClientHandle *handle);
extern bool gpusort_input_sort_run_set(GsInputSort *sort, int nprocesses,
									   bool in_order, GsRunSetHandle *handle);

/* Read the input.  Returns false if rows are lost. */
extern bool gpusort_input_sort_read(GsInputSort *sort);

/*
 * All rows of this process are in: sort them, in memory or on disk.  Returns
 * false if they are lost.
 */
extern bool gpusort_input_sort_rows(GsInputSort *sort);

/*
 * Do that, unless it is done, and have all rows in order, with those that other
 * processes have sorted; or with spec->target, written there.  Returns false if
 * rows are lost.
 */
extern bool gpusort_input_sort_finish(GsInputSort *sort);

/* Rows are lost with the GPU session: be ready to read the input again. */
extern void gpusort_input_sort_restart(GsInputSort *sort);

extern void gpusort_input_sort_end(GsInputSort *sort);

/* Find a place for a row that the holder does not take; false if rows are lost. */
extern bool gpusort_input_sort_put_elsewhere(GsInputSort *sort,
											 TupleTableSlot *slot);

/* Add the row in a slot.  Returns false if rows are lost. */
static inline bool
gpusort_input_sort_put(GsInputSort *sort, TupleTableSlot *slot)
{
	if (sort->cutoff != NULL && gpusort_cutoff_drops(sort->cutoff, slot))
	{
		sort->ndropped++;
		return true;
	}
	slot_getallattrs(slot);
	return likely(gpusort_row_holder_put(&sort->holder, slot)) ||
		gpusort_input_sort_put_elsewhere(sort, slot);
}

/*
 * After finishing: read the row at a position, from 0, into the arrays of a slot.
 * Rows on disk are read by ascending positions, unless spec->random_access.
 * Returns false if the rows are lost.
 */
static inline bool
gpusort_input_sort_get(GsInputSort *sort, int64 position,
					   TupleTableSlot *slot)
{
	if (sort->runs.external == NULL)
		return gpusort_row_holder_get(&sort->holder, position, slot);
	gpusort_external_get(sort->runs.external, position, slot->tts_values,
						 slot->tts_isnull);
	return true;
}

#endif							/* GPUSORT_INPUT_SORT_H */
