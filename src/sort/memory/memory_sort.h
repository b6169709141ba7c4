/*-------------------------------------------------------------------------
 *
 * memory_sort.h
 *		Sorts rows in the backend's own memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MEMORY_SORT_H
#define GPUSORT_MEMORY_SORT_H

#include "sort/base/budget.h"
#include "sort/base/sort_spec.h"
#include "sort/memory/key_sort.h"
#include "sort/memory/row_store.h"

typedef struct GsMemorySort GsMemorySort;

/*
 * Create an empty sort in the current memory context.  It is freed with that
 * context.  'spec' and what it points to must stay valid.
 *
 * For rows that several processes sort together (shared_sort.h), 'budget' is a shared one, and all
 * processes use the same chunk_shift, which choose_shift() chooses in one of them for 'limit' bytes
 * of all of them.  Otherwise it is 0.
 */
extern GsMemorySort *gpusort_memory_sort_create(const GsSortSpec *spec, GsBudget *budget,
												unsigned chunk_shift);
extern unsigned gpusort_memory_sort_choose_shift(const GsSortSpec *spec,
												 Size limit, int processes);

/* The keys, the rows and the budget of a sort that has not sorted its rows. */
extern GsKeySort *gpusort_memory_sort_keys(GsMemorySort *sort);
extern GsRowStore *gpusort_memory_sort_store(GsMemorySort *sort);
extern GsBudget *gpusort_memory_sort_budget(GsMemorySort *sort);

/* Returns how many rows a memory sort takes because of spec->bound, or PG_UINT32_MAX. */
extern double gpusort_memory_sort_capacity(const GsSortSpec *spec);

/*
 * Add a row.  Returns false, and adds nothing, if there is no memory for it or
 * the capacity is reached.  Then no other row must be added, and
 * gpusort_memory_sort_refusal() returns the reason; it does not know about the
 * capacity.
 */
extern bool gpusort_memory_sort_put(GsMemorySort *sort,
									const Datum *values, const bool *isnull);
extern GsReason gpusort_memory_sort_refusal(const GsMemorySort *sort);

/*
 * Sort the rows from a number on, or if the system has too little memory, as many of them as it has
 * memory for.  Sets *sorted to how many, which are at the first positions from then on.  Returns
 * false, and changes nothing, if there is no memory for 'least' rows.  Checks for interrupts.
 */
extern bool gpusort_memory_sort_sort(GsMemorySort *sort, uint32 first, uint32 least,
									 uint32 *sorted);

/* Bytes of the budget in use. */
extern Size gpusort_memory_sort_bytes(const GsMemorySort *sort);

/* The number of rows added. */
extern int64 gpusort_memory_sort_count(const GsMemorySort *sort);

/*
 * After sorting: read the row at a position in sorted order, counted from 0.
 * Reading at ascending positions is fastest.  Values passed by reference point
 * into the memory of the sort.
 */
extern void gpusort_memory_sort_get(GsMemorySort *sort, int64 position,
									Datum *values, bool *isnull);

/*
 * The same, but return the stored row itself, and set *bitmap to its NULL bitmap or to NULL.
 */
extern char *gpusort_memory_sort_find(GsMemorySort *sort, int64 position, const uint8 **bitmap);

/*
 * When memory is full, rows beyond the bound are dropped only if they are at least
 * this fraction of all rows.  Otherwise the rows would be sorted again and again.
 */
#define GPUSORT_LEAST_CUT_DIVISOR	8

/*
 * Take the rows out again, in the order of arrival.  Memory is freed on the way, so values
 * passed by reference are valid only until the next call.  Returns false when all rows
 * have been taken.
 *
 * After sorting, gpusort_memory_sort_keep_first() restricts this to the first
 * 'count' rows in sorted order, which must be at most seven eighths of all rows.
 * They still come in the order of arrival.
 */
extern void gpusort_memory_sort_keep_first(GsMemorySort *sort, uint32 count);
extern bool gpusort_memory_sort_take(GsMemorySort *sort,
									 Datum *values, bool *isnull);

/*
 * Estimate, for the planner, how many bytes a sort needs.  The key of a row has
 * 'words' words.
 */
extern double gpusort_memory_sort_estimate(unsigned words, double rows,
										   int row_width);

#endif							/* GPUSORT_MEMORY_SORT_H */
