/*-------------------------------------------------------------------------
 *
 * key_column.h
 *		One of several sort keys, and how its values get into the words of a key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COLUMN_H
#define GPUSORT_KEY_COLUMN_H

#include "access/attnum.h"

#include "core/radix_sort.h"
#include "key/key_encoding.h"
#include "settings.h"

#define GPUSORT_WORD_BITS	64

typedef struct GsKeyColumn
{
	GsKeyEncoding encoding;
	AttrNumber	attno;
	bool		nulls_first;
	bool		descending;		/* are words inverted? */
} GsKeyColumn;

/* Returns the number of bits of a column's NULL: rows with a first NULL are sorted separately. */
static inline unsigned
gpusort_key_null_bits(int column)
{
	return column > 0 ? 1 : 0;
}

/* Set the bits [position, position + width) of a key, which are zero so far. */
static inline void
gpusort_key_set_bits(uint64 *key, unsigned position, unsigned width, uint64 value)
{
	uint64	   *word = &key[position / GPUSORT_WORD_BITS];
	unsigned	room = GPUSORT_WORD_BITS - position % GPUSORT_WORD_BITS;

	if (width <= room)
		word[0] |= value << (room - width);
	else
	{
		word[0] |= value >> (width - room);
		word[1] |= value << (GPUSORT_WORD_BITS - (width - room));
	}
}

/* Returns the word of a column's value at 'index', which has 'width' bits. */
static inline uint64
gpusort_key_column_word(const GsKeyColumn *column, Datum value, uint32 index, unsigned width)
{
	uint64		word = gpusort_key_encoding_word(&column->encoding, value, index);

	/* One value of many, always the same. */
	if (GPUSORT_IS_WRONG(GS_WRONG_ENCODING) && word % 97 == 3)
		word ^= PG_UINT64_MAX >> (GPUSORT_WORD_BITS - width);
	return column->descending ? word ^ (PG_UINT64_MAX >> (GPUSORT_WORD_BITS - width)) :
		word;
}

/* Set the bits from a position on to the first 'bits' bits of some words. */
static inline void
gpusort_key_column_write(const GsKeyColumn *column, unsigned bits, unsigned position,
						 const uint64 *words, uint64 *key)
{
	for (unsigned w = 0; bits > 0; w++)
	{
		unsigned	width = Min(bits, GPUSORT_WORD_BITS);
		uint64		word = column->descending ? ~words[w] : words[w];

		gpusort_key_set_bits(key, position, width, word >> (GPUSORT_WORD_BITS - width));
		position += width;
		bits -= width;
	}
}

/*
 * Encode the first 'bits' bits of a value, from a position on.  The bytes of a string are looked up
 * once for all of its words.
 */
static inline void
gpusort_key_column_encode(const GsKeyColumn *column, unsigned bits, unsigned position,
						  Datum value, uint64 *key)
{
	if (bits > GPUSORT_WORD_BITS && gpusort_key_encoding_is_string(&column->encoding))
	{
		uint64		words[GPUSORT_CPU_MAX_KEY_WORDS];

		gpusort_key_encoding_string_words(&column->encoding, value, words,
										  (bits + GPUSORT_WORD_BITS - 1) / GPUSORT_WORD_BITS);
		gpusort_key_column_write(column, bits, position, words, key);
		return;
	}
	for (uint32 index = 0; bits > 0; index++)
	{
		unsigned	width = Min(bits, GPUSORT_WORD_BITS);

		gpusort_key_set_bits(key, position, width,
							 gpusort_key_column_word(column, value, index, width));
		position += width;
		bits -= width;
	}
}

#endif							/* GPUSORT_KEY_COLUMN_H */
