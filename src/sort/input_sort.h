/*-------------------------------------------------------------------------
 *
 * input_sort.h
 *		Sorts the rows of an input, in memory or on disk.
 *
 * Rows are added to a row sorter, which is a GPU session or a memory sort.  When a
 * row does not fit, the sort overflows: the rows are sorted and written as a run.
 * A run builder makes runs of the rows that follow.  Finally, the runs are merged.
 *
 * A GPU session can be lost together with its rows.  After any function returns
 * false, call gpusort_input_loss_restart() and read the input again.  It is then
 * sorted without a GPU, so this happens at most once.
 *
 * With spec->bound, only that many rows are kept.  When the row sorter has several
 * times as many, it is cut: its rows are sorted, and only the first ones are kept.
 * The last of these is the cutoff.  From then on, rows that sort after it are dropped
 * as they arrive.
 *
 * Other processes can take part.  They add rows to the GPU session.  Without a GPU, all
 * of them sort their rows together, in memory or on disk (row_sharing.h).  If they cannot
 * do that, each sorts its rows in a sort of its own and shares a run.
 *
 * Parts of this are in files of their own: the state of a sort (input_state.h), the choice of
 * the row sorter (sorter_choice.h), dropping rows beyond the bound (input_top_n.c), overflows
 * (input_overflow.h), and the loss of a GPU (input_loss.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_SORT_H
#define GPUSORT_INPUT_SORT_H

#include "executor/tuptable.h"

#include "service/service_client.h"
#include "sort/input_state.h"

/*
 * Begin a sort.  All of its memory is in 'context' or its children, so deleting that
 * context ends the sort, too.  'spec' and what it points to must stay valid, and so must
 * 'progress', which shows the sort.
 */
extern void gpusort_input_sort_begin(GsInputSort *sort,
									 const GsSortSpec *spec,
									 GsProgress *progress,
									 MemoryContext context);

/* See gpusort_sort_gpu_handle() and gpusort_sort_run_set(). */
extern bool gpusort_input_sort_gpu_handle(GsInputSort *sort, GsClientHandle *handle);
extern bool gpusort_input_sort_run_set(GsInputSort *sort, int nprocesses, bool ahead,
									   GsRunSetHandle *handle);

/* See gpusort_sort_allow_overflow() and gpusort_sort_leave(). */
extern bool gpusort_input_sort_allow_overflow(GsInputSort *sort, int nprocesses,
											  bool ahead, GsRunSetHandle *handle);
extern void gpusort_input_sort_leave(GsInputSort *sort);

/* See gpusort_sort_attach(), gpusort_sort_shared() and gpusort_sort_stop(). */
extern bool gpusort_input_sort_attach(GsInputSort *sort);
extern GsSharedSort *gpusort_input_sort_shared(const GsInputSort *sort);
extern void gpusort_input_sort_stop(GsInputSort *sort);

/* Add a row, while the input is being read.  Returns false if rows are lost. */
extern bool gpusort_input_sort_add(GsInputSort *sort, TupleTableSlot *slot);

/* The input has to be read again, since rows of this process or of another one are lost. */
extern void gpusort_input_sort_give_up(GsInputSort *sort);

/* Read the input and add its rows.  Returns false if rows are lost. */
extern bool gpusort_input_sort_read(GsInputSort *sort);

/*
 * Sort the rows of this process, after all of them have been added.  Returns false if
 * they are lost.  Sets *ahead to whether rows can be read while other processes are still
 * sorting.
 */
extern bool gpusort_input_sort_rows_ahead(GsInputSort *sort, bool *ahead);

/*
 * Finish the sort: sort the rows of this process, unless that has been done, and
 * combine them with those that other processes have sorted.  With spec->target, write
 * the rows there instead.  Returns false if rows are lost.
 */
extern bool gpusort_input_sort_finish(GsInputSort *sort);

/* After finishing: note that the row read last may be read again. */
extern void gpusort_input_sort_mark(GsInputSort *sort);

/* Rows will be read again from a position on, which was marked. */
extern void gpusort_input_sort_restore(GsInputSort *sort, int64 position);

/* In gpusort_input_sort_get(): read a row on a GPU that may be kept. */
extern bool gpusort_input_sort_get_marked(GsInputSort *sort, int64 position,
										  TupleTableSlot *slot);

extern void gpusort_input_sort_end(GsInputSort *sort);

