/*-------------------------------------------------------------------------
 *
 * test_radix_sort.c
 *		Tests that the radix sort has the result of a reference sort.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
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

/* Sets the given number of bits in a mask of zeros, at any positions. */
static void
set_random_bits(uint64_t *mask, unsigned words, unsigned bits,
				RandomState *random)
{
	for (unsigned set = 0; set < bits;)
	{
		unsigned	bit = (unsigned) random_below(random, 64 * words);
		uint64_t	one = UINT64_C(1) << bit % 64;

		set += (mask[bit / 64] & one) == 0;
		mask[bit / 64] |= one;
	}
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

	set_random_bits(mask, words, bits, random);
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

/* ----------------------------------------------------------------
 *		windows
 * ----------------------------------------------------------------
 */

/* Pairs of random keys for each window. */
#define RANDOM_PAIRS	8

/* Returns a bit of a key, counted from its first bit. */
static unsigned
bit_at(const uint64_t *key, unsigned place)
{
	return key[place / 64] >> (63 - place % 64) & 1;
}

/*
 * Sets 'mask' to the varying bits that belong to the window.  Returns whether
 * varying bits are left below it.
 */
static bool
reference_window(const uint64_t *varying, unsigned words, uint64_t *mask)
{
	unsigned	bits = 0;

	memset(mask, 0, words * sizeof(uint64_t));
	for (unsigned place = 0; place < 64 * words; place++)
	{
		if (!bit_at(varying, place))
			continue;
		if (bits == 32)
			return true;
		mask[place / 64] |= UINT64_C(1) << (63 - place % 64);
		bits++;
	}
	return false;
}

static uint32_t
reference_value(const uint64_t *mask, const uint64_t *key, unsigned words)
{
	uint32_t	value = 0;

	for (unsigned place = 0; place < 64 * words; place++)
		if (bit_at(mask, place))
			value = value << 1 | bit_at(key, place);
	return value;
}

/*
 * Tests the values of two keys that differ only in varying bits.  If their
 * first difference is in the window, the values must have the order of the
 * keys.  Otherwise they must be equal.
 */
static bool
values_are_right(const GsKeyWindow *window, const uint64_t *mask,
				 const uint64_t *a, const uint64_t *b, unsigned words)
{
	uint32_t	value_a = gpusort_key_window_value(window, a);
	uint32_t	value_b = gpusort_key_window_value(window, b);
	unsigned	place = 0;

	if (value_a != reference_value(mask, a, words) ||
		value_b != reference_value(mask, b, words))
	{
		tap_note("a value is wrong");
		return false;
	}
	while (place < 64 * words && bit_at(a, place) == bit_at(b, place))
		place++;
	if (place == 64 * words || !bit_at(mask, place))
		return value_a == value_b;
	return bit_at(a, place) ? value_a > value_b : value_a < value_b;
}

static bool
pairs_are_right(const GsKeyWindow *window, const uint64_t *varying,
				const uint64_t *mask, unsigned words, RandomState *random)
{
	uint64_t	a[GPUSORT_CPU_MAX_KEY_WORDS];
	uint64_t	b[GPUSORT_CPU_MAX_KEY_WORDS];
	bool		right = true;

	/* All varying bits differ, a half of them, a quarter and so on. */
	for (int i = 0; i < RANDOM_PAIRS; i++)
	{
		for (unsigned w = 0; w < words; w++)
		{
			uint64_t	differ = varying[w];

			for (int times = 0; times < i; times++)
				differ &= random_word(random);
			a[w] = random_word(random);
			b[w] = a[w] ^ differ;
		}
		right &= values_are_right(window, mask, a, b, words);
	}

	/* The lowest and the highest key. */
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	memcpy(b, varying, words * sizeof(uint64_t));
	right &= values_are_right(window, mask, a, b, words);

	/* Only one bit differs. */
	for (unsigned place = 0; place < 64 * words && right; place++)
	{
		if (!bit_at(varying, place))
			continue;
		for (unsigned w = 0; w < words; w++)
			a[w] = b[w] = random_word(random);
		b[place / 64] ^= UINT64_C(1) << (63 - place % 64);
		right &= values_are_right(window, mask, a, b, words);
	}
	return right;
}

static bool
window_is_right(const uint64_t *varying, unsigned words, RandomState *random)
{
	uint64_t	mask[GPUSORT_CPU_MAX_KEY_WORDS];
	bool		left = reference_window(varying, words, mask);
	size_t		bytes = words * sizeof(uint64_t);
	uint64_t   *copy = must_allocate(bytes);	/* without a spare byte */
	GsKeyWindow window;
	bool		right;

	/* The initial window must not matter. */
	memset(&window, 0xee, sizeof(window));
	memcpy(copy, varying, bytes);
	right = gpusort_key_window_make(copy, words, &window) == left &&
		memcmp(copy, varying, bytes) == 0;
	free(copy);
	if (!right)
		tap_note("bits are %sleft below the window", left ? "" : "not ");
	else
		right = pairs_are_right(&window, varying, mask, words, random);
	if (!right)
		for (unsigned w = 0; w < words; w++)
			tap_note("varying word %u: %016" PRIx64, w, varying[w]);
	return right;
}

static void
test_scattered_windows(unsigned words)
{
	RandomState random = words;
	bool		passed = true;

	for (unsigned bits = 0; bits <= 64 * words && passed; bits++)
		for (int i = 0; i < 3 && passed; i++)
		{
			uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS] = {0};

			set_random_bits(varying, words, bits, &random);
			passed = window_is_right(varying, words, &random);
		}
	tap_ok(passed, "windows of 0 to %u scattered bits, %u words", 64 * words,
		   words);
}

