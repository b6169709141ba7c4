/*-------------------------------------------------------------------------
 *
 * test_radix_sort.c
 *		Tests that the radix sort has the result of a reference sort.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "core/radix_sort.h"
#include "key_patterns.h"
#include "random.h"
#include "sort_check.h"
#include "tap.h"

#define ALL_SIZES_TO	5000
#define LENGTH_OF(array)	(sizeof(array) / sizeof((array)[0]))

static bool
pattern_is_right(KeyPattern pattern, uint32_t rows, unsigned words,
				 unsigned chunk_shift, RandomState *random)
{
	uint64_t   *keys = key_pattern_make(pattern, rows, words, random);
	bool		right = sort_of_keys_is_right(keys, rows, words, chunk_shift);

	if (!right)
		tap_note("%u rows, %s", (unsigned) rows, key_pattern_name(pattern));
	free(keys);
	return right;
}

/*
 * Tests every small size, or for wider keys every size in steps of 'words'.
 * Patterns and chunk sizes alternate.
 */
static void
test_small_sizes(unsigned words)
{
	RandomState random = words;
	bool		passed = true;

	for (uint32_t rows = 0; rows <= ALL_SIZES_TO && passed; rows += words)
		passed = pattern_is_right(rows % PATTERN_COUNT, rows, words,
								  rows / PATTERN_COUNT % 14, &random);
	tap_ok(passed, "0 to %d rows in steps of %u, %u words", ALL_SIZES_TO, words,
		   words);
}

/*
 * Tests every pattern around the sizes at which small ranges are sorted
 * differently.
 */
static void
test_sizes_of_insertion(void)
{
	RandomState random = 5;

	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		bool		passed = true;

		for (uint32_t rows = 0; rows <= 70 && passed; rows++)
			for (unsigned words = 1; words <= GPUSORT_CPU_MAX_KEY_WORDS; words++)
				passed &= pattern_is_right(pattern, rows, words, rows % 8,
										   &random);
		tap_ok(passed, "0 to 70 rows, %s", key_pattern_name(pattern));
	}
}

static void
test_chunk_sizes(void)
{
	const uint32_t rows = 3000;
	RandomState random = 6;

	for (unsigned words = 1; words <= GPUSORT_CPU_MAX_KEY_WORDS; words++)
	{
		bool		passed = true;

		for (unsigned shift = 0; shift <= 32; shift++)
			passed &= pattern_is_right(PATTERN_LOW_ENTROPY_2, rows, words,
									   shift, &random);
		tap_ok(passed, "chunks of 2^0 to 2^32 rows, %u words", words);
	}
}

/* Tests sizes from which on the sort samples the keys first. */
static void
test_large_sizes(uint32_t rows, unsigned max_words)
{
	RandomState random = rows;

	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		bool		passed = true;

		for (unsigned words = 1; words <= max_words; words++)
			passed &= pattern_is_right(pattern, rows, words, 12, &random);
		tap_ok(passed, "%u rows, up to %u words, %s", (unsigned) rows,
			   max_words, key_pattern_name(pattern));
	}
}

/* ----------------------------------------------------------------
 *		which bits vary
 * ----------------------------------------------------------------
 */

/* Sets bits [shift, shift + width) of a key, counted from its last bit. */
static void
set_bits(uint64_t *key, unsigned words, unsigned shift, unsigned width,
		 uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
	{
		unsigned	bit = shift + i;
		uint64_t   *word = &key[words - 1 - bit / 64];

		*word &= ~(UINT64_C(1) << bit % 64);
		*word |= ((value >> i) & 1) << bit % 64;
	}
}

/*
 * Tests keys that differ only in some adjacent bits, at every position.  The
 * other bits are random but the same in all keys.
 */
static void
test_adjacent_bits(unsigned words, unsigned width)
{
	const uint32_t rows = 150;
	uint64_t   *keys = must_allocate(rows * words * sizeof(uint64_t));
	RandomState random = width;
	bool		passed = true;

	for (unsigned shift = 0; shift + width <= 64 * words && passed; shift++)
	{
		for (unsigned w = 0; w < words; w++)
			keys[w] = random_word(&random);
		for (uint32_t row = 1; row < rows; row++)
			memcpy(keys + row * words, keys, words * sizeof(uint64_t));
		for (uint32_t row = 0; row < rows; row++)
			set_bits(keys + row * words, words, shift, width,
					 random_word(&random));
		passed = sort_of_keys_is_right(keys, rows, words, 5);
		if (!passed)
			tap_note("bits from %u", shift);
	}
	tap_ok(passed, "%u bits vary alone, each place, %u words", width, words);
	free(keys);
}

