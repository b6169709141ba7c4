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

/* What a character of ASCII is, found out before its entry in a GsPlainTable is made. */
typedef enum GsPlainKind
{
	GS_NOT_PLAIN,
	GS_PLAIN,					/* the only one, or the lesser of two */
	GS_PLAIN_GREATER,
	GS_PLAIN_SPECIAL			/* added to this: its number, from 0 on, in
								 * their order */
} GsPlainKind;

typedef struct GsPlainFinder
{
	const GsLocaleWeights *weights;
	unsigned char kind[FIRST_NOT_ASCII];	/* a GsPlainKind */
	unsigned char second_rule[FIRST_NOT_ASCII]; /* of the second level, unless
												 * it is not plain */
	bool		special[FIRST_NOT_ASCII];	/* can it be one? */
} GsPlainFinder;

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

/* Returns the position of the weights of a character of ASCII that is followed by ASCII. */
static int32
position_of(const GsLocaleWeights *weights, unsigned char character)
{
	const unsigned char *next = &character;
	bool		alone;

	return gpusort_locale_tables_next(&weights->tables, &next, next + 1, 1, &alone);
}

/* Compares weights that are preceded by their number of bytes. */
static int
compare_weights(const unsigned char *a, const unsigned char *b)
{
	int			cmp = memcmp(a + 1, b + 1, Min(a[0], b[0]));

	return cmp != 0 ? cmp : (int) a[0] - (int) b[0];
}

