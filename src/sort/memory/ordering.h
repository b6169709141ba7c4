/*-------------------------------------------------------------------------
 *
 * ordering.h
 *		Collects the encoded keys of rows, and puts the rows into order.
 *
 * Rows are numbered from 0 in the order in which their keys are added.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDERING_H
#define GPUSORT_ORDERING_H

#include "sort/base/budget.h"

typedef struct GsOrdering GsOrdering;

/*
 * Make an empty ordering in the current memory context, which is also what
 * frees it, for keys of 'words' words kept in chunks of 2^chunk_shift rows.
 * 'nulls_first' says where rows set apart by gpusort_ordering_add() go.  What
 * adding and sorting take comes from 'budget'.
 */
extern GsOrdering *gpusort_ordering_create(GsBudget *budget, unsigned words,
										   unsigned chunk_shift,
										   bool nulls_first);

/*
 * The place for the next row's key, valid until the next call here, or NULL
 * if there is none: the budget is used up, malloc() failed
 * (budget->out_of_memory), row numbers have run out, or there are as many rows
 * as there are to be.
 */
extern uint64 *gpusort_ordering_next_key(GsOrdering *ordering);

/*
 * Add the row whose key was written to that place; a row with 'apart' set goes
 * before or behind all others.  Returns false, and adds nothing, if memory is
 * lacking as above.
 */
extern bool gpusort_ordering_add(GsOrdering *ordering, bool null_key);

/*
 * Have the ordering take no more rows than about 'rows': when there are as many, it
 * has no place for one that needs a new chunk.
 */
extern void gpusort_ordering_set_capacity(GsOrdering *ordering, uint32 rows);

/* Rows added. */
extern uint32 gpusort_ordering_count(const GsOrdering *ordering);

/* Have row numbers run out? */
extern bool gpusort_ordering_is_full(const GsOrdering *ordering);

/*
 * Called with 'count' entries of rows that are in the order of their keys, to
 * put those with equal keys into order.  May write to keys of these rows.
 */
typedef void (*GsTiesCallback) (GsOrdering *ordering, uint64 *entries,
								uint32 count, void *arg);

/*
 * Sort, stably, and free the keys.  'ties' may be NULL.  Returns false if memory
 * ran out; all is as it was then.  Checks for interrupts.
 */
extern bool gpusort_ordering_sort(GsOrdering *ordering, GsTiesCallback ties,
								  void *arg);

/*
 * For the callback: a row's key, sorting some entries again by what their rows'
 * keys are now, stably, and room for as many entries.
 */
extern uint64 *gpusort_ordering_key(const GsOrdering *ordering, uint32 row);
extern void gpusort_ordering_sort_some(GsOrdering *ordering, uint64 *entries,
									   uint32 count);
extern uint64 *gpusort_ordering_scratch(const GsOrdering *ordering);

/*
 * After sorting: entries in order, one per row; an entry's low 32 bits are the
 * row's number.
 */
extern uint64 *gpusort_ordering_entries(GsOrdering *ordering);

/* Free the keys of one chunk that is not needed any more. */
extern void gpusort_ordering_free_chunk(GsOrdering *ordering, uint32 chunk);

#endif							/* GPUSORT_ORDERING_H */
