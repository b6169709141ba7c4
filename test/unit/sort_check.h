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

/* A table whose chunks are allocated with no byte to spare. */
typedef struct KeyChunks
{
	GsKeyTable	table;
	uint32_t	rows;
	size_t		nchunks;
	uint64_t  **chunks;
} KeyChunks;

/* Copy 'rows' keys of 'words' words, one behind the other, into chunks. */
extern KeyChunks *key_chunks_create(const uint64_t *keys, uint32_t rows,
									unsigned words, unsigned chunk_shift);
extern void key_chunks_free(KeyChunks *chunks);

/*
 * The order that the reference gives to the rows of 'entries': as many row
 * numbers, to be freed with free().
 */
extern uint32_t *reference_order(const KeyChunks *chunks,
								 const uint64_t *entries, size_t count);

/* Do entries have the expected order?  Notes it if they do not. */
extern bool order_is_right(const KeyChunks *chunks, const uint64_t *entries,
						   const uint32_t *expected, size_t count);

/*
 * Sort a copy of 'entries', in memory without a byte to spare, and compare
 * with the reference.  Notes what is wrong and returns false if they differ.
 */
extern bool sort_is_right(const KeyChunks *chunks, const uint64_t *entries,
						  size_t count);

/*
 * Sort all rows of a table made from keys, once as entries and once as all
 * rows, and compare both with the reference.
 */
extern bool sort_of_keys_is_right(const uint64_t *keys, uint32_t rows,
								  unsigned words, unsigned chunk_shift);

/* malloc() that ends the program when there is no memory. */
extern void *must_allocate(size_t size);

#endif							/* GPUSORT_SORT_CHECK_H */
