/*-------------------------------------------------------------------------
 *
 * plain_strings.c
 *		Finds the strings of a locale of which a few bits tell what their weights leave open.
 *
 * Two strings with equal weights on the first level are compared by those of the other ones.  Of
 * strings of ASCII without anything special to the locale, these come down to the case of letters
 * and the places of blanks and punctuation.  Keys for a GPU have them, since a device cannot call
 * strcoll().  Which characters are so is read from the locale's tables, and a sample of strings is
 * compared with strcoll_l().
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "port/pg_bitutils.h"

#include "key/locale_weights.h"

#define FIRST_NOT_ASCII	0x80
#define FIRST_PRINTED	0x20
#define LAST_PRINTED	0x7E

/* Pairs of strings that are compared with strcoll_l(). */
#define CHECKED_STRINGS		1024
#define CHECKED_LENGTH		7

static void make_table(const GsLocaleWeights *weights);

/* ----------------------------------------------------------------
 *		encoding a string
 * ----------------------------------------------------------------
 */

/*
 * Returns how many letters or digits of a plain string strcoll() does not see on the second level.
 * There digits and specials are compared backward in most locales, and letters forward.  Of a run
 * of at least two backward characters that a forward one ends, glibc (2.36, get_next_seq() in
 * string/strcoll_l.c) skips the last but one.  If that is a digit and not a special, the string
 * has a weight less.  The lowest bits are those of the last character.
 */
static inline unsigned
count_skipped(uint64 backward, uint64 special)
{
	uint64		skipped = ~backward & backward >> 1 & (backward & ~special) >> 2;

	return likely(skipped == 0) ? 0 : pg_popcount64(skipped);
}

const GsPlainTable *
gpusort_plain_strings_table(const GsLocaleWeights *weights)
{
	if (unlikely(!weights->plain->made))
		make_table(weights);
	return weights->plain;
}

bool
gpusort_plain_string_encode(const GsLocaleWeights *weights, GsPlainLimits limits,
							const unsigned char *string, Size length,
							unsigned char *bytes, uint64 *rest)
{
	const GsPlainTable *table = gpusort_plain_strings_table(weights);
	bool		plain = true;
	unsigned	letters = 0;
	unsigned	letters_before = 0;
	unsigned	specials = 0;
	unsigned	skipped;
	uint64		greater = 0;
	uint64		backward = 0;
	uint64		special = 0;
	uint64		pairs = 0;

	if (length > limits.letters + limits.specials)
		return false;
	for (Size i = 0; i < length; i++)
	{
		uint16		character = table->characters[string[i]];

		plain &= character != 0;
		backward = backward << 1 | (character >> GS_PLAIN_BACKWARD_BIT & 1);
		special <<= 1;
		if (unlikely(character >= 1 << GS_PLAIN_NUMBER_BIT))
		{
			special |= 1;
			pairs = pairs << GPUSORT_SPECIAL_BITS |
				(letters - letters_before + 1) << GPUSORT_SPECIAL_NUMBER_BITS |
				character >> GS_PLAIN_NUMBER_BIT;
			letters_before = letters;
			specials++;
		}
		else
		{
			bytes[letters++] = (unsigned char) character;
			greater = greater << 1 | (character >> GS_PLAIN_GREATER_BIT & 1);
		}
	}
	skipped = count_skipped(backward, special);
	if (!plain || letters > limits.letters || specials > limits.specials ||
		skipped >= 1 << GPUSORT_SKIPPED_BITS)
		return false;
	if (specials < limits.specials)
	{
		pairs = pairs << GPUSORT_SPECIAL_BITS |
			(letters - letters_before + 1) << GPUSORT_SPECIAL_NUMBER_BITS;
		specials++;
	}
	pairs <<= (limits.specials - specials) * GPUSORT_SPECIAL_BITS;
	greater <<= limits.letters - letters;
	greater |= (uint64) (~skipped & ((1 << GPUSORT_SKIPPED_BITS) - 1)) << limits.letters;
	*rest = greater << (limits.specials * GPUSORT_SPECIAL_BITS) | pairs;
	return true;
}

/* ----------------------------------------------------------------
 *		finding plain characters
 * ----------------------------------------------------------------
 */

/* Compares weights that are preceded by their number of bytes. */
static int
compare_weights(const unsigned char *a, const unsigned char *b)
{
	int			cmp = memcmp(a + 1, b + 1, Min(a[0], b[0]));

	return cmp != 0 ? cmp : (int) a[0] - (int) b[0];
}

