/*-------------------------------------------------------------------------
 *
 * input_state.h
 *		The state of an input sort.
 *
 * Only the files of an input sort access members of the struct: input_sort.c, input_report.c,
 * input_top_n.c, input_overflow.c, input_loss.c and sorter_choice.c.  It is public because
 * gpusort_input_sort_put() and gpusort_input_sort_get(), which are called for each row, are
 * inline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_STATE_H
#define GPUSORT_INPUT_STATE_H

#include "sort/base/progress.h"
#include "sort/base/sort_spec.h"
#include "sort/cutoff.h"
#include "sort/marked_rows.h"
#include "sort/row_runs.h"
#include "sort/row_sharing.h"
#include "sort/row_sorter.h"

/*
 * States of a sort.  gpusort_input_sort_rows() and _finish(), and
 * gpusort_input_loss_restart(), move it between them as follows:
 *
 *	        rows()            finish()
 *	ADDING ---------> SORTED ----------> READY
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
	GS_SORT_ADDING,				/* rows are being added */
	GS_SORT_SORTED,				/* the rows of this process are in order */
	GS_SORT_READY,				/* all rows are in order and can be read */
	GS_SORT_LOST				/* the input has to be read again */
} GsSortState;

/*
 * Where the rows of a sort are.  They move between these locations as follows:
 *
 *	GPU -----> RUNS		overflow: the device has no memory for more rows
 *	MEMORY --> RUNS		overflow, or the rows are merged with others' runs
 *	MEMORY --> SHARED	all processes have sorted their rows together
 *	RUNS ----> SHARED	all processes are merging their runs together
 *
 * A sort begins in GPU or MEMORY, also after restart().
 */
typedef enum GsRowLocation
{
	GS_ROWS_ON_GPU,				/* a GPU session has all rows */
	GS_ROWS_IN_MEMORY,			/* a memory sort has all rows */
	GS_ROWS_IN_RUNS,			/* runs and a run builder have all rows */
	GS_ROWS_SHARED				/* ranges that processes share have all rows,
								 * also those of other processes */
} GsRowLocation;

typedef struct GsInputSort
{
	const GsSortSpec *spec;
	GsProgress *progress;
	GsSortState state;
	GsRowLocation location;
	GsRowSorter sorter;			/* the rows that are not in runs, if any */
	GsRowSorter drained;		/* a GPU session whose rows are in runs, while
								 * other processes may still find that it is
								 * full */
	GsRowRuns	runs;
	bool		fed_by_others;	/* can other processes add rows to the GPU
								 * session? */
	GsRowSharing sharing;		/* what processes sort together */
	GsFallback	gpu_reason;		/* why a GPU is not, or no longer, used */
	GsFallback	input_failure;	/* see GsInput.failure */
	GsMarkedRows *marked;		/* rows on a GPU after a mark, or NULL */
	GsCutoff   *cutoff;			/* rows after it are not wanted; or NULL */
	int64		ndropped;		/* rows dropped by all processes */
	Size		most_bytes;		/* peak memory of memory sorts that were cut */
	int64		nrows;			/* rows kept; valid after finishing */
} GsInputSort;

/* Go to another state. */
extern void gpusort_input_state_enter(GsInputSort *sort, GsSortState state);

/* The rows have moved. */
extern void gpusort_input_state_set_location(GsInputSort *sort, GsRowLocation location);

/*
 * Returns 'kept', which says whether the rows are still there.  If they are not, the sort
 * is lost, and other processes do not wait for it.
 */
extern bool gpusort_input_state_lost_unless(GsInputSort *sort, bool kept);

/* Show in sort->progress the memory, GPU and files that the sort has now. */
extern void gpusort_input_state_show_space(GsInputSort *sort);

/* The same, and the phase that begins. */
extern void gpusort_input_state_show_phase(GsInputSort *sort, GsProgressPhase phase);

#endif							/* GPUSORT_INPUT_STATE_H */
