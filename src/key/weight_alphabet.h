/*-------------------------------------------------------------------------
 *
 * weight_alphabet.h
 *		Short bytes for the weights of a locale of the GNU C library.
 *
 * Up to GPUSORT_ALPHABET_SIZE weights, those of the most common characters, have an even byte
 * of their own, the lowest weight 2, the next one 4.  Any other weight has the odd byte for
 * its place among these, and behind that its own bytes.  Thus most characters take one
 * byte, where the C library needs three.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WEIGHT_ALPHABET_H
#define GPUSORT_WEIGHT_ALPHABET_H

#include "lib/stringinfo.h"

#include "key/locale_tables.h"

#define GPUSORT_ALPHABET_SIZE	126

typedef struct GsWeightAlphabet
{
	int			size;
	uint64		weights[GPUSORT_ALPHABET_SIZE]; /* ascending */
} GsWeightAlphabet;

/* Choose the weights of an empty alphabet. */
extern void gpusort_weight_alphabet_make(GsWeightAlphabet *alphabet,
										 const GsLocaleTables *tables);

/*
 * Write the bytes for 'length' bytes of well-formed weights.  Returns their number, which is
 * at most twice as large.
 */
extern unsigned gpusort_weight_alphabet_write(const GsWeightAlphabet *alphabet,
											  const unsigned char *weights, Size length,
											  unsigned char *bytes);

/* Append the characters from whose weights alphabets are chosen. */
extern void gpusort_weight_alphabet_sample(StringInfo string);

#endif							/* GPUSORT_WEIGHT_ALPHABET_H */