static void
test_adjacent_windows(unsigned words)
{
	static const unsigned widths[] = {1, 2, 31, 32, 33, 64};
	RandomState random = words;
	bool		passed = true;

	for (size_t i = 0; i < LENGTH_OF(widths); i++)
		for (unsigned shift = 0; shift + widths[i] <= 64 * words && passed;
			 shift++)
		{
			uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS] = {0};

			set_bits(varying, words, shift, widths[i], UINT64_MAX);
			passed = window_is_right(varying, words, &random);
		}
	tap_ok(passed, "windows of adjacent bits, each place, %u words", words);
}

/* Tests every combination of some words, so that fields lie in all of them. */
static void
test_combined_windows(unsigned words)
{
	static const uint64_t parts[] = {
		0,
		UINT64_MAX,
		UINT64_C(0x5555555555555555),
		UINT64_C(0x8000000000000001),
		UINT64_C(0x00000000ffffffff),
		UINT64_C(0xfffe000000000000),
	};
	RandomState random = words;
	size_t		combinations = 1;
	bool		passed = true;

	for (unsigned w = 0; w < words; w++)
		combinations *= LENGTH_OF(parts);
	for (size_t i = 0; i < combinations && passed; i++)
	{
		uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
		size_t		rest = i;

		for (unsigned w = 0; w < words; w++)
		{
			varying[w] = parts[rest % LENGTH_OF(parts)];
			rest /= LENGTH_OF(parts);
		}
		passed = window_is_right(varying, words, &random);
	}
	tap_ok(passed, "windows of %zu combinations of words, %u words",
		   combinations, words);
}

/* ----------------------------------------------------------------
 *		entries that have their values
 * ----------------------------------------------------------------
 */

/*
 * Returns an entry with a value.  Row numbers have gaps between them, and the
 * last one is the greatest possible.
 */
static uint64_t
entry_with_gap(uint32_t value, uint32_t i, uint32_t count)
{
	uint32_t	row = UINT32_MAX - (count - 1 - i) * (UINT32_MAX / count);

	return (uint64_t) value << 32 | row;
}

/* Orders entries by value, then by row, which is the stable order. */
static int
compare_entries(const void *a, const void *b)
{
	uint64_t	left = *(const uint64_t *) a;
	uint64_t	right = *(const uint64_t *) b;

	if (left >> 32 != right >> 32)
		return left >> 32 < right >> 32 ? -1 : 1;
	if ((uint32_t) left != (uint32_t) right)
		return (uint32_t) left < (uint32_t) right ? -1 : 1;
	return 0;
}

/*
 * Sorts entries by their values, and as words, and compares both with the result of qsort().
 */
static bool
sort_by_values_is_right(uint64_t *entries, size_t count)
{
	uint64_t   *expected = must_allocate(count * sizeof(uint64_t));
	uint64_t   *scratch = must_allocate(count * sizeof(uint64_t));
	uint64_t   *words = must_allocate(count * sizeof(uint64_t));
	bool		right;

	memcpy(expected, entries, count * sizeof(uint64_t));
	qsort(expected, count, sizeof(uint64_t), compare_entries);
	memcpy(words, entries, count * sizeof(uint64_t));
	gpusort_radix_sort_words(words, scratch, count, NULL);
	right = memcmp(words, expected, count * sizeof(uint64_t)) == 0;
	if (!right)
		tap_note("%zu words are not in order", count);
	gpusort_radix_sort_by_values(entries, scratch, count, NULL);
	for (size_t i = 0; i < count && right; i++)
	{
		right = entries[i] == expected[i] &&
			gpusort_entry_value(entries[i]) == expected[i] >> 32;
		if (!right)
			tap_note("place %zu of %zu has entry %016" PRIx64
					 " instead of %016" PRIx64,
					 i, count, entries[i], expected[i]);
	}
	free(words);
	free(scratch);
	free(expected);
	return right;
}

