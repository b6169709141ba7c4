/*-------------------------------------------------------------------------
 *
 * key_codec.h
 *		Order-preserving encodings of scalar values as unsigned words.
 *
 * Each function maps a value to an unsigned integer of the value's width so
 * that comparing the integers gives the order of PostgreSQL's btree operator
 * class for the type.  Two values get the same word exactly when that
 * operator class calls them equal; the encodings are not meant to be decoded
 * (-0 and +0 share a word, as do all NaNs), rows keep the original value.
 *
 * This header knows nothing of PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_CODEC_H
#define GPUSORT_KEY_CODEC_H

#include <stdint.h>
#include <string.h>

/* Signed integers: moving the sign bit up by one turns the order unsigned. */
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
 * Floating point: IEEE 754 numbers of one sign order like their bit
 * patterns, so positive numbers get the sign bit set and negative ones are
 * inverted.  -0 is taken for +0; a NaN of any sign and payload becomes the
 * greatest word, which no number's encoding reaches.
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

/* Byte strings of 1 to 8 bytes that order as memcmp() orders them. */
static inline uint64_t
gpusort_codec_bytes(const unsigned char *bytes, unsigned length)
{
	uint64_t	word = 0;

	for (unsigned i = 0; i < length; i++)
		word = (word << 8) | bytes[i];
	return word;
}

/*
 * Strings of any length are sequences of words; these give the first one of
 * what is left of a string, 'length' bytes.  Two strings have the order of the
 * first words that differ.
 *
 * Strings without zero bytes: 8 bytes in a word, zeros behind the end.  A word
 * whose last byte is 0 is the last one that matters.
 */
static inline uint64_t
gpusort_codec_string(const unsigned char *bytes, size_t length)
{
	if (length >= 8)
		return gpusort_codec_bytes(bytes, 8);
	if (length == 0)
		return 0;
	return gpusort_codec_bytes(bytes, (unsigned) length) << (8 * (8 - length));
}

/*
 * Strings of any bytes: 7 of them in a word, zeros behind the end, and in its
 * last byte how many there are, 8 if more follow: of "a" and "a" with a zero,
 * the shorter one is less.
 */
static inline uint64_t
gpusort_codec_binary(const unsigned char *bytes, size_t length)
{
	if (length > 7)
		return gpusort_codec_bytes(bytes, 7) << 8 | 8;
	return gpusort_codec_string(bytes, length) | length;
}

#endif							/* GPUSORT_KEY_CODEC_H */
