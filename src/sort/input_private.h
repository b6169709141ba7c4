/*-------------------------------------------------------------------------
 *
 * input_private.h
 *		What the other files of an input sort call of input_top_n.c.
 *
 * Adding a row can drop rows beyond the bound, and the rows that are kept are added to the
 * sort again.  So input_sort.c and input_top_n.c call each other.  The functions of the
 * latter are declared here, apart from any file, so that includes do not go in a circle.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_PRIVATE_H
#define GPUSORT_INPUT_PRIVATE_H

#include "sort/input_state.h"

/* Make a new row sorter refuse rows once it should be cut. */
extern void gpusort_input_top_n_limit_sorter(GsInputSort *sort);

/*
 * Would dropping the rows that are not wanted make enough room?  Rows on disk are not
 * dropped.
 */
extern bool gpusort_input_top_n_may_drop_rows(const GsInputSort *sort);

/* Drop the rows that are not wanted.  Returns false if rows are lost. */
extern bool gpusort_input_top_n_drop_rows(GsInputSort *sort);

/*
 * Move the rows that are wanted from a GPU session, which is sorted, to a memory sort.
 * Returns false if they are lost.
 */
extern bool gpusort_input_top_n_leave_gpu(GsInputSort *sort, GsFallback reason);

/* If rows have been dropped, return only those within the bound. */
extern void gpusort_input_top_n_drop_last_rows(GsInputSort *sort);

#endif							/* GPUSORT_INPUT_PRIVATE_H */