/*
 * Tests values that differ only in their low bits, for every number of them.
 * The other bits are random but the same in all values.
 */
static void
test_bits_of_values(uint32_t count)
{
	uint64_t   *entries = must_allocate(count * sizeof(uint64_t));
	RandomState random = count;
	bool		passed = true;

	for (unsigned bits = 0; bits <= 32 && passed; bits++)
	{
		uint32_t	base = (uint32_t) random_word(&random);
		uint64_t	mask = (UINT64_C(1) << bits) - 1;

		for (uint32_t i = 0; i < count; i++)
			entries[i] = entry_with_gap(base ^ (uint32_t) (random_word(&random) & mask),
										i, count);
		passed = sort_by_values_is_right(entries, count);
		if (!passed)
			tap_note("%u bits of values vary", bits);
	}
	tap_ok(passed, "%u values, of which 0 to 32 bits vary", (unsigned) count);
	free(entries);
}

/* Tests values over the whole range, and only its ends. */
static void
test_range_of_values(uint32_t count)
{
	uint64_t   *entries = must_allocate(count * sizeof(uint64_t));
	uint32_t	step = count > 1 ? UINT32_MAX / (count - 1) : 0;
	RandomState random = count;
	bool		passed;

	for (uint32_t i = 0; i < count; i++)
		entries[i] = entry_with_gap(i * step, i, count);
	passed = sort_by_values_is_right(entries, count);
	for (uint32_t i = 0; i < count; i++)
		entries[i] = entry_with_gap(UINT32_MAX - i * step, i, count);
	passed &= sort_by_values_is_right(entries, count);
	for (uint32_t i = 0; i < count; i++)
		entries[i] = entry_with_gap(random_below(&random, 2) == 0 ? 0 : UINT32_MAX,
									i, count);
	passed &= sort_by_values_is_right(entries, count);
	tap_ok(passed, "%u values ascend, descend, or are extreme",
		   (unsigned) count);
	free(entries);
}

/*
 * Tests values that are equal or ascend, except for one.  It is the lowest or
 * the greatest, and stands at an end, in the middle, or where the next block
 * of rows begins.
 */
static void
test_one_other_value(uint32_t count)
{
	const uint32_t places[] = {0, 1, count / 2, count - 2, count - 1, 65535, 65536};
	uint64_t   *entries = must_allocate(count * sizeof(uint64_t));
	bool		passed = true;

	for (size_t p = 0; p < LENGTH_OF(places); p++)
		for (int kind = 0; kind < 4 && places[p] < count; kind++)
		{
			bool		ascending = (kind & 1) != 0;
			uint32_t	other = (kind & 2) != 0 ? UINT32_MAX : 0;

			for (uint32_t i = 0; i < count; i++)
				entries[i] = entry_with_gap(i == places[p] ? other :
											ascending ? 1 + i / 3 : 77,
											i, count);
			passed &= sort_by_values_is_right(entries, count);
		}
	tap_ok(passed, "%u values equal or ascending but for one",
		   (unsigned) count);
	free(entries);
}

/*
 * Sorts by the window of the bits that vary in the keys.  The result must be
 * the order of the keys without the bits that are not in the window.
 */
static bool
sort_by_window_is_right(const uint64_t *keys, uint32_t rows, unsigned words)
{
	uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	uint64_t	mask[GPUSORT_CPU_MAX_KEY_WORDS];
	size_t		bytes = (size_t) rows * words * sizeof(uint64_t);
	uint64_t   *masked = must_allocate(bytes);
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	uint32_t   *expected;
	KeyChunks  *chunks;
	GsKeyWindow window;
	bool		right;

	for (size_t i = 0; i < (size_t) rows * words; i++)
		varying[i % words] |= keys[i] ^ keys[i % words];
	right = gpusort_key_window_make(varying, words, &window) ==
		reference_window(varying, words, mask);
	for (size_t i = 0; i < (size_t) rows * words; i++)
		masked[i] = keys[i] & mask[i % words];
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = (uint64_t) gpusort_key_window_value(&window, keys + (size_t) row * words)
			<< 32 | row;
	chunks = key_chunks_create(masked, rows, words, 12);
	expected = reference_order(chunks, entries, rows);
	right &= sort_by_values_is_right(entries, rows) &&
		order_is_right(chunks, entries, expected, rows);
	free(expected);
	key_chunks_free(chunks);
	free(entries);
	free(masked);
	return right;
}

