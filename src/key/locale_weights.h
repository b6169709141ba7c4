/*-------------------------------------------------------------------------
 *
 * locale_weights.h
 *		Turns strings into bytes with the order of a locale of the GNU C library.
 *
 * The bytes are the string's collation weights of the first level, each as one byte or
 * as some.  They are never 0.  If those of two strings differ, memcmp() of them has the
 * same sign as strcoll() of the strings, where a string that ends comes first.  If they
 * are equal, only strcoll() can tell.  docs/design/keys.md says why this is so.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOCALE_WEIGHTS_H
#define GPUSORT_LOCALE_WEIGHTS_H

#include <locale.h>

#include "mb/pg_wchar.h"

/* ---- The tables by which the GNU C library compares strings: locale_tables.c ---- */

/* A weight has at most this many bytes. */
#define GPUSORT_MAX_WEIGHT_BYTES	6

/*
 * 'starts' has for each first byte of a sequence of characters the position of its weights
 * in 'levels', or, if longer sequences begin with it, the negated position of their list in
 * 'sequences'.  An entry of a list has a position, the number n of bytes that follow the
 * first one, and these bytes; the next one is aligned like an int32.  If its position is
 * negative, the entry is for all sequences between two ones of n more bytes each, and the
 * positions of their weights are in 'ranges', from there on.  The last entry has no more
 * bytes.  The first entry that matches counts.
 *
 * The high 8 bits of the position of weights are the number of its rules.  There 'levels'
 * has for each level the number of bytes of the weights and these bytes.
 *
 * This is the layout of glibc's locale files, which its string/strcoll_l.c reads.
 */
typedef struct GsLocaleTables
{
	uint32		nrules;			/* levels */
	const unsigned char *rules;
	Size		rules_bytes;
	const int32 *starts;		/* by the first byte of a sequence */
	const unsigned char *levels;
	Size		levels_bytes;
	const unsigned char *sequences;
	Size		sequences_bytes;
	const int32 *ranges;
	Size		nranges;
} GsLocaleTables;

/* A list entry. */
typedef struct GsSequence
{
	int32		position;
	Size		length;			/* of the bytes after the first one */
	const unsigned char *first;
	const unsigned char *last;	/* of a range, otherwise the same as 'first' */
	const unsigned char *next;	/* entry */
} GsSequence;

/*
 * Find the tables of a locale, which last as long as it, and check that they are as described
 * above, so that no later look-up leaves them.  Returns false if they are not.
 */
extern bool gpusort_locale_tables_find(GsLocaleTables *tables, locale_t locale);

/*
 * Read the sequence at *next, and advance it.  Returns the position of its weights.  Sets
 * *alone to whether it is one character of that length, and would be so whatever follows.
 */
extern int32 gpusort_locale_tables_next(const GsLocaleTables *tables,
										const unsigned char **next,
										const unsigned char *end,
										Size character_bytes, bool *alone);

/* Read an entry of a list. */
static inline GsSequence
gpusort_locale_tables_read(const unsigned char *entry)
{
	GsSequence	sequence;
	Size		bytes;

	memcpy(&sequence.position, entry, sizeof(int32));
	sequence.length = entry[sizeof(int32)];
	sequence.first = entry + sizeof(int32) + 1;
	sequence.last = sequence.first;
	bytes = 1 + sequence.length;
	if (sequence.position < 0)
	{
		sequence.last += sequence.length;
		bytes += sequence.length;
	}
	sequence.next = entry + sizeof(int32) + TYPEALIGN(sizeof(int32), bytes);
	return sequence;
}

/* Returns the number of bytes of a character of the database's encoding, or 1. */
static inline Size
gpusort_locale_tables_character(const unsigned char *character)
{
	return GetDatabaseEncoding() == PG_UTF8 ? pg_utf_mblen(character) : 1;
}

/*
 * The rules of a level: weights are compared from the first to the last; and before a weight, how
 * many sequences without one precede it.
 */
#define GPUSORT_RULE_FORWARD	1
#define GPUSORT_RULE_POSITION	4

/*
 * Returns the weights of a level, counted from 0, at a position, preceded by their number of bytes,
 * and sets *rule.  Returns NULL if there is no such level.
 */
extern const unsigned char *gpusort_locale_tables_weights(const GsLocaleTables *tables,
														  int32 position, uint32 level,
														  unsigned char *rule);

/* The bytes of the weights of the first level at a position. */
static inline const unsigned char *
gpusort_locale_tables_level(const GsLocaleTables *tables, int32 position, Size *length)
{
	const unsigned char *level = tables->levels + (position & 0xFFFFFF);

	*length = level[0];
	return level + 1;
}

/*
 * Returns the length of the first of some weights, or 0 if it is not well-formed: no
 * weight must be the beginning of another one.  Sets *weight to a number with the order of
 * its bytes.
 */
