/*-------------------------------------------------------------------------
 *
 * input_overflow.h
 *		Writes the rows of an input sort to disk, when no more of them fit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_OVERFLOW_H
#define GPUSORT_INPUT_OVERFLOW_H

#include "sort/input_state.h"

/*
 * The row sorter takes no more rows.  Write its rows to disk, and begin a run
 * builder.  Returns false if rows are lost.
 */
extern bool gpusort_input_overflow_write_rows(GsInputSort *sort);

/*
 * May rows of a GPU be written?  Not if there are more than temp_file_limit allows, and the
 * sort can start over: they may fit in memory then.
 */
extern bool gpusort_input_overflow_may_write(const GsInputSort *sort);

/* Write the rows of the row sorter and end it.  Returns false if they are lost. */
extern bool gpusort_input_overflow_write_sorter(GsInputSort *sort);

/* See gpusort_sort_overflow(). */
extern bool gpusort_input_overflow_write_session(GsInputSort *sort);

#endif							/* GPUSORT_INPUT_OVERFLOW_H */
