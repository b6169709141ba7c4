/*-------------------------------------------------------------------------
 *
 * row_batches.h
 *		Divides a presorted input into batches, which are sorted separately.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_BATCHES_H
#define GPUSORT_ROW_BATCHES_H

#include "nodes/execnodes.h"

#include "exec/row_source.h"
#include "sort/base/sort_report.h"
#include "sort/base/sort_spec.h"

typedef struct GsRowBatches GsRowBatches;

/*
 * Create it in the current memory context, for the input of 'parent', which comes
 * in the order of the first 'presorted' of 'keys'.  'source' makes rows of the
 * sort from rows of the input.
 */
extern GsRowBatches *gpusort_row_batches_create(PlanState *parent,
												const GsRowSource *source,
												const GsSortKeys *keys,
												int presorted);

/*
 * Begin a batch, the first one too.  Returns how many rows it should have at
 * least, or 0 if there are no rows left.  'memory' is what a sort may use, in bytes.
 */
extern int64 gpusort_row_batches_begin(GsRowBatches *batches, Size memory);

/* Returns the next row of the batch, or NULL at its end. */
extern TupleTableSlot *gpusort_row_batches_next(GsRowBatches *batches);

/*
 * The batch has been sorted.  What its rows needed decides on the size of the next
 * one.  Returns the number of its rows.
 */
extern int64 gpusort_row_batches_end(GsRowBatches *batches,
									 const GsSortReport *report);

/* Start over, since the input is read again from its start. */
extern void gpusort_row_batches_rewind(GsRowBatches *batches);

#endif							/* GPUSORT_ROW_BATCHES_H */
