/*-------------------------------------------------------------------------
 *
 * numeric_words.c
 *		Encodes values of type numeric as words with the same order.
 *
 * A numeric is stored as base-10000 digits, without leading or trailing zeros,
 * and a weight, which is the exponent of the first digit in that base.  A
 * header of one or two 16-bit integers comes before the digits.  PostgreSQL's
 * numeric.c describes the format.  Since tables have it on disk, it does not
 * change.
 *
 * Each word has four digits, as a number in 54 bits, and a bit that is set if
 * more digits follow.  Above these, the first word has the sign and a code for
 * the weight.  Each weight from -60 to 60 has its own code.  All smaller
 * weights share one code, and so do all larger ones: these values have no digits
 * in their words, so that only comparisons order them.  The words of
 * negative values are inverted.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"

#include "key/type_words.h"

/* Bits in the first integer of the header. */
#define HEADER_KIND_MASK		0xC000
#define HEADER_KIND_NEGATIVE	0x4000	/* otherwise positive; a weight
										 * follows */
#define HEADER_KIND_SHORT		0x8000	/* includes sign and weight */
#define HEADER_KIND_SPECIAL		0xC000
#define HEADER_SPECIAL_MASK		0xF000
#define HEADER_NAN				0xC000
#define HEADER_POSITIVE_INFINITY	0xD000
#define HEADER_SHORT_NEGATIVE	0x2000
#define HEADER_SHORT_WEIGHT_SIGN	0x0040
#define HEADER_SHORT_WEIGHT_MASK	0x003F

#define BASE					10000
#define DIGITS_PER_WORD			4

/*
 * Layout of the first word, from the most significant bit: sign, code, digits,
 * and whether more follow.
 */
#define POSITIVE_BIT			(UINT64CONST(1) << 63)
#define CODE_SHIFT				56
#define DIGITS_SHIFT			2
#define MORE_BIT				UINT64CONST(2)

/*
 * Codes for weights.  The value zero has code 0, which is below all of them.
 */
#define MOST_WEIGHT				60
#define WEIGHT_CODE_LESS		1
#define WEIGHT_CODE_0			(WEIGHT_CODE_LESS + 1 + MOST_WEIGHT)
#define WEIGHT_CODE_MORE		(WEIGHT_CODE_0 + MOST_WEIGHT + 1)
#define WEIGHT_CODE_INFINITY	126
#define WEIGHT_CODE_NAN			127

typedef struct GsNumeric
{
	bool		negative;
	int			special;		/* weight code of NaN or infinity, or 0 */
	int			weight;
	int			ndigits;
	const char *digits;			/* 16 bits each, not aligned */
	struct varlena *copy;		/* must be freed, or NULL */
} GsNumeric;

static inline uint16
read_int16(const char *ptr)
{
	uint16		value;

	memcpy(&value, ptr, sizeof(value));
	return value;
}

static inline GsNumeric
open_numeric(Datum value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	struct varlena *varlena = pg_detoast_datum_packed(stored);
	const char *data = VARDATA_ANY(varlena);
	int			header_bytes = sizeof(uint16);
	uint16		header = read_int16(data);
	uint16		kind = header & HEADER_KIND_MASK;
	GsNumeric	numeric = {0};

	if (varlena != stored)
		numeric.copy = varlena;
	if (kind == HEADER_KIND_SPECIAL)
	{
		uint16		special = header & HEADER_SPECIAL_MASK;

		numeric.special = special == HEADER_NAN ? WEIGHT_CODE_NAN :
			WEIGHT_CODE_INFINITY;
		numeric.negative = special != HEADER_NAN &&
			special != HEADER_POSITIVE_INFINITY;
		return numeric;
	}
	if (kind == HEADER_KIND_SHORT)
	{
		numeric.negative = (header & HEADER_SHORT_NEGATIVE) != 0;
		numeric.weight = header & HEADER_SHORT_WEIGHT_MASK;
		if (header & HEADER_SHORT_WEIGHT_SIGN)
			numeric.weight -= HEADER_SHORT_WEIGHT_MASK + 1;
	}
	else
	{
		numeric.negative = kind == HEADER_KIND_NEGATIVE;
		numeric.weight = (int16) read_int16(data + sizeof(uint16));
		header_bytes += sizeof(uint16);
	}
	numeric.digits = data + header_bytes;
	numeric.ndigits = (VARSIZE_ANY_EXHDR(varlena) - header_bytes) /
		sizeof(uint16);
	return numeric;
}

static inline void
close_numeric(GsNumeric *numeric)
{
	if (unlikely(numeric->copy != NULL))
		pfree(numeric->copy);
}

static inline int
weight_code(const GsNumeric *numeric)
{
	if (numeric->special != 0)
		return numeric->special;
	if (numeric->ndigits == 0)
		return 0;
	if (numeric->weight < -MOST_WEIGHT)
		return WEIGHT_CODE_LESS;
	if (numeric->weight > MOST_WEIGHT)
		return WEIGHT_CODE_MORE;
	return WEIGHT_CODE_0 + numeric->weight;
}

/* Does the code stand for many weights? */
static inline bool
shares_code(int code)
{
	return code == WEIGHT_CODE_LESS || code == WEIGHT_CODE_MORE;
}

/* Encode the digits from index 'first' on, and whether more follow. */
static inline uint64
digits_word(const GsNumeric *numeric, uint32 first)
{
	uint64		digits = 0;

	for (uint32 i = first; i < first + DIGITS_PER_WORD; i++)
	{
		digits *= BASE;
		if (i < (uint32) numeric->ndigits)
			digits += read_int16(numeric->digits + i * sizeof(uint16));
	}
	return digits << DIGITS_SHIFT |
		((uint32) numeric->ndigits > first + DIGITS_PER_WORD ? MORE_BIT : 0);
}

uint64
gpusort_numeric_word(Datum value, uint32 index)
{
	GsNumeric	numeric = open_numeric(value);
	int			code = weight_code(&numeric);
	uint64		word = 0;

	if (likely(!shares_code(code)))
		word = digits_word(&numeric, index * DIGITS_PER_WORD);
	if (index == 0)
		word |= POSITIVE_BIT | (uint64) code << CODE_SHIFT;
	if (numeric.negative)
		word = ~word;
	close_numeric(&numeric);
	return word;
}

GsEncodingRest
gpusort_numeric_rest(Datum value, uint32 nwords)
{
	GsNumeric	numeric = open_numeric(value);
	GsEncodingRest rest = GS_REST_NONE;

	if (shares_code(weight_code(&numeric)))
		rest = GS_REST_COMPARE;
	else if ((uint32) numeric.ndigits > nwords * DIGITS_PER_WORD)
		rest = GS_REST_WORDS;
	close_numeric(&numeric);
	return rest;
}
