/*-------------------------------------------------------------------------
 *
 * bounded_sort.h
 *		Sorts rows of which only few are wanted, with a top-N heap.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BOUNDED_SORT_H
#define GPUSORT_BOUNDED_SORT_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"
#include "sort/sort.h"

typedef struct GsBoundedSort GsBoundedSort;

/*
 * Read the input, whose rows are of type 'tupdesc', and keep the first 'bound' rows in
 * the order of 'keys'.  If 'bound' is negative, keep all rows: an encoding of the keys is
 * distrusted (see distrust.h), but was not when the query was planned.  The sort is then a
 * cursor before the first row.  The input is read in the current memory context, and the rows
 * are in one below it.
 */
extern GsBoundedSort *gpusort_bounded_sort(const GsSortSpec *spec,
										   const GsSortKeys *keys,
										   TupleDesc tupdesc, int64 bound);

/*
 * Move to the next or previous row and store it in 'slot', a virtual slot of the
 * rows' type.  Values passed by reference are valid until the next call.  If there is
 * no such row, the slot is cleared.  Moving backward, rescanning, and marking a
 * position, requires spec->random_access.
 */
extern void gpusort_bounded_next(GsBoundedSort *sort, bool forward,
								 TupleTableSlot *slot);
extern void gpusort_bounded_rescan(GsBoundedSort *sort);
extern void gpusort_bounded_mark(GsBoundedSort *sort);
extern void gpusort_bounded_restore(GsBoundedSort *sort);

extern void gpusort_bounded_report(GsBoundedSort *sort,
								   GsSortReport *report);

extern void gpusort_bounded_end(GsBoundedSort *sort);

#endif							/* GPUSORT_BOUNDED_SORT_H */
