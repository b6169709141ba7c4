/*-------------------------------------------------------------------------
 *
 * bounded_sort.h
 *		A sort of which few rows are wanted: a top-N heap.
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
 * Read the input, keep the first 'bound' rows of its order, and stand before
 * them.  They are kept in the current memory context, in which the input is
 * read as well.
 */
extern GsBoundedSort *gpusort_bounded_sort(const GsSortSpec *spec,
										   int64 bound);

/*
 * Move to the next or previous row and put it into 'slot', a virtual slot of
 * the rows' type; what is passed by reference is valid until the next call.
 * At the end of the rows, clear the slot.  Backward and rescan need
 * random_access.
 */
extern void gpusort_bounded_next(GsBoundedSort *sort, bool forward,
								 TupleTableSlot *slot);
extern void gpusort_bounded_rescan(GsBoundedSort *sort);

extern void gpusort_bounded_report(GsBoundedSort *sort,
								   GsSortReport *report);

extern void gpusort_bounded_end(GsBoundedSort *sort);

#endif							/* GPUSORT_BOUNDED_SORT_H */