static inline Size
gpusort_locale_tables_weight(const unsigned char *bytes, Size length, uint64 *weight)
{
	static const unsigned char leads[GPUSORT_MAX_WEIGHT_BYTES] =
	{0x00, 0xC0, 0xE0, 0xF0, 0xF8, 0xFC};
	Size		n = 0;

	if (length == 0 || bytes[0] < 2 || bytes[0] >= 0xFE ||
		(bytes[0] >= 0x80 && bytes[0] < 0xC0))
		return 0;
	while (n < GPUSORT_MAX_WEIGHT_BYTES && bytes[0] >= leads[n])
		n++;
	if (n > 1 && bytes[0] < 0x80)
		n = 1;
	if (n > length)
		return 0;
	*weight = 0;
	for (Size i = 0; i < n; i++)
	{
		if (i > 0 && (bytes[i] & 0xC0) != 0x80)
			return 0;
		*weight |= (uint64) bytes[i] << (8 * (GPUSORT_MAX_WEIGHT_BYTES - 1 - i));
	}
	return n;
}

/* ---- Bytes that are made by them: locale_weights.c ---- */

typedef struct GsLocaleWeights GsLocaleWeights;

/*
 * Returns the weights of a locale, which remain for the life of the process.  Returns
 * NULL if it is none of the GNU C library with rules of its own, or if its tables or
 * weights are not as they should be.
 */
extern const GsLocaleWeights *gpusort_locale_weights_get(const char *name);

/*
 * The weights of the most common characters, at most GPUSORT_ALPHABET_SIZE of them, are written
 * as one even byte each, in ascending order: 2, 4, and so on.  Any other weight is written as the
 * odd byte between its neighbours among these, followed by its own bytes.  So most characters
 * take one byte, where the C library needs three.
 */
#define GPUSORT_ALPHABET_SIZE	126

typedef struct GsWeightAlphabet
{
	int			size;
	uint64		weights[GPUSORT_ALPHABET_SIZE]; /* ascending */
} GsWeightAlphabet;

/*
 * The most bytes for one sequence of characters: each of at most 255 bytes of weights can
 * be a weight of its own, which takes one byte more.
 */
#define GPUSORT_MAX_SEQUENCE_BYTES	(2 * 255)

/* For a test: make wrong weights. */
extern bool gpusort_locale_weights_spoil;

/* Reads the bytes of a string one by one.  Callers allocate it. */
typedef struct GsWeightReader
{
	const GsLocaleWeights *weights;
	const unsigned char *next;	/* what has not been read of the string */
	const unsigned char *end;
	unsigned	waiting;		/* of the bytes of a sequence, at the end of: */
	unsigned	count;
	unsigned char bytes[GPUSORT_MAX_SEQUENCE_BYTES];
} GsWeightReader;

/* Characters of several bytes that have been looked up: a power of 2. */
#define GPUSORT_RECENT_CHARACTERS	1024
#define GPUSORT_RECENT_BYTES		11

/* The bytes of a character of several bytes that starts no longer sequence. */
typedef struct GsRecentCharacter
{
	uint32		character;		/* its own bytes; 0 if unused */
	uint8		count;
	unsigned char bytes[GPUSORT_RECENT_BYTES];
} GsRecentCharacter;

/*
 * Strings of plain characters of ASCII are compared by nothing else than this.  A letter or a digit
 * has a weight on the first level, which it shares with at most one other character, as "a" with
 * "A".  All have the same weights on the second level, and such two have different ones on the
 * third.  A special, as the blank in most locales, has weights on the fourth level only, all of
 * which are less than those of letters there.
 *
 * The entry of a character is 0 if it is not plain.  Otherwise its first bits are the byte of a
 * letter or digit, or 0.  Then come: whether it is the greater one of two letters with that byte;
 * whether it is compared backward on the second level; the number of a special, from 1 on, in their
 * order, or 0.
 */
typedef struct GsPlainTable
{
	bool		made;
	uint16		characters[256];
} GsPlainTable;

#define GS_PLAIN_GREATER_BIT	8
#define GS_PLAIN_BACKWARD_BIT	9
#define GS_PLAIN_NUMBER_BIT		10

/*
 * The bits of a special: how many letters follow the last one, and its number, both from 1 on.  The
 * end of the string counts as one with number 0.
 */
#define GPUSORT_SPECIAL_GAP_BITS	5
#define GPUSORT_SPECIAL_NUMBER_BITS	6
#define GPUSORT_SPECIAL_BITS		(GPUSORT_SPECIAL_GAP_BITS + GPUSORT_SPECIAL_NUMBER_BITS)

/* How many letters or digits, and how many specials a plain string may have. */
typedef struct GsPlainLimits
{
	unsigned	letters;		/* less than 2 ^ GPUSORT_SPECIAL_GAP_BITS */
	unsigned	specials;
} GsPlainLimits;

/* The bits of how many letters the second level skips, see count_skipped(). */
#define GPUSORT_SKIPPED_BITS	3

