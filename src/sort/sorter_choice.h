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

#endif							/* GPUSORT_SORTER_CHOICE_H */
