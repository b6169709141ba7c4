/*-------------------------------------------------------------------------
 *
 * gpusort_private.h
 *		Makes and reads custom_private of the plan nodes of sorts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_PRIVATE_H
#define GPUSORT_GPUSORT_PRIVATE_H

#include "nodes/plannodes.h"

#include "sort/base/sort_spec.h"

/*
 * Make custom_private of a node that sorts as 'sort' does, which may be an
 * IncrementalSort.  'repeatable' says whether its input can be read again, and 'ties' whether a
 * GPU would leave most rows as ties.  'divided' and 'paired' are as gpusort_private_divided() and
 * gpusort_private_paired() return them.
 */
extern List *gpusort_private_make(const Sort *sort, bool repeatable, bool ties, int divided,
								  bool paired);

/* Can the input of a GpuSort node be read a second time? */
extern bool gpusort_private_repeatable(const CustomScan *gpusort);

/* Would a GPU leave most of its rows as ties?  Of a divided sort, this is set later. */
extern bool gpusort_private_ties(const CustomScan *gpusort);
extern void gpusort_private_set_ties(CustomScan *gpusort, bool ties);

/*
 * Returns the sort keys of a Sort, or of a node that was made from one.  They point into
 * the node.
 */
extern GsSortKeys gpusort_private_keys_of_sort(const Sort *sort);
extern GsSortKeys gpusort_private_keys(const CustomScan *gpusort);

/*
 * Returns by how many of its sort keys, the first ones, the input of the node is
 * sorted already: 0 unless the node was made from an IncrementalSort.
 */
extern int	gpusort_private_presorted(const CustomScan *gpusort);

/*
 * Returns by how many of its sort keys a GpuSort below a Gather is divided: then each process
 * returns all rows that agree in these keys, or none of them.  0 if each process sorts its own
 * input.
 */
extern int	gpusort_private_divided(const CustomScan *gpusort);

/* Is it one of the two sorts below a Merge Join that are divided alike? */
extern bool gpusort_private_paired(const CustomScan *gpusort);

#endif							/* GPUSORT_GPUSORT_PRIVATE_H */
