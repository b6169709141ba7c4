/*-------------------------------------------------------------------------
 *
 * ordering.h
 *		Collects the encoded keys of rows and sorts the rows by them.
 *
 * Rows are numbered from 0 in the order in which their keys are added.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDERING_H
#define GPUSORT_ORDERING_H

#include "core/radix_sort.h"
#include "sort/base/budget.h"

typedef struct GsOrdering GsOrdering;

/*
 * Create an empty ordering in the current memory context.  It is freed with that
 * context.  Keys have 'words' words and are stored in chunks of 2^chunk_shift
 * rows.  'nulls_first' tells where rows with NULL keys sort.  All memory for keys
 * and for sorting comes from 'budget'.
 */
extern GsOrdering *gpusort_ordering_create(GsBudget *budget, unsigned words,
										   unsigned chunk_shift,
										   bool nulls_first);

/*
 * Return where to write the next row's key, valid until the next call of this
 * module.  Returns NULL if no row can be added, because the budget is used up,
 * malloc() failed (budget->out_of_memory is then set), row numbers have run out,
 * or the capacity is reached.
 */
extern uint64 *gpusort_ordering_next_key(GsOrdering *ordering);

/*
 * Add the row whose key was written there.  Rows with 'null_key' set sort before
 * or after all others, and among themselves by their keys.  Returns false, and
 * adds nothing, if there is not enough memory, as above.
 */
extern bool gpusort_ordering_add(GsOrdering *ordering, bool null_key);

/*
 * Make the ordering refuse further rows once it has about 'rows' of them: from then
 * on it allocates no new chunk.
 */
extern void gpusort_ordering_set_capacity(GsOrdering *ordering, uint32 rows);

/* The number of rows added. */
extern uint32 gpusort_ordering_count(const GsOrdering *ordering);

/* Have row numbers run out? */
extern bool gpusort_ordering_is_full(const GsOrdering *ordering);

/*
 * Called with the entries of 'count' rows that are sorted by their keys, to sort
 * the ties among them.  May overwrite the keys of these rows.
 */
typedef void (*GsTiesCallback) (GsOrdering *ordering, uint64 *entries,
								uint32 count, void *arg);

/*
 * Sort 'count' rows, from a number on, and free all keys if these are the last rows.  The
 * sort is stable.  'ties' may be NULL.  Returns false if memory ran out.  Checks for
 * interrupts.
 */
extern bool gpusort_ordering_sort(GsOrdering *ordering, uint32 first, uint32 count,
								  GsTiesCallback ties, void *arg);

/*
 * For the callback: the key of a row; a stable sort of some entries by the current
 * keys of their rows; and scratch space for as many entries as were passed.
 */
extern uint64 *gpusort_ordering_key(const GsOrdering *ordering, uint32 row);
extern void gpusort_ordering_sort_some(GsOrdering *ordering, uint64 *entries,
									   uint32 count);
extern uint64 *gpusort_ordering_scratch(const GsOrdering *ordering);

/*
 * After sorting: the entries of the rows in sorted order.  The low 32 bits of an
 * entry are the number of its row.
 */
extern uint64 *gpusort_ordering_entries(GsOrdering *ordering);

/*
 * The keys of one process, for others that have the same memory.  Valid as long as the
 * ordering has its keys.
 */
typedef struct GsSharedKeys
{
	uint64	  **chunks;
	uint32		nchunks;
	uint32		nrows;
	uint32		nnull_keys;
} GsSharedKeys;

extern GsSharedKeys gpusort_ordering_share(const GsOrdering *ordering);

/*
 * Create an ordering of the keys of 'n' processes, which can only be used for what
 * callbacks use.  The chunks of each process follow those of the one before, so that row r
 * of process p has the number (number of earlier chunks << chunk_shift) + r.  'scratch' is
 * for gpusort_ordering_sort_some(), and for as many entries.
 */
extern GsOrdering *gpusort_ordering_create_view(const GsSharedKeys *keys, int n,
												unsigned words,
												unsigned chunk_shift);
extern void gpusort_ordering_set_scratch(GsOrdering *ordering, uint64 *scratch);

/* The keys of all rows, for the radix sort. */
extern GsKeyTable gpusort_ordering_key_table(const GsOrdering *ordering);

/*
 * Write an entry for each of 'count' rows, from a number on: to 'null_keys' if it has a
 * NULL key, or to 'regular'.  Returns how many have none.
 */
extern uint32 gpusort_ordering_fill_entries(const GsOrdering *ordering,
											uint32 first, uint32 count,
											uint64 *regular, uint64 *null_keys);

/* Free the keys of a chunk that is no longer needed. */
extern void gpusort_ordering_free_chunk(GsOrdering *ordering, uint32 chunk);

/*
 * GsLookCallback.  An interrupt that ends the query does so from here, by a jump
 * out of the radix sort.  This is safe because the radix sort holds no resources.
 * Other interrupts, such as a barrier that all processes have to pass, are
 * processed here, and the sort continues.
 */
extern void gpusort_ordering_check_interrupts(void);

#endif							/* GPUSORT_ORDERING_H */
