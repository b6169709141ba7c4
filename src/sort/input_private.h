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

/* Is there a bound, and do twice the rows that are wanted fit into the memory allowed? */
extern bool gpusort_input_top_n_fits_in_memory(const GsSortSpec *spec);

/*
 * Is a sort expected to be cut?  Then it has no GPU, since to drop a row takes less time than
 * to put it there.
 */
extern bool gpusort_input_top_n_will_cut(const GsSortSpec *spec);

/* Would dropping the rows that are not wanted make enough room? */
extern bool gpusort_input_top_n_may_cut(const GsInputSort *sort);

/* Drop these rows of a memory sort.  It may overflow. */
extern void gpusort_input_top_n_cut(GsInputSort *sort);

/* If rows have been dropped, return only those within the bound. */
extern void gpusort_input_top_n_drop_last_rows(GsInputSort *sort);

#endif							/* GPUSORT_INPUT_PRIVATE_H */
