/*-------------------------------------------------------------------------
 *
 * key_patterns.c
 *		Keys with various distributions, as inputs of the sort.
 *
 *-------------------------------------------------------------------------
 */
#include "key_patterns.h"

#include <string.h>

#include "sort_check.h"

#define DISTINCT_KEYS	7
#define DISTINCT_TOPS	5

static const char *const names[] = {
	[PATTERN_RANDOM] = "random",
	[PATTERN_EQUAL] = "all equal",
	[PATTERN_ASCENDING] = "ascending",
	[PATTERN_ASCENDING_RUNS] = "ascending with runs",
	[PATTERN_DESCENDING] = "descending",
	[PATTERN_NEARLY_ASCENDING] = "nearly ascending",
	[PATTERN_LOW_ENTROPY_2] = "low entropy (2)",
	[PATTERN_LOW_ENTROPY_4] = "low entropy (4)",
	[PATTERN_LOW_ENTROPY_6] = "low entropy (6)",
	[PATTERN_FEW_DISTINCT] = "few distinct",
	[PATTERN_ONE_HOT] = "one hot key",
	[PATTERN_EQUAL_TOP] = "long runs equal at the top",
	[PATTERN_EQUAL_LAST_BIT] = "first and last bit",
	[PATTERN_BOTH_SIGNS] = "numbers of both signs",
	[PATTERN_SIGNS_APART] = "numbers of one sign, then of the other",
};

const char *
key_pattern_name(KeyPattern pattern)
{
	return names[pattern];
}

static uint64_t
random_and(RandomState *random, unsigned times)
{
	uint64_t	word = UINT64_MAX;

	while (times-- > 0)
		word &= random_word(random);
	return word;
}

static void
fill_random(uint64_t *key, unsigned words, unsigned times, RandomState *random)
{
	for (unsigned w = 0; w < words; w++)
		key[w] = random_and(random, times);
}

/* Sets a number in the middle of the key, so that it spans two words. */
static void
fill_number(uint64_t *key, unsigned words, uint64_t number)
{
	memset(key, 0, words * sizeof(uint64_t));
	if (words == 1)
		key[0] = number;
	else
	{
		key[words - 2] = number >> 12;
		key[words - 1] = number << 52 | number >> 40;
	}
}

/* Makes a key that begins with a signed number; 'bits' is the length of its magnitude. */
static void
fill_signed(uint64_t *key, unsigned words, bool negative, unsigned bits, RandomState *random)
{
	fill_random(key, words, 4, random);
	key[0] = random_word(random) >> (64 - bits);
	if (negative)
		key[0] = ~key[0];
	key[0] ^= UINT64_C(1) << 63;
}

static void
fill_key(KeyPattern pattern, uint64_t *key, unsigned words, uint32_t row,
		 uint32_t rows, const uint64_t *pool, RandomState *random)
{
	const uint64_t *first = pool;
	const uint64_t *any = pool + random_below(random, DISTINCT_KEYS) * words;

	switch (pattern)
	{
		case PATTERN_RANDOM:
			fill_random(key, words, 1, random);
			break;
		case PATTERN_EQUAL:
			memcpy(key, first, words * sizeof(uint64_t));
			break;
		case PATTERN_ASCENDING:
			fill_number(key, words, (uint64_t) row * 1000003);
			break;
		case PATTERN_ASCENDING_RUNS:
			fill_number(key, words, row / 7);
			break;
		case PATTERN_DESCENDING:
			fill_number(key, words, (uint64_t) (rows - row) * 1000003);
			break;
		case PATTERN_NEARLY_ASCENDING:
			fill_number(key, words, random_below(random, 100) == 0 ?
						random_below(random, rows) : row);
			break;
		case PATTERN_LOW_ENTROPY_2:
			fill_random(key, words, 2, random);
			break;
		case PATTERN_LOW_ENTROPY_4:
			fill_random(key, words, 4, random);
			break;
		case PATTERN_LOW_ENTROPY_6:
			fill_random(key, words, 6, random);
			break;
		case PATTERN_FEW_DISTINCT:
			memcpy(key, any, words * sizeof(uint64_t));
			break;
		case PATTERN_ONE_HOT:
			if (random_below(random, 10) == 0)
				fill_random(key, words, 1, random);
			else
				memcpy(key, first, words * sizeof(uint64_t));
			break;
		case PATTERN_EQUAL_TOP:
			fill_random(key, words, 1, random);
			key[0] = (key[0] & UINT32_MAX) |
				random_below(random, DISTINCT_TOPS) * 13 << 58;
			break;
		case PATTERN_EQUAL_LAST_BIT:
			memset(key, 0, words * sizeof(uint64_t));
			key[0] = random_word(random) << 63;
			key[words - 1] |= random_word(random) & 1;
			break;
		case PATTERN_BOTH_SIGNS:
			fill_signed(key, words, random_below(random, 2) == 1, 12, random);
			break;
		case PATTERN_SIGNS_APART:
			fill_signed(key, words, row < rows / 2 ? row > rows / 4 : random_below(random, 2) == 1,
						2 + 60 * (uint64_t) row / rows, random);
			break;
		case PATTERN_COUNT:
			break;
	}
}

uint64_t *
key_pattern_make(KeyPattern pattern, uint32_t rows, unsigned words,
				 RandomState *random)
{
	uint64_t   *keys = must_allocate((size_t) rows * words * sizeof(uint64_t));
	uint64_t	pool[DISTINCT_KEYS * GPUSORT_CPU_MAX_KEY_WORDS];

	for (unsigned i = 0; i < DISTINCT_KEYS * words; i++)
		pool[i] = random_word(random);
	for (uint32_t row = 0; row < rows; row++)
		fill_key(pattern, keys + (size_t) row * words, words, row, rows, pool,
				 random);
	return keys;
}
