/*-------------------------------------------------------------------------
 *
 * key_sort.h
 *		Collects the encoded keys of rows and sorts the rows by them.
 *
 * Rows are numbered from 0 in the order in which their keys are added.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_SORT_H
#define GPUSORT_KEY_SORT_H

#include "core/radix_sort.h"
#include "sort/base/budget.h"

typedef struct GsKeySort GsKeySort;

/*
 * Create an empty key sort in the current memory context.  It is freed with that
 * context.  Keys have 'words' words and are stored in chunks of 2^chunk_shift
 * rows.  'nulls_first' tells where rows with NULL keys sort.  All memory for keys
 * and for sorting comes from 'budget'.  Once there are about 'capacity' rows, no new chunk is
 * allocated, so that further rows are refused.
 */
extern GsKeySort *gpusort_key_sort_create(GsBudget *budget, unsigned words,
										  unsigned chunk_shift,
										  bool nulls_first, uint32 capacity);

/*
 * Return where to write the next row's key, valid until the next call of this
 * module.  Returns NULL if no row can be added, because the budget is used up,
 * malloc() failed (budget->out_of_memory is then set), row numbers have run out,
 * or the capacity is reached.
 */
extern uint64 *gpusort_key_sort_next_key(GsKeySort *key_sort);

/*
 * Add the row whose key was written there.  Rows with 'null_key' set sort before
 * or after all others, and among themselves by their keys.  Returns false, and
 * adds nothing, if there is not enough memory, as above.
 */
extern bool gpusort_key_sort_add(GsKeySort *key_sort, bool null_key);

/* The number of rows added. */
extern uint32 gpusort_key_sort_count(const GsKeySort *key_sort);

/* Have row numbers run out? */
extern bool gpusort_key_sort_is_full(const GsKeySort *key_sort);

/*
 * Called with the entries of 'count' rows that are sorted by their keys, to sort
 * the ties among them.  May overwrite the keys of these rows.
 */
typedef void (*GsTiesCallback) (GsKeySort *key_sort, uint64 *entries,
								uint32 count, void *arg);

/*
 * Sort 'count' rows, from a number on, and free all keys if these are the last rows.  The
 * sort is stable.  'ties' may be NULL.  Returns false if memory ran out.  Checks for
 * interrupts.
 */
extern bool gpusort_key_sort_range(GsKeySort *key_sort, uint32 first, uint32 count,
								   GsTiesCallback ties, void *arg);

/*
 * For the callback: the key of a row; a stable sort of some entries by the current
 * keys of their rows; and scratch space for as many entries as were passed.
 */
extern uint64 *gpusort_key_sort_key(const GsKeySort *key_sort, uint32 row);
extern void gpusort_key_sort_some(GsKeySort *key_sort, uint64 *entries,
								  uint32 count);
extern uint64 *gpusort_key_sort_scratch(const GsKeySort *key_sort);

/*
 * After sorting: the entries of the rows in sorted order.  The low 32 bits of an
 * entry are the number of its row.
 */
extern uint64 *gpusort_key_sort_entries(GsKeySort *key_sort);

/*
 * The keys of one process, for others that have the same memory.  Valid as long as the
 * key sort has its keys.
 */
typedef struct GsSharedKeys
{
	uint64	  **chunks;
	uint32		nchunks;
	uint32		nrows;
	uint32		nnull_keys;
} GsSharedKeys;

extern GsSharedKeys gpusort_key_sort_share(const GsKeySort *key_sort);

/*
 * Create a key sort of the keys of 'n' processes, which can only be used for what
 * callbacks use.  The chunks of each process follow those of the one before, so that row r
 * of process p has the number (number of earlier chunks << chunk_shift) + r.  'scratch' is
 * for gpusort_key_sort_some(), and for as many entries.
 */
extern GsKeySort *gpusort_key_sort_create_view(const GsSharedKeys *keys, int n,
											   unsigned words,
											   unsigned chunk_shift);
extern void gpusort_key_sort_set_scratch(GsKeySort *key_sort, uint64 *scratch);

/* The keys of all rows, for the radix sort. */
extern GsKeyTable gpusort_key_sort_key_table(const GsKeySort *key_sort);

/*
 * Write an entry for each of 'count' rows, from a number on: to 'null_keys' if it has a
 * NULL key, or to 'regular'.  Returns how many have none.
 */
extern uint32 gpusort_key_sort_fill_entries(const GsKeySort *key_sort,
											uint32 first, uint32 count,
											uint64 *regular, uint64 *null_keys);

/* Free the keys of a chunk that is no longer needed. */
extern void gpusort_key_sort_free_chunk(GsKeySort *key_sort, uint32 chunk);

/*
 * GsLookCallback.  An interrupt that ends the query does so from here, by a jump
 * out of the radix sort.  This is safe because the radix sort holds no resources.
 * Other interrupts, such as a barrier that all processes have to pass, are
 * processed here, and the sort continues.
 */
extern void gpusort_key_sort_check_interrupts(void);

#endif							/* GPUSORT_KEY_SORT_H */
