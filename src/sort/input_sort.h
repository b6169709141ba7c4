/*-------------------------------------------------------------------------
 *
 * input_sort.h
 *		Sorts the rows of an input, in memory or on disk.
 *
 * Rows are added to a sorter.  When a row does not fit, the sort overflows: the
 * rows of the sorter are written as a run.  The rows that follow are written as
 * runs too, batch by batch.  If there is a GPU, each batch is a sorter with a new
 * GPU session; otherwise a run builder sorts them.  Finally, the runs are merged.
 *
 * A GPU session can be lost together with its rows.  After any function returns
 * false, call gpusort_input_sort_restart() and read the input again.  It is then
 * sorted without a GPU, so this happens at most once.
 *
 * With spec->bound, only that many rows are kept.  Whenever a sorter has several
 * times as many, it is sorted and keeps the first ones only.  The last of these is
 * the cutoff: from then on, rows that sort after it are dropped as they arrive.
 *
 * Other processes can take part.  They add rows to the GPU session, or, without a
 * GPU, each of them sorts its rows in a session of its own and shares a run.
 *
 * The struct is open only because each row passes put() and get(), which are
 * inline.  Callers use the functions and no members.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_SORT_H
#define GPUSORT_INPUT_SORT_H

#include "executor/tuptable.h"

#include "service/service_client.h"
#include "sort/base/sort_report.h"
#include "sort/base/sort_spec.h"
#include "sort/cutoff.h"
#include "sort/row_sorter.h"
#include "sort/row_runs.h"

/*
 * States of a sort.  The moves between them, and who makes them:
 *
 *	        rows()            finish()
 *	TAKING ---------> SORTED ----------> READY
 *	 ^   |              |                  |
 *	 |   v              v                  v
 *	 |   +--------------+------------------+-----> LOST
 *	 |                                              |
 *	 +----------------------------------------------+
 *	                   restart()
 *
 * A sort becomes LOST when a function returns false.
 */
typedef enum GsSortState
{
	GS_SORT_TAKING,				/* rows are being added */
	GS_SORT_SORTED,				/* the rows of this process are in order */
	GS_SORT_READY,				/* all rows are, and can be read */
	GS_SORT_LOST				/* the input has to be read again */
} GsSortState;

/*
 * Where the rows of a sort are.  The moves between these places:
 *
 *	GPU -----> MEMORY	most rows are not wanted (spec->bound)
 *	MEMORY --> MEMORY	the same again: the rows that are wanted move
 *	GPU -----> RUNS		the device has no room for more rows
 *	MEMORY --> RUNS		the same, or the rows are merged with others' runs
 *	RUNS ----> BATCH	a GPU session takes the rows that follow
 *	BATCH ---> RUNS		it has no room for more, or these were the last rows
 *
 * A sort begins with GPU or MEMORY, and so it does after restart().  BATCH is only
 * a place while rows are being added.
 */
typedef enum GsRowLocation
{
	GS_ROWS_ON_GPU,				/* a GPU session has all rows */
	GS_ROWS_IN_MEMORY,			/* a memory sort has all rows */
	GS_ROWS_IN_RUNS,			/* runs have all rows; a builder adds more */
	GS_ROWS_IN_BATCH			/* runs have the first rows, a GPU session
								 * those that follow */
} GsRowLocation;

typedef struct GsInputSort
{
	const GsSortSpec *spec;
	GsSortState state;
	GsRowLocation location;
	GsRowSorter sorter;			/* its sessions end with GS_ROWS_IN_RUNS */
	GsRowRuns	runs;
	bool		fed_by_others;	/* have others been given the GPU session? */
	GsFallback	gpu_reason;		/* why no GPU is used, or not any longer */
	GsFallback	input_failure;	/* see GsInput.failure */
	GsCutoff   *cutoff;			/* rows behind it are not wanted, or NULL */
	int64		ndropped;		/* rows that are not wanted, of all processes */
	Size		most_bytes;		/* most memory of a sorter that was cut */
	int64		nrows;			/* rows kept, known after finishing */
} GsInputSort;

/*
 * Begin, with all memory in and below 'context', whose end also ends the sort.
 * What 'spec' points to must stay.
 */
extern void gpusort_input_sort_begin(GsInputSort *sort,
									 const GsSortSpec *spec,
									 MemoryContext context);

/* See gpusort_sort_gpu_handle() and gpusort_sort_run_set(). */
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

/*
 * Rows are lost with the GPU session: why, and getting ready to read the input
 * again.
 */
extern GsFallback gpusort_input_sort_loss(const GsInputSort *sort);
extern void gpusort_input_sort_restart(GsInputSort *sort);

/* After finishing: allow the row read last to be read again. */
extern void gpusort_input_sort_mark(GsInputSort *sort);

/*
 * After finishing: what was done, apart from the times of the host.  For a GPU
 * session, sort_ms is the device's own time.
 */
extern void gpusort_input_sort_report(const GsInputSort *sort,
									  GsSortReport *report);

extern void gpusort_input_sort_end(GsInputSort *sort);

static inline bool
gpusort_input_sort_is_lost(const GsInputSort *sort)
{
	return sort->state == GS_SORT_LOST;
}

/* Does a GPU session have all rows?  They can still be lost then. */
static inline bool
gpusort_input_sort_is_on_gpu(const GsInputSort *sort)
{
	return sort->location == GS_ROWS_ON_GPU;
}

static inline bool
gpusort_input_sort_is_on_disk(const GsInputSort *sort)
{
	return sort->location == GS_ROWS_IN_RUNS;
}

/* Have other processes sorted rows, or added them to the GPU session? */
static inline bool
gpusort_input_sort_is_parallel(const GsInputSort *sort)
{
	return sort->runs.nimported > 0 ||
		(sort->fed_by_others && sort->location == GS_ROWS_ON_GPU);
}

/*
 * After finishing: the number of rows that can be read, or were written to
 * spec->target; and of those that were dropped because of spec->bound.
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

/* Find a place for a row that the sorter does not take; false if rows are lost. */
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
	return likely(gpusort_row_sorter_put(&sort->sorter, slot)) ||
		gpusort_input_sort_put_elsewhere(sort, slot);
}

/*
 * After finishing: read the row at a position, from 0, into the arrays of a slot.
 * Rows on disk are read by ascending positions, unless spec->random_access.
 * Returns false if the rows are lost.
 *
 * This is the only place that decides from where a row is returned.
 */
static inline bool
gpusort_input_sort_get(GsInputSort *sort, int64 position,
					   TupleTableSlot *slot)
{
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;

	if (sort->location == GS_ROWS_IN_RUNS)
		gpusort_external_get(sort->runs.external, position, values, isnull);
	else if (sort->location == GS_ROWS_IN_MEMORY || sort->sorter.stock_ties)
		gpusort_memory_sort_get(sort->sorter.cpu, position, values, isnull);
	else if (unlikely(!gpusort_row_sorter_get_gpu(&sort->sorter, position,
												  values, isnull)))
	{
		sort->state = GS_SORT_LOST;
		return false;
	}
	return true;
}

#endif							/* GPUSORT_INPUT_SORT_H */
