/*-------------------------------------------------------------------------
 *
 * memory_sort.h
 *		A sort session in the backend's own memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MEMORY_SORT_H
#define GPUSORT_MEMORY_SORT_H

#include "sort/base/budget.h"
#include "sort/base/sort_spec.h"

typedef struct GsMemorySort GsMemorySort;

/*
 * Make an empty session in the current memory context, which is also what
 * frees it.  What 'spec' points to must stay.
 */
extern GsMemorySort *gpusort_memory_sort_create(const GsSortSpec *spec,
												GsBudget *budget);

/* Have the session refuse rows when there are about as many as 'rows'. */
extern void gpusort_memory_sort_set_capacity(GsMemorySort *sort, double rows);

/*
 * Add a row.  Returns false, and adds nothing, if there is no place for it:
 * gpusort_memory_sort_refusal() says why, unless that is the capacity.
 */
extern bool gpusort_memory_sort_put(GsMemorySort *sort,
									const Datum *values, const bool *isnull);
extern GsFallback gpusort_memory_sort_refusal(const GsMemorySort *sort);

/*
 * Sort.  Returns false if the system has no memory left; all rows are still
 * there then, to be taken.  Checks for interrupts.
 */
extern bool gpusort_memory_sort_sort(GsMemorySort *sort);

/* After sorting: for pg_gpusort.debug_stock_ties. */
extern void gpusort_memory_sort_apply_stock_ties(GsMemorySort *sort);

/* Bytes of the budget that are taken, and taking more for another purpose. */
extern Size gpusort_memory_sort_bytes(const GsMemorySort *sort);
extern void gpusort_memory_sort_reserve(GsMemorySort *sort, Size bytes);

/* Rows added. */
extern int64 gpusort_memory_sort_count(const GsMemorySort *sort);

/*
 * After sorting: read the row at a position in sorted order, from 0.  Reading
 * ascending positions is fastest.  What is passed by reference points into the
 * session.
 */
extern void gpusort_memory_sort_get(GsMemorySort *sort, int64 position,
									Datum *values, bool *isnull);

/*
 * The same in the form that stands alone (see row_format.h): how long the row
 * is, and writing it to a place of so many bytes.
 */
extern Size gpusort_memory_sort_packed_size(GsMemorySort *sort,
											int64 position);
extern void gpusort_memory_sort_pack(GsMemorySort *sort, int64 position,
									 char *packed, Size bytes);

/*
 * When memory is full, rows that are not wanted are dropped only if they are this
 * part of all rows at least.  Otherwise the rows would be sorted again and again.
 */
#define GPUSORT_LEAST_CUT_PART	8

/*
 * Instead of sorting: take the rows out again, in the order of arrival.  What
 * is passed by reference is valid until the next call, and memory is freed on
 * the way.  Returns false when all are taken.
 *
 * After sorting, the rows that are first in sorted order can be taken so, once
 * it is said how many: seven eighths of all at most.
 */
extern void gpusort_memory_sort_keep_first(GsMemorySort *sort, uint32 count);
extern bool gpusort_memory_sort_take(GsMemorySort *sort,
									 Datum *values, bool *isnull);

/* Bytes that a session takes for keys of so many words, as a planner's estimate. */
extern double gpusort_memory_sort_estimate(unsigned words, double rows,
										   int row_width);

#endif							/* GPUSORT_MEMORY_SORT_H */