/* gpusort_locale_tables_weights() of a character of ASCII that is followed by ASCII. */
static const unsigned char *
weights_of_level(const GsLocaleWeights *weights, unsigned char character, uint32 level,
				 unsigned char *rule)
{
	const unsigned char *next = &character;
	bool		alone;
	int32		position =
		gpusort_locale_tables_next(&weights->tables, &next, next + 1, 1, &alone);

	return gpusort_locale_tables_weights(&weights->tables, position, level, rule);
}

/*
 * Compares two characters with the same weight on the first level.  Returns false if they have
 * other weights on the second, or the same or not as many bytes on the third.
 */
static bool
compare_third_level(const GsLocaleWeights *weights, unsigned char a, unsigned char b, int *cmp)
{
	unsigned char rules[4];
	const unsigned char *second[] = {weights_of_level(weights, a, 1, &rules[0]),
	weights_of_level(weights, b, 1, &rules[1])};
	const unsigned char *third[] = {weights_of_level(weights, a, 2, &rules[2]),
	weights_of_level(weights, b, 2, &rules[3])};

	if (second[0] == NULL || second[1] == NULL || third[0] == NULL || third[1] == NULL)
		return false;
	*cmp = compare_weights(third[0], third[1]);
	return compare_weights(second[0], second[1]) == 0 && *cmp != 0 && third[0][0] == third[1][0] &&
		rules[2] == GPUSORT_RULE_FORWARD && rules[3] == GPUSORT_RULE_FORWARD;
}

/* Returns the bit of an entry that says whether this rule of the second level is backward. */
static uint16
backward_bit(unsigned char rule)
{
	return (rule != GPUSORT_RULE_FORWARD) << GS_PLAIN_BACKWARD_BIT;
}

/* Find the letters and digits that are plain, among the characters that can be printed. */
static void
find_letters(const GsLocaleWeights *weights)
{
	for (int a = FIRST_PRINTED; a <= LAST_PRINTED; a++)
	{
		unsigned char byte = weights->before_ascii[a];
		unsigned char rule;
		int			others = 0;
		int			other = a;
		int			cmp = -1;

		for (int b = 1; b < FIRST_NOT_ASCII; b++)
			if (b != a && weights->before_ascii[b] == byte)
			{
				other = b;
				others++;
			}
		if (byte == 0 || byte == GPUSORT_NO_WEIGHT || others > 1 ||
			(others == 1 && !compare_third_level(weights, a, other, &cmp)) ||
			weights_of_level(weights, a, 1, &rule) == NULL)
			continue;
		weights->plain->characters[a] = byte | (cmp > 0) << GS_PLAIN_GREATER_BIT |
			backward_bit(rule);
	}
}

/*
 * Returns the weights of a character on the fourth level, or NULL if it has none or positions count
 * on a level before.
 */
static const unsigned char *
fourth_level(const GsLocaleWeights *weights, unsigned char character)
{
	unsigned char rule;
	const unsigned char *level;

	for (uint32 l = 1; l < 3; l++)
		if (weights_of_level(weights, character, l, &rule) == NULL ||
			(rule & GPUSORT_RULE_POSITION) != 0)
			return NULL;
	level = weights_of_level(weights, character, 3, &rule);
	return level != NULL && level[0] > 0 &&
		(rule & ~GPUSORT_RULE_POSITION) == GPUSORT_RULE_FORWARD ? level : NULL;
}

/*
 * Has a character weights on the fourth level only?  If digits are compared backward on the second,
 * so must it be: what a forward one does to a run, as "'" in uk_UA, count_skipped() does not know.
 */
static bool
may_be_special(const GsLocaleWeights *weights, unsigned char character)
{
	unsigned char rule;

	if (weights->before_ascii[character] != GPUSORT_NO_WEIGHT ||
		fourth_level(weights, character) == NULL ||
		weights_of_level(weights, character, 2, &rule)[0] > 0 ||
		weights_of_level(weights, character, 1, &rule)[0] > 0)
		return false;
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED && rule == GPUSORT_RULE_FORWARD; c++)
		if ((weights->plain->characters[c] >> GS_PLAIN_BACKWARD_BIT & 1) != 0)
			return false;
	return true;
}

/*
 * Returns how many characters of a set are less than a character on the fourth level.  Sets *same
 * to how many are equal.
 */
static unsigned
count_less(const GsLocaleWeights *weights, const bool *set, unsigned char character,
		   unsigned *same)
{
	unsigned	less = 0;

	*same = 0;
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
		if (set[c])
		{
			int			cmp = compare_weights(fourth_level(weights, c),
											  fourth_level(weights, character));

			less += cmp < 0;
			*same += cmp == 0;
		}
	return less;
}

/*
 * Find the specials among the characters that can be printed, if all letters and digits have the
 * same weights on the second level, and some on the fourth.
 */
