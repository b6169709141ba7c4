/*-------------------------------------------------------------------------
 *
 * sorter_choice.h
 *		Chooses the row sorter of an input sort: on a GPU, or in memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORTER_CHOICE_H
#define GPUSORT_SORTER_CHOICE_H

#include "sort/input_state.h"

/* Begin the first row sorter.  'again' if rows have been lost. */
extern void gpusort_sorter_choice_begin(GsInputSort *sort, bool again);

/*
 * Can batches of rows that do not fit in memory be sorted on a GPU?  They can if a GPU has
 * too little memory for all rows, too.
 */
extern bool gpusort_sorter_choice_may_use_batches(const GsInputSort *sort);

/* Begin a row sorter on a GPU for a batch of rows.  Returns false if there is none. */
extern bool gpusort_sorter_choice_begin_batch_sorter(GsInputSort *sort);

/* After an overflow: begin a row sorter on a GPU, or else a run builder. */
extern void gpusort_sorter_choice_begin_batch(GsInputSort *sort);

#endif							/* GPUSORT_SORTER_CHOICE_H */