/* The bits that tell plain strings with the same bytes apart, at most 64. */
static inline unsigned
gpusort_plain_bits(GsPlainLimits limits)
{
	return GPUSORT_SKIPPED_BITS + limits.letters + limits.specials * GPUSORT_SPECIAL_BITS;
}

struct GsLocaleWeights
{
	/*
	 * The byte for a character of one byte, whatever follows it, or unless a
	 * byte from 0x80 on follows it; GPUSORT_NO_WEIGHT if it has none.  0 if
	 * it has several bytes, or may be the start of a longer sequence.
	 */
	unsigned char alone[256];
	unsigned char before_ascii[256];
	bool		ascii_is_simple;	/* has all of ASCII such a byte? */

	locale_t	locale;			/* of the C library */
	GsLocaleTables tables;
	GsWeightAlphabet alphabet;
	GsRecentCharacter *recent;	/* GPUSORT_RECENT_CHARACTERS of them */
	GsPlainTable *plain;
};

#define GPUSORT_NO_WEIGHT	255

/* Begin to read a string of 'length' bytes, which also ends at a zero byte, as for strcoll(). */
static inline void
gpusort_weight_reader_begin(GsWeightReader *reader,
							const GsLocaleWeights *weights,
							const unsigned char *string, Size length)
{
	reader->weights = weights;
	reader->next = string;
	reader->end = string + length;
	reader->waiting = 0;
}

/* Read the next sequence of characters that has a byte.  Returns 0 if there is none. */
extern unsigned char gpusort_weight_reader_sequence(GsWeightReader *reader);

/* Returns the next byte, or 0 behind the last one. */
static inline unsigned char
gpusort_weight_reader_next(GsWeightReader *reader)
{
	const GsLocaleWeights *weights = reader->weights;

	if (unlikely(reader->waiting > 0))
		return reader->bytes[reader->count - reader->waiting--];
	while (likely(reader->next < reader->end))
	{
		unsigned char first = *reader->next;
		unsigned char byte = weights->alone[first];

		if (byte == 0 && (reader->next + 1 == reader->end || reader->next[1] < 0x80))
			byte = weights->before_ascii[first];
		if (unlikely(byte == 0))
			return gpusort_weight_reader_sequence(reader);
		reader->next++;
		if (likely(byte != GPUSORT_NO_WEIGHT))
			return byte;
	}
	return 0;
}

/* The length of strings of which a memo knows the beginning, and room for their bytes. */
#define GPUSORT_MEMO_LENGTH		128
#define GPUSORT_MEMO_BYTES		512

/*
 * Remembers the bytes of the string last read, of characters of ASCII at its beginning.
 * Callers allocate it, all zero at first.
 */
typedef struct GsWeightMemo
{
	Size		start;			/* number of the first byte in 'bytes' */
	unsigned	length;			/* of the string, as far as it is known */
	unsigned char string[GPUSORT_MEMO_LENGTH];
	uint8		counts[GPUSORT_MEMO_LENGTH + 1];	/* bytes of the first 0,
													 * 1, 2 ... characters */
	unsigned char bytes[GPUSORT_MEMO_BYTES];
} GsWeightMemo;

/*
 * Begin to read a string from the byte with number 'start' on.  Puts the bytes from there on
 * into memo->bytes, as far as it can, but at most 'count' + 1, and returns their number.
 * *skipped is the number of bytes before them that need not be read; the reader is behind all
 * of these.  This is fast for strings that begin like the one before.
 */
extern Size gpusort_weight_memo_begin(GsWeightMemo *memo, GsWeightReader *reader,
									  const GsLocaleWeights *weights,
									  const unsigned char *string, Size length,
									  Size start, Size count, Size *skipped);

/*
 * Compare two strings by their bytes.  Returns 0 if these are equal.  Checks for
 * interrupts within long strings.
 */
extern int	gpusort_locale_weights_compare(const GsLocaleWeights *weights,
										   const unsigned char *a, Size a_length,
										   const unsigned char *b, Size b_length);

/* ---- What these bytes leave open: plain_strings.c ---- */

/* Returns the table of a locale, which is made when it is first asked for. */
extern const GsPlainTable *gpusort_plain_strings_table(const GsLocaleWeights *weights);

/*
 * If all characters of a string are plain and within limits: write its bytes, one for each letter
 * or digit, and set the lowest bits of *rest so that strcoll() orders such strings by their bytes,
 * of which the end comes first, and then by *rest.  Only equal strings have equal ones.  Otherwise
 * returns false, and may have written some.  'bytes' has room for as many as both limits together.
 */
extern bool gpusort_plain_string_encode(const GsLocaleWeights *weights, GsPlainLimits limits,
										const unsigned char *string, Size length,
										unsigned char *bytes, uint64 *rest);

#endif							/* GPUSORT_LOCALE_WEIGHTS_H */
