/*-------------------------------------------------------------------------
 *
 * varbyte.h
 *		Numbers of up to 49 bits in as few bytes as they need.
 *
 * A byte has seven bits of the number, the lowest ones first.  Its highest bit says that another
 * byte follows.
 *
 * The lengths of the numbers mostly follow no pattern that a processor could predict.  So there
 * are no branches but for a single byte, which is by far the most frequent length in long
 * lists: groups of 7 bits are moved together or apart, half of them at a time.
 *
 * This header does not depend on PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_VARBYTE_H
#define GPUSORT_VARBYTE_H

#include <stdint.h>
#include <string.h>

/* The most bytes of a number, and those that there must be where it is written. */
#define GPUSORT_VARBYTE_MAX		7
#define GPUSORT_VARBYTE_ROOM	8

#define GPUSORT_VARBYTE_MORE	UINT64_C(0x8080808080808080)

/* Eight bytes in memory as a number with the first of them in its lowest bits. */
static inline uint64_t
gpusort_varbyte_swap(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(word);
#else
	return word;
#endif
}

/* Write a number.  Bytes of the room that it does not need may become 0.  Returns its end. */
static inline uint8_t *
gpusort_varbyte_write(uint8_t *bytes, uint64_t number)
{
	unsigned	length = (unsigned) (63 - __builtin_clzll(number | 1)) / 7 + 1;
	uint64_t	word = number;

	if (number <= 0x7F)
	{
		*bytes = (uint8_t) number;
		return bytes + 1;
	}
	word = (word & UINT64_C(0x000000000FFFFFFF)) | (word & UINT64_C(0x00FFFFFFF0000000)) << 4;
	word = (word & UINT64_C(0x00003FFF00003FFF)) | (word & UINT64_C(0x0FFFC0000FFFC000)) << 2;
	word = (word & UINT64_C(0x007F007F007F007F)) | (word & UINT64_C(0x3F803F803F803F80)) << 1;
	word |= GPUSORT_VARBYTE_MORE & ((UINT64_C(1) << (length - 1) * 8) - 1);
	word = gpusort_varbyte_swap(word);
	memcpy(bytes, &word, sizeof(word));
	return bytes + length;
}

/* Read a number.  Returns its end. */
static inline const uint8_t *
gpusort_varbyte_read(const uint8_t *bytes, uint64_t *number)
{
	uint64_t	value = *bytes & 0x7F;

	for (unsigned shift = 7; (*bytes++ & 0x80) != 0; shift += 7)
		value |= (uint64_t) (*bytes & 0x7F) << shift;
	*number = value;
	return bytes;
}

/* The same, if GPUSORT_VARBYTE_ROOM bytes may be read, whatever those behind its end are. */
static inline const uint8_t *
gpusort_varbyte_read_ahead(const uint8_t *bytes, uint64_t *number)
{
	uint64_t	word;
	uint64_t	ends;

	if (*bytes <= 0x7F)
	{
		*number = *bytes;
		return bytes + 1;
	}
	memcpy(&word, bytes, sizeof(word));
	word = gpusort_varbyte_swap(word);
	ends = ~word & GPUSORT_VARBYTE_MORE;
	word &= ends ^ (ends - 1);
	word = (word & UINT64_C(0x007F007F007F007F)) | (word & UINT64_C(0x7F007F007F007F00)) >> 1;
	word = (word & UINT64_C(0x00003FFF00003FFF)) | (word & UINT64_C(0x3FFF00003FFF0000)) >> 2;
	*number = (word & UINT64_C(0x000000000FFFFFFF)) | (word & UINT64_C(0x0FFFFFFF00000000)) >> 4;
	return bytes + (unsigned) __builtin_ctzll(ends) / 8 + 1;
}

#endif							/* GPUSORT_VARBYTE_H */
