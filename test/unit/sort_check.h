/*-------------------------------------------------------------------------
 *
 * sort_check.h
 *		Compares the radix sort with a reference sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_CHECK_H
#define GPUSORT_SORT_CHECK_H

#include "core/radix_sort.h"

/* A table of keys in chunks that are allocated without a spare byte. */
typedef struct KeyChunks
{
	GsKeyTable	table;
	uint32_t	rows;
	size_t		nchunks;
	uint64_t  **chunks;
} KeyChunks;

/*
 * Copies 'rows' keys of 'words' words, stored one after another, into chunks.
 */
extern KeyChunks *key_chunks_create(const uint64_t *keys, uint32_t rows,
									unsigned words, unsigned chunk_shift);
extern void key_chunks_free(KeyChunks *chunks);

/*
 * Returns the row numbers of 'entries' in the order of the reference sort, to
 * be freed with free().
 */
extern uint32_t *reference_order(const KeyChunks *chunks,
								 const uint64_t *entries, size_t count);

/* Returns whether entries have the expected order; if not, notes it. */
extern bool order_is_right(const KeyChunks *chunks, const uint64_t *entries,
						   const uint32_t *expected, size_t count);

/*
 * Sorts a copy of 'entries', in memory without a spare byte, and compares the
 * result with the reference.  If they differ, notes what is wrong and returns
 * false.
 */
extern bool sort_is_right(const KeyChunks *chunks, const uint64_t *entries,
						  size_t count);

/*
 * Sorts all rows of a table made from keys, both as entries and as all rows,
 * and compares both results with the reference.
 */
extern bool sort_of_keys_is_right(const uint64_t *keys, uint32_t rows,
								  unsigned words, unsigned chunk_shift);

/* Like malloc(), but ends the program if there is no memory. */
extern void *must_allocate(size_t size);

#endif							/* GPUSORT_SORT_CHECK_H */