static void
test_sort_by_window(uint32_t rows, unsigned max_words)
{
	RandomState random = rows;
	bool		passed = true;

	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
		for (unsigned words = 1; words <= max_words && passed; words++)
		{
			uint64_t   *keys = key_pattern_make(pattern, rows, words, &random);

			passed = sort_by_window_is_right(keys, rows, words);
			if (!passed)
				tap_note("%u words, %s", words, key_pattern_name(pattern));
			free(keys);
		}
	tap_ok(passed, "%u rows by windows of up to %u words", (unsigned) rows,
		   max_words);
}

/* ----------------------------------------------------------------
 *		the bits by which keys are sorted
 * ----------------------------------------------------------------
 */

/* Finds these bits, by bits of several parts of the keys. */
static void
find_bits(const uint64_t *keys, uint32_t rows, unsigned words, uint32_t parts, uint64_t *varying)
{
	GsKeyBits	bits;

	gpusort_key_bits_begin(&bits);
	for (uint32_t p = 0; p < parts; p++)
	{
		uint32_t	first = (uint64_t) rows * p / parts;
		uint32_t	count = (uint64_t) rows * (p + 1) / parts - first;
		KeyChunks  *chunks = key_chunks_create(keys + (size_t) first * words, count, words, 12);
		GsKeyBits	part;

		gpusort_key_bits_begin(&part);
		gpusort_key_bits_collect(&part, &chunks->table, count, NULL);
		gpusort_key_bits_add(&bits, &part);
		key_chunks_free(chunks);
	}
	gpusort_key_bits_varying(&bits, words, varying);
}

/*
 * The order of the keys must be that of these bits alone.  There must be no bit in which no keys
 * differ, and 'most' at most.
 */
static bool
bits_are_right(const uint64_t *keys, uint32_t rows, unsigned words, uint32_t parts, unsigned most)
{
	uint64_t	varying[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	uint64_t	differ[GPUSORT_CPU_MAX_KEY_WORDS] = {0};
	size_t		length = (size_t) rows * words;
	uint64_t   *masked = must_allocate(length * sizeof(uint64_t));
	uint64_t   *entries = must_allocate(rows * sizeof(uint64_t));
	uint32_t   *expected;
	KeyChunks  *chunks;
	unsigned	count = 0;
	bool		right = true;

	find_bits(keys, rows, words, parts, varying);
	for (size_t i = 0; i < length; i++)
	{
		differ[i % words] |= keys[i] ^ keys[i % words];
		masked[i] = keys[i] & varying[i % words];
	}
	for (unsigned w = 0; w < words; w++)
	{
		right &= (varying[w] & ~differ[w]) == 0;
		count += (unsigned) __builtin_popcountll(varying[w]);
	}
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = row;
	chunks = key_chunks_create(masked, rows, words, 12);
	expected = reference_order(chunks, entries, rows);
	key_chunks_free(chunks);
	chunks = key_chunks_create(keys, rows, words, 12);
	for (uint32_t row = 0; row < rows; row++)
		entries[row] = expected[row];
	free(expected);
	for (uint32_t row = 0; row < rows; row++)
		masked[row] = row;
	expected = reference_order(chunks, masked, rows);
	right &= order_is_right(chunks, entries, expected, rows) && count <= most;
	free(expected);
	key_chunks_free(chunks);
	free(entries);
	free(masked);
	return right;
}

static void
test_key_bits(uint32_t rows)
{
	RandomState random = rows;

	for (KeyPattern pattern = 0; pattern < PATTERN_COUNT; pattern++)
	{
		bool		passed = true;

		for (unsigned words = 1; words <= GPUSORT_CPU_MAX_KEY_WORDS; words++)
			for (uint32_t parts = 1; parts <= 3; parts++)
			{
				uint64_t   *keys = key_pattern_make(pattern, rows, words, &random);

				passed &= bits_are_right(keys, rows, words, parts, pattern == PATTERN_BOTH_SIGNS ?
										 13 + 64 * (words - 1) : 64 * words);
				free(keys);
			}
		tap_ok(passed, "bits of %u keys, %s", (unsigned) rows, key_pattern_name(pattern));
	}
}

static void
test_values(void)
{
	static const uint32_t counts[] = {
		0, 1, 2, 3, 31, 32, 33, 34, 257, 5000, 65535, 65536, 65537, 200000
	};

	for (size_t i = 0; i < LENGTH_OF(counts); i++)
	{
		test_bits_of_values(counts[i]);
		test_range_of_values(counts[i]);
		test_one_other_value(counts[i]);
		test_sort_by_window(counts[i], counts[i] < 65535 ? 4 : 2);
	}
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
		test_scattered_windows(words);
		test_adjacent_windows(words);
		test_combined_windows(words);
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
	test_key_bits(1);
	test_key_bits(1000);
	test_key_bits(200000);
	test_values();
	return tap_done();
}