static void
find_specials(const GsLocaleWeights *weights)
{
	uint16	   *characters = weights->plain->characters;
	const unsigned char *second = NULL;
	bool		letters[FIRST_NOT_ASCII] = {false};
	bool		specials[FIRST_NOT_ASCII] = {false};

	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
	{
		unsigned char rule;
		const unsigned char *level;

		if (characters[c] == 0)
			continue;
		letters[c] = true;
		level = weights_of_level(weights, c, 1, &rule);
		if (second == NULL)
			second = level;
		if (compare_weights(level, second) != 0 || level[0] != 1 ||
			fourth_level(weights, c) == NULL)
			return;
	}
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
		specials[c] = may_be_special(weights, c);
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
	{
		unsigned char rule;
		unsigned	same;
		unsigned	number;

		if (!specials[c] || count_less(weights, letters, c, &same) > 0 || same > 0)
			continue;
		number = count_less(weights, specials, c, &same) + 1;
		if (same != 1 || number >= 1 << GPUSORT_SPECIAL_NUMBER_BITS)
			continue;
		(void) weights_of_level(weights, c, 1, &rule);
		characters[c] = number << GS_PLAIN_NUMBER_BIT | backward_bit(rule);
	}
}

/* ----------------------------------------------------------------
 *		checking them
 * ----------------------------------------------------------------
 */

/* Returns the n-th plain character that is special, or is not, from the n-th place in ASCII on. */
static char
plain_character(const GsPlainTable *table, bool special, unsigned n)
{
	for (unsigned i = 0; i < FIRST_NOT_ASCII; i++)
	{
		unsigned	c = (n + i) % FIRST_NOT_ASCII;

		if (table->characters[c] != 0 &&
			(table->characters[c] >> GS_PLAIN_NUMBER_BIT > 0) == special)
			return c;
	}
	return '\0';
}

/* Returns the other plain character with the weight of this one, or the same if there is none. */
static char
other_case(const GsLocaleWeights *weights, char letter)
{
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
		if (c != letter && weights->before_ascii[c] == weights->before_ascii[(int) letter])
			return c;
	return letter;
}

/*
 * Write a string of letters or digits with two weights in turn, and of two specials, as the bits of
 * 'shape' say.
 */
static void
make_plain_string(const GsLocaleWeights *weights, unsigned n, uint32 shape,
				  char string[CHECKED_LENGTH + 1])
{
	int			letters = 0;
	int			length = 0;

	for (int i = 0; i < CHECKED_LENGTH; i++, shape >>= 3)
	{
		bool		special = (shape & 4) != 0;
		unsigned	kind = special ? n + 31 * (shape & 1) : n + 77 * (letters++ % 2);
		char		c = plain_character(weights->plain, special, kind);

		if (!special && (shape & 1) != 0)
			c = other_case(weights, c);
		if (c != '\0')
			string[length++] = c;
	}
	string[length] = '\0';
}

/* Does strcoll_l() order plain strings as their bytes and the rest do? */
static bool
agrees_with_strcoll(const GsLocaleWeights *weights)
{
	const GsPlainLimits limits = {.letters = CHECKED_LENGTH,.specials = 4};
	char		strings[2][CHECKED_LENGTH + 1];

	if (plain_character(weights->plain, false, 0) == '\0')
		return true;
	for (uint32 i = 0; i < CHECKED_STRINGS; i++)
	{
		unsigned char bytes[2][CHECKED_LENGTH + 1] = {{0}};
		uint64		rest[2];
		bool		plain = true;
		int			expected;
		int			cmp;

		for (int p = 0; p < 2; p++)
		{
			make_plain_string(weights, i, i * (p == 0 ? 2654435761U : 2246822519U),
							  strings[p]);
			plain &= gpusort_plain_string_encode(weights, limits,
												 (unsigned char *) strings[p],
												 strlen(strings[p]), bytes[p], &rest[p]);
		}
		if (!plain)
			continue;
		cmp = memcmp(bytes[0], bytes[1], CHECKED_LENGTH);
		if (cmp == 0)
			cmp = (rest[0] > rest[1]) - (rest[0] < rest[1]);
		expected = strcoll_l(strings[0], strings[1], weights->locale);
		if ((cmp > 0) - (cmp < 0) != (expected > 0) - (expected < 0))
			return false;
	}
	return true;
}

static void
make_table(const GsLocaleWeights *weights)
{
	GsPlainTable *table = weights->plain;

	find_letters(weights);
	find_specials(weights);
	table->made = true;
	if (!agrees_with_strcoll(weights))
		memset(table->characters, 0, sizeof(table->characters));
}
