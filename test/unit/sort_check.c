/*-------------------------------------------------------------------------
 *
 * sort_check.c
 *		Compares the radix sort with a reference sort.
 *
 * The reference is a bottom-up merge sort, which is stable by construction
 * and shares no code with the sort that it checks.
 *
 *-------------------------------------------------------------------------
 */
#include "sort_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "tap.h"

void *
must_allocate(size_t size)
{
	void	   *memory = malloc(size);

	if (memory == NULL && size > 0)
	{
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	return memory;
}

KeyChunks *
key_chunks_create(const uint64_t *keys, uint32_t rows, unsigned words,
				  unsigned chunk_shift)
{
	KeyChunks  *chunks = must_allocate(sizeof(KeyChunks));
	uint64_t	chunk_rows = UINT64_C(1) << chunk_shift;
	uint64_t	done = 0;

	chunks->rows = rows;
	chunks->nchunks = (rows + chunk_rows - 1) >> chunk_shift;
	chunks->chunks = must_allocate(chunks->nchunks * sizeof(uint64_t *));
	for (size_t i = 0; i < chunks->nchunks; i++)
	{
		uint64_t	here = rows - done < chunk_rows ? rows - done : chunk_rows;
		size_t		bytes = here * words * sizeof(uint64_t);

		chunks->chunks[i] = must_allocate(bytes);
		memcpy(chunks->chunks[i], keys + done * words, bytes);
		done += here;
	}
	chunks->table.chunks = (const uint64_t *const *) chunks->chunks;
	chunks->table.chunk_shift = chunk_shift;
	chunks->table.words = words;
	return chunks;
}

void
key_chunks_free(KeyChunks *chunks)
{
	for (size_t i = 0; i < chunks->nchunks; i++)
		free(chunks->chunks[i]);
	free(chunks->chunks);
	free(chunks);
}

/* Is row a's key greater than row b's? */
static bool
is_greater(const KeyChunks *chunks, uint32_t a, uint32_t b)
{
	uint64_t	chunk_rows = UINT64_C(1) << chunks->table.chunk_shift;
	unsigned	words = chunks->table.words;
	const uint64_t *left = chunks->chunks[a / chunk_rows] +
		a % chunk_rows * words;
	const uint64_t *right = chunks->chunks[b / chunk_rows] +
		b % chunk_rows * words;

	for (unsigned w = 0; w < words; w++)
		if (left[w] != right[w])
			return left[w] > right[w];
	return false;
}

/*
 * Sorts row numbers by merging.  'other' must have room for 'count' of them.
 */
static void
reference_sort(const KeyChunks *chunks, uint32_t *rows, uint32_t *other,
			   size_t count)
{
	for (size_t width = 1; width < count; width *= 2)
	{
		for (size_t start = 0; start < count; start += 2 * width)
		{
			size_t		left = start;
			size_t		middle = start + width < count ? start + width : count;
			size_t		right = middle;
			size_t		end = middle + width < count ? middle + width : count;

			for (size_t to = start; to < end; to++)
			{
				if (left == middle ||
					(right < end && is_greater(chunks, rows[left], rows[right])))
					other[to] = rows[right++];
				else
					other[to] = rows[left++];
			}
		}
		memcpy(rows, other, count * sizeof(uint32_t));
	}
}

uint32_t *
reference_order(const KeyChunks *chunks, const uint64_t *entries, size_t count)
{
	uint32_t   *rows = must_allocate(count * sizeof(uint32_t));
	uint32_t   *other = must_allocate(count * sizeof(uint32_t));

	for (size_t i = 0; i < count; i++)
		rows[i] = (uint32_t) entries[i];
	reference_sort(chunks, rows, other, count);
	free(other);
	return rows;
}

bool
order_is_right(const KeyChunks *chunks, const uint64_t *entries,
			   const uint32_t *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((uint32_t) entries[i] != expected[i])
		{
			tap_note("place %zu of %zu has row %" PRIu32 " instead of %" PRIu32
					 "; keys have %u words, chunks 2^%u rows",
					 i, count, (uint32_t) entries[i], expected[i],
					 chunks->table.words, chunks->table.chunk_shift);
			return false;
		}
	return true;
}

/*
 * Sorts entries in place, or with 'all' writes all rows from 0 on into them
 * in sorted order.  Returns whether the result is the expected one.
 */
static bool
sort_gives(const KeyChunks *chunks, uint64_t *entries, size_t count, bool all,
		   const uint32_t *expected)
{
	uint64_t   *scratch = must_allocate(count * sizeof(uint64_t));

	gpusort_radix_sort(&chunks->table, all ? NULL : entries, entries, scratch, count, NULL);
	free(scratch);
	if (order_is_right(chunks, entries, expected, count))
		return true;
	tap_note(all ? "sorted as all rows" : "sorted as entries");
	return false;
}

bool
sort_is_right(const KeyChunks *chunks, const uint64_t *entries, size_t count)
{
	uint64_t   *sorted = must_allocate(count * sizeof(uint64_t));
	uint32_t   *expected = reference_order(chunks, entries, count);
	bool		right;

	memcpy(sorted, entries, count * sizeof(uint64_t));
	right = sort_gives(chunks, sorted, count, false, expected);
	free(expected);
	free(sorted);
	return right;
}

bool
sort_of_keys_is_right(const uint64_t *keys, uint32_t rows, unsigned words,
					  unsigned chunk_shift)
{
	KeyChunks  *chunks = key_chunks_create(keys, rows, words, chunk_shift);
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	RandomState random = rows;
	uint32_t   *expected;
	bool		right;

	/* The upper halves of entries must not matter. */
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = random_word(&random) << 32 | row;
	expected = reference_order(chunks, entries, rows);
	right = sort_gives(chunks, entries, rows, false, expected);

	/* With all rows, the initial entries must not matter either. */
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = random_word(&random);
	right &= sort_gives(chunks, entries, rows, true, expected);
	free(expected);
	free(entries);
	key_chunks_free(chunks);
	return right;
}