/* See gpusort_locale_tables_weights(). */
static const unsigned char *
weights_of_level(const GsLocaleWeights *weights, unsigned char character, uint32 level,
				 unsigned char *rule)
{
	return gpusort_locale_tables_weights(&weights->tables, position_of(weights, character),
										 level, rule);
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

/* Find the letters and digits that are plain, among the characters that can be printed. */
static void
find_letters(GsPlainFinder *finder)
{
	const GsLocaleWeights *weights = finder->weights;

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
		finder->kind[a] = cmp > 0 ? GS_PLAIN_GREATER : GS_PLAIN;
		finder->second_rule[a] = rule;
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
is_special(const GsPlainFinder *finder, unsigned char character)
{
	const GsLocaleWeights *weights = finder->weights;
	unsigned char rule;

	if (weights->before_ascii[character] != GPUSORT_NO_WEIGHT ||
		fourth_level(weights, character) == NULL ||
		weights_of_level(weights, character, 2, &rule)[0] > 0 ||
		weights_of_level(weights, character, 1, &rule)[0] > 0)
		return false;
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED && rule == GPUSORT_RULE_FORWARD; c++)
		if (finder->kind[c] < GS_PLAIN_SPECIAL &&
			finder->second_rule[c] > GPUSORT_RULE_FORWARD)
			return false;
	return true;
}

/*
 * Returns how many specials, or how many plain letters and digits, are less than a character on the
 * fourth level.  Sets *same to how many are equal.
 */
static unsigned
count_less(const GsPlainFinder *finder, bool specials, unsigned char character, unsigned *same)
{
	unsigned	less = 0;

	*same = 0;
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
		if (specials ? finder->special[c] : finder->kind[c] != GS_NOT_PLAIN &&
			finder->kind[c] < GS_PLAIN_SPECIAL)
		{
			int			cmp = compare_weights(fourth_level(finder->weights, c),
											  fourth_level(finder->weights, character));

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
find_specials(GsPlainFinder *finder)
{
	const GsLocaleWeights *weights = finder->weights;
	const unsigned char *second = NULL;

	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
	{
		unsigned char rule;
		const unsigned char *level;

		if (finder->kind[c] == GS_NOT_PLAIN)
			continue;
		level = weights_of_level(weights, c, 1, &rule);
		if (second == NULL)
			second = level;
		if (compare_weights(level, second) != 0 || level[0] != 1 ||
			fourth_level(weights, c) == NULL)
			return;
	}
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
		finder->special[c] = is_special(finder, c);
	for (int c = FIRST_PRINTED; c <= LAST_PRINTED; c++)
	{
		unsigned	same;
		unsigned	number;

		if (!finder->special[c] || count_less(finder, false, c, &same) > 0 || same > 0)
			continue;
		number = count_less(finder, true, c, &same);
		if (same != 1 || number + 1 >= 1 << GPUSORT_SPECIAL_NUMBER_BITS)
			continue;
		finder->kind[c] = GS_PLAIN_SPECIAL + number;
		(void) weights_of_level(weights, c, 1, &finder->second_rule[c]);
	}
}

/* Returns the entry of a character in a GsPlainTable. */
static uint16
entry_of(const GsPlainFinder *finder, unsigned char character)
{
	unsigned char kind = finder->kind[character];
	uint16		backward = (finder->second_rule[character] != GPUSORT_RULE_FORWARD) <<
		GS_PLAIN_BACKWARD_BIT;

	if (kind == GS_NOT_PLAIN)
		return 0;
	if (kind >= GS_PLAIN_SPECIAL)
		return (kind - GS_PLAIN_SPECIAL + 1) << GS_PLAIN_NUMBER_BIT | backward;
	return (kind == GS_PLAIN_GREATER) << GS_PLAIN_GREATER_BIT | backward |
		finder->weights->before_ascii[character];
}

/* ----------------------------------------------------------------
 *		checking them
 * ----------------------------------------------------------------
 */

/* Returns the n-th plain character that is special, or is not, from the n-th place in ASCII on. */
static char
plain_character(const GsPlainFinder *finder, bool special, unsigned n)
{
	for (unsigned i = 0; i < FIRST_NOT_ASCII; i++)
	{
		unsigned	c = (n + i) % FIRST_NOT_ASCII;

		if (finder->kind[c] != GS_NOT_PLAIN &&
			(finder->kind[c] >= GS_PLAIN_SPECIAL) == special)
			return c;
	}
	return '\0';
}

/* Returns the other plain character with the weight of this one, or the same if there is none. */
static char
other_case(const GsPlainFinder *finder, char letter)
{
	const GsLocaleWeights *weights = finder->weights;

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
make_plain_string(const GsPlainFinder *finder, unsigned n, uint32 shape,
				  char string[CHECKED_LENGTH + 1])
{
	int			letters = 0;
	int			length = 0;

	for (int i = 0; i < CHECKED_LENGTH; i++, shape >>= 3)
	{
		bool		special = (shape & 4) != 0;
		unsigned	kind = special ? n + 31 * (shape & 1) : n + 77 * (letters++ % 2);
		char		c = plain_character(finder, special, kind);

		if (!special && (shape & 1) != 0)
			c = other_case(finder, c);
		if (c != '\0')
			string[length++] = c;
	}
	string[length] = '\0';
}

/* Does strcoll_l() order plain strings as their bytes and the rest do? */
static bool
agrees_with_strcoll(const GsPlainFinder *finder)
{
	locale_t	locale = finder->weights->locale;
	const GsPlainLimits limits = {.letters = CHECKED_LENGTH,.specials = 4};
	char		strings[2][CHECKED_LENGTH + 1];

	if (plain_character(finder, false, 0) == '\0')
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
			make_plain_string(finder, i, i * (p == 0 ? 2654435761U : 2246822519U),
							  strings[p]);
			plain &= gpusort_plain_string_encode(finder->weights, limits,
												 (unsigned char *) strings[p],
												 strlen(strings[p]), bytes[p], &rest[p]);
		}
		if (!plain)
			continue;
		cmp = memcmp(bytes[0], bytes[1], CHECKED_LENGTH);
		if (cmp == 0)
			cmp = (rest[0] > rest[1]) - (rest[0] < rest[1]);
		expected = strcoll_l(strings[0], strings[1], locale);
		if ((cmp > 0) - (cmp < 0) != (expected > 0) - (expected < 0))
			return false;
	}
	return true;
}

static void
make_table(const GsLocaleWeights *weights)
{
	GsPlainFinder finder = {.weights = weights};
	GsPlainTable *table = weights->plain;

	find_letters(&finder);
	find_specials(&finder);
	for (int c = 0; c < FIRST_NOT_ASCII; c++)
		table->characters[c] = entry_of(&finder, c);
	table->made = true;
	if (!agrees_with_strcoll(&finder))
		memset(table->characters, 0, sizeof(table->characters));
}