static inline bool
gpusort_input_sort_is_lost(const GsInputSort *sort)
{
	return sort->state == GS_SORT_LOST;
}

/* Does a GPU session have all rows?  If so, they can still be lost. */
static inline bool
gpusort_input_sort_is_on_gpu(const GsInputSort *sort)
{
	return sort->location == GS_ROWS_ON_GPU;
}

static inline bool
gpusort_input_sort_is_on_disk(const GsInputSort *sort)
{
	return sort->location == GS_ROWS_IN_RUNS || sort->sharing.merged;
}

/* Have other processes sorted rows, or added rows to the GPU session? */
static inline bool
gpusort_input_sort_is_parallel(const GsInputSort *sort)
{
	return sort->runs.nimported > 0 || sort->location == GS_ROWS_SHARED ||
		(sort->fed_by_others && sort->location == GS_ROWS_ON_GPU);
}

/*
 * After finishing: the number of rows that can be read, or were written to
 * spec->target; and the number of rows dropped because of spec->bound.
 */
static inline int64
gpusort_input_sort_count(const GsInputSort *sort)
{
	return sort->nrows;
}

static inline int64
gpusort_input_sort_dropped(const GsInputSort *sort)
{
	return sort->ndropped;
}

/* With spec->target, after finishing: the run that was written. */
static inline const GsSharedRun *
gpusort_input_sort_shared_run(const GsInputSort *sort)
{
	return &sort->runs.shared;
}

/*
 * Add a row that the row sorter refused, if necessary after an overflow or a cut.
 * Returns false if rows are lost.
 */
extern bool gpusort_input_sort_put_elsewhere(GsInputSort *sort,
											 TupleTableSlot *slot);

/* Show that so many rows have been read, before the last of them is added. */
static inline void
gpusort_input_sort_show_rows(GsInputSort *sort, int64 nrows)
{
	sort->progress->rows_read = nrows;
	if (unlikely(nrows % GPUSORT_ROWS_PER_REPORT == 0))
		gpusort_input_state_show_space(sort);
}

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
	return likely(gpusort_row_sorter_put(&sort->sorter, slot)) ||
		gpusort_input_sort_put_elsewhere(sort, slot);
}

/*
 * After finishing: read the row at a position, counted from 0, into the arrays of a
 * slot.  If the rows are on disk, positions must ascend unless spec->random_access is
 * set.  Returns false if the rows are lost.
 *
 * Only this function and gpusort_input_sort_in_place() decide from where rows are returned.
 */
static inline bool
gpusort_input_sort_get(GsInputSort *sort, int64 position,
					   TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;

	if (sort->location == GS_ROWS_SHARED)
		gpusort_range_reader_get(sort->sharing.ranges, position, values, isnull);
	else if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_external_get(sort->runs.external, position, values, isnull);
	else if (sort->location == GS_ROWS_IN_MEMORY)
		gpusort_memory_sort_get(sort->sorter.cpu, position, values, isnull);
	else if (unlikely(sort->marked != NULL))
		return gpusort_input_sort_get_marked(sort, position, slot);
	else if (unlikely(!gpusort_row_sorter_get_gpu(&sort->sorter, position,
												  values, isnull)))
	{
		sort->state = GS_SORT_LOST;
		return false;
	}
	return true;
}

/*
 * After finishing: do values that are passed by reference stay where they are until the sort
 * ends?
 */
static inline bool
gpusort_input_sort_has_lasting_rows(const GsInputSort *sort)
{
	return sort->location == GS_ROWS_IN_MEMORY ||
		(sort->location == GS_ROWS_SHARED && !sort->sharing.merged);
}

/*
 * Returns the next position, counted from 0, of a row that was not sorted together with the
 * row before it: with which a range begins that processes have shared.  Returns 0 if there is
 * none, or it is not known.
 */
static inline int64
gpusort_input_sort_next_joint(const GsInputSort *sort)
{
	if (sort->location != GS_ROWS_SHARED)
		return 0;
	return sort->sharing.ranges->start + sort->sharing.ranges->range.nrows;
}

/* See gpusort_sort_in_place() and gpusort_sort_lend(). */
extern bool gpusort_input_sort_in_place(GsInputSort *sort, int64 position,
										GsRowsInPlace *rows);
extern void gpusort_input_sort_lend(GsInputSort *sort, GsRecallRows recall, void *arg);

#endif							/* GPUSORT_INPUT_SORT_H */
