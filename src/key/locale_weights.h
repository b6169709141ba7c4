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

#include "key/locale_tables.h"

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

	GsLocaleTables tables;
	GsWeightAlphabet alphabet;
	GsRecentCharacter *recent;	/* GPUSORT_RECENT_CHARACTERS of them */
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

#endif							/* GPUSORT_LOCALE_WEIGHTS_H */