/*
 * Tests keys that differ in the given number of bits, at any positions.  Half
 * of the keys occur twice, so that there are ties.
 */
static bool
scattered_bits_are_right(unsigned words, unsigned bits, RandomState *random)
{
	const uint32_t rows = 200;
	uint64_t   *keys = must_allocate(rows * words * sizeof(uint64_t));
	uint64_t	mask[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	uint64_t	base[GPUSORT_CPU_MAX_KEY_WORDS];
	bool		right;

	for (unsigned set = 0; set < bits;)
	{
		unsigned	bit = (unsigned) random_below(random, 64 * words);
		uint64_t	one = UINT64_C(1) << bit % 64;

		set += (mask[bit / 64] & one) == 0;
		mask[bit / 64] |= one;
	}
	for (unsigned w = 0; w < words; w++)
		base[w] = random_word(random);
	for (uint32_t row = 0; row < rows; row++)
		for (unsigned w = 0; w < words; w++)
			keys[row * words + w] = row >= rows / 2 && row % 2 == 0 ?
				keys[(row - rows / 2) * words + w] :
				base[w] ^ (random_word(random) & mask[w]);
	right = sort_of_keys_is_right(keys, rows, words, 6);
	free(keys);
	return right;
}

static void
test_scattered_bits(unsigned words)
{
	RandomState random = 9;
	bool		passed = true;

	for (unsigned bits = 1; bits <= 64 * words && passed; bits++)
		for (int i = 0; i < 3 && passed; i++)
		{
			passed = scattered_bits_are_right(words, bits, &random);
			if (!passed)
				tap_note("%u bits vary", bits);
		}
	tap_ok(passed, "1 to %u scattered bits vary, %u words", 64 * words, words);
}

/* ----------------------------------------------------------------
 *		which rows are sorted
 * ----------------------------------------------------------------
 */

/* Tests some rows of a table, in random order. */
static void
test_subsets(uint32_t rows, KeyPattern pattern)
{
	RandomState random = rows + pattern;
	unsigned	words = 2;
	uint64_t   *keys = key_pattern_make(pattern, rows, words, &random);
	KeyChunks  *chunks = key_chunks_create(keys, rows, words, 7);
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	bool		passed = true;

	for (int part = 1; part <= 4; part++)
	{
		uint32_t	count = 0;

		for (uint32_t row = 0; row < rows; row++)
			if (random_below(&random, 4) < (uint64_t) part)
				entries[count++] = random_word(&random) << 32 | row;
		for (uint32_t i = count; i > 1; i--)
		{
			uint32_t	j = (uint32_t) random_below(&random, i);
			uint64_t	entry = entries[i - 1];

			entries[i - 1] = entries[j];
			entries[j] = entry;
		}
		passed &= sort_is_right(chunks, entries, count);
	}
	tap_ok(passed, "some of %u rows in any order, %s", (unsigned) rows,
		   key_pattern_name(pattern));
	free(entries);
	key_chunks_free(chunks);
	free(keys);
}

int
main(void)
{
	static const unsigned widths[] = {1, 2, 7, 8, 9, 16, 31, 32, 33, 48};

	for (unsigned words = 1; words <= GPUSORT_CPU_MAX_KEY_WORDS; words++)
	{
		test_small_sizes(words);
		test_scattered_bits(words);
		for (size_t i = 0; i < LENGTH_OF(widths); i++)
			test_adjacent_bits(words, widths[i]);
	}
	test_sizes_of_insertion();
	test_chunk_sizes();
	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		test_subsets(1000, pattern);
		test_subsets(90000, pattern);
	}
	test_large_sizes(65535, 1);
	test_large_sizes(65536, 1);
	test_large_sizes(70000, 4);
	test_large_sizes(300000, 2);
	return tap_done();
}
