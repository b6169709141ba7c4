/*-------------------------------------------------------------------------
 *
 * key_codec.h
 *		Order-preserving encodings of scalar values as unsigned words.
 *
 * Each function maps a value to an unsigned integer of the value's width, such
 * that comparing the integers gives the order of PostgreSQL's btree operator
 * class for the type.  Two values have the same word if and only if that
 * operator class calls them equal: -0 and +0 have the same word, and so do all
 * NaNs.  Therefore rows keep the original value.
 *
 * This header does not depend on PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_CODEC_H
#define GPUSORT_KEY_CODEC_H

#include <stdint.h>
#include <string.h>

/*
 * Signed integers: inverting the sign bit gives an unsigned integer with the
 * same order.
 */
static inline uint64_t
gpusort_codec_int16(int16_t value)
{
	return (uint64_t) ((uint16_t) value ^ UINT16_C(0x8000));
}

static inline uint64_t
gpusort_codec_int32(int32_t value)
{
	return (uint64_t) ((uint32_t) value ^ UINT32_C(0x80000000));
}

static inline uint64_t
gpusort_codec_int64(int64_t value)
{
	return (uint64_t) value ^ UINT64_C(0x8000000000000000);
}

/*
 * Floating point: IEEE 754 numbers of the same sign are ordered by their
 * magnitude bits.  So we set the sign bit of positive numbers, and invert all
 * bits of negative ones.  -0 is encoded as +0.  Every NaN becomes the greatest
 * word, which no number is encoded as.
 */
static inline uint64_t
gpusort_codec_float4(float value)
{
	uint32_t	bits;

	if (value != value)
		return UINT32_MAX;
	if (value == 0)
		value = 0;
	memcpy(&bits, &value, sizeof(bits));
	return (bits >> 31) ? (uint32_t) ~bits : (bits | UINT32_C(0x80000000));
}

static inline uint64_t
gpusort_codec_float8(double value)
{
	uint64_t	bits;

	if (value != value)
		return UINT64_MAX;
	if (value == 0)
		value = 0;
	memcpy(&bits, &value, sizeof(bits));
	return (bits >> 63) ? ~bits : (bits | UINT64_C(0x8000000000000000));
}

/* Byte strings of up to 8 bytes, in the order of memcmp(). */
static inline uint64_t
gpusort_codec_bytes(const unsigned char *bytes, unsigned length)
{
	uint64_t	word = 0;

	for (unsigned i = 0; i < length; i++)
		word = (word << 8) | bytes[i];
	return word;
}

/* The same for 8 bytes.  Compilers make a single load of this expression, but not of a loop. */
static inline uint64_t
gpusort_codec_8_bytes(const unsigned char *bytes)
{
	return (uint64_t) bytes[0] << 56 | (uint64_t) bytes[1] << 48 |
		(uint64_t) bytes[2] << 40 | (uint64_t) bytes[3] << 32 |
		(uint64_t) bytes[4] << 24 | (uint64_t) bytes[5] << 16 |
		(uint64_t) bytes[6] << 8 | bytes[7];
}

/*
 * A string of any length is encoded as a sequence of words.  These functions
 * return the first word of the remaining 'length' bytes of a string.  Two
 * strings have the order of the first words that differ.
 *
 * Strings without zero bytes have 8 bytes per word, with zeros behind the end.
 * A word whose last byte is 0 is the last one that matters.
 */
static inline uint64_t
gpusort_codec_string(const unsigned char *bytes, size_t length)
{
	if (length >= 8)
		return gpusort_codec_8_bytes(bytes);
	if (length == 0)
		return 0;
	return gpusort_codec_bytes(bytes, (unsigned) length) << (8 * (8 - length));
}

/*
 * Texts have no zero bytes either, unless a cast without a function made them, but they are
 * compared as if these were characters.  So a byte 0 is written as the bytes 1 and 1, and a byte
 * 1, which is as rare, as 1 and 2.  Words of a text that has neither are those above.
 */
typedef struct GsTextBytes
{
	const unsigned char *next;	/* what is not yet written */
	size_t		length;
	unsigned char second;		/* of two bytes for one, if the last word has
								 * the first of them; otherwise 0 */
} GsTextBytes;

/* Returns the next of a text's bytes in words, or 0 after the last one. */
static inline unsigned char
gpusort_codec_text_byte(GsTextBytes *text)
{
	unsigned char byte = text->second;

	text->second = 0;
	if (byte != 0 || text->length == 0)
		return byte;
	byte = *text->next++;
	text->length--;
	if (byte > 1)
		return byte;
	text->second = byte + 1;
	return 1;
}

/* Returns the next 'count' bytes of a text in words as a number, 1 to 8 of them. */
static inline uint64_t
gpusort_codec_text(GsTextBytes *text, unsigned count)
{
	unsigned	there = text->length < count ? (unsigned) text->length : count;
	uint64_t	word = there == 8 ? gpusort_codec_8_bytes(text->next) :
		gpusort_codec_bytes(text->next, there);
	uint64_t	padded = there == 8 ? word : word | UINT64_MAX << (8 * there);

	/* Is any byte less than 2? */
	if (((padded - UINT64_C(0x0202020202020202)) & ~padded &
		 UINT64_C(0x8080808080808080)) == 0 && text->second == 0)
	{
		text->next += there;
		text->length -= there;
		return there == 0 ? 0 : word << (8 * (count - there));
	}
	word = 0;
	for (unsigned i = 0; i < count; i++)
		word = word << 8 | gpusort_codec_text_byte(text);
	return word;
}

/*
 * Returns how many bytes of a text its first 'count' bytes in words stand for; the first of two
 * for one byte does not.
 */
static inline size_t
gpusort_codec_text_prefix(const unsigned char *text, size_t length, size_t count)
{
	size_t		prefix = 0;
	size_t		written = 0;

	while (prefix < length && (written += text[prefix] > 1 ? 1 : 2) <= count)
		prefix++;
	return prefix;
}

/*
 * Strings that can have zero bytes have 7 bytes per word, with zeros behind
 * the end.  The last byte of a word is their number, or 8 if more bytes
 * follow.  It makes "a" less than "a" followed by a zero byte.
 */
static inline uint64_t
gpusort_codec_binary(const unsigned char *bytes, size_t length)
{
	if (length > 7)
		return gpusort_codec_bytes(bytes, 7) << 8 | 8;
	return gpusort_codec_string(bytes, length) | length;
}

#endif							/* GPUSORT_KEY_CODEC_H */
