/*-------------------------------------------------------------------------
 *
 * key_encoding.h
 *		Values of one sort key as words that order the same way.
 *
 * A value is encoded as one word or several.  How many of them a plan asks for
 * depends on the plan: a GPU gets more words of a string than the CPU, and more
 * still are looked at where values turn out to be equal.  So every encoding must
 * obey this:
 *
 *		For any n, if the first n words of two values differ, the type's own
 *		comparison function orders the values as the words do.  If they are
 *		equal, gpusort_key_encoding_rest() says the same of both values; and if
 *		it says GS_REST_NONE, the comparison function calls them equal.
 *
 * It follows that a word that leaves something open, since the value did not
 * fit, can be followed by words only if these are compared after all that was
 * left open.  Otherwise the words that follow must be the same for all values.
 *
 * Words are compared within one sort only, and with words of the same encoding;
 * or with those of another process, if gpusort_key_encoding_is_common() of both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ENCODING_H
#define GPUSORT_KEY_ENCODING_H

#include "core/key_codec.h"

typedef enum GsEncodingKind
{
	/* No words: comparisons alone tell the order. */
	GS_ENCODE_NONE,

	/* One word says all. */
	GS_ENCODE_BOOL,
	GS_ENCODE_UINT8,
	GS_ENCODE_INT16,
	GS_ENCODE_INT32,
	GS_ENCODE_UINT32,
	GS_ENCODE_INT64,
	GS_ENCODE_UINT64,
	GS_ENCODE_FLOAT4,
	GS_ENCODE_FLOAT8,
	GS_ENCODE_BYTES6,
	GS_ENCODE_BYTES8,
	GS_ENCODE_TID,
	GS_ENCODE_ENUM,

	/* Two words say all. */
	GS_ENCODE_UUID,
	GS_ENCODE_INTERVAL,
	GS_ENCODE_TIMETZ,

	/* As many words as it takes. */
	GS_ENCODE_TEXT,
	GS_ENCODE_BPCHAR,
	GS_ENCODE_NAME,
	GS_ENCODE_BYTEA,
	GS_ENCODE_INET,
	GS_ENCODE_NUMERIC,

	/* One word, and comparisons where it is equal. */
	GS_ENCODE_VARBIT,
	GS_ENCODE_ABBREVIATION
} GsEncodingKind;

typedef struct GsKeyEncoding
{
	GsEncodingKind kind;
	unsigned	bits;			/* of the words that are encoded at first */
	struct GsEncodingState *state;	/* what some kinds need, or NULL */
} GsKeyEncoding;

/* What the first words of a value leave open among equal ones. */
typedef enum GsEncodingRest
{
	GS_REST_NONE,				/* nothing */
	GS_REST_WORDS,				/* what the words that follow say */
	GS_REST_COMPARE				/* what only a comparison can tell */
} GsEncodingRest;

/* Does a collation compare strings byte by byte? */
extern bool gpusort_key_encoding_compares_bytes(Oid collation);

/*
 * Find the encoding for a sort operator, in the current memory context, where
 * it takes memory as long as it is used; and whether the operator is a ">".
 * Looks at the system catalogs.
 */
extern GsKeyEncoding gpusort_key_encoding_find(Oid operator, Oid collation,
											   bool *descending);

/* Are values sequences of words, of which one is encoded at first? */
extern bool gpusort_key_encoding_has_words(const GsKeyEncoding *encoding);

/* Are values strings, which have the order of their bytes? */
extern bool gpusort_key_encoding_is_string(const GsKeyEncoding *encoding);

/* Do the words that are encoded at first say all, for every value? */
extern bool gpusort_key_encoding_is_exact(const GsKeyEncoding *encoding);

/*
 * Have all words so far been those that other processes with the active snapshot
 * of this one give the same values?
 */
extern bool gpusort_key_encoding_is_common(const GsKeyEncoding *encoding);

/* What is open behind the first 'nwords' words of a value? */
extern GsEncodingRest gpusort_key_encoding_rest(const GsKeyEncoding *encoding,
												Datum value, uint32 nwords);

/* gpusort_key_encoding_word() of kinds that take more than a few instructions. */
extern uint64 gpusort_key_encoding_long_word(const GsKeyEncoding *encoding,
											 Datum value, uint32 index);

/*
 * Word number 'index', from 0, of a value.  Where one or two words say all, the
 * last one has its bits at the low end, as many as encoding->bits leaves to it.
 * May take memory in the current context only to free it, but for an error.
 */
static inline uint64
gpusort_key_encoding_word(const GsKeyEncoding *encoding, Datum value,
						  uint32 index)
{
	switch (encoding->kind)
	{
		case GS_ENCODE_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case GS_ENCODE_UINT8:
			return DatumGetUInt8(value);
		case GS_ENCODE_INT16:
			return gpusort_codec_int16(DatumGetInt16(value));
		case GS_ENCODE_INT32:
			return gpusort_codec_int32(DatumGetInt32(value));
		case GS_ENCODE_UINT32:
			return DatumGetUInt32(value);
		case GS_ENCODE_INT64:
			return gpusort_codec_int64(DatumGetInt64(value));
		case GS_ENCODE_UINT64:
			return DatumGetUInt64(value);
		case GS_ENCODE_FLOAT4:
			return gpusort_codec_float4(DatumGetFloat4(value));
		case GS_ENCODE_FLOAT8:
			return gpusort_codec_float8(DatumGetFloat8(value));
		default:
			return gpusort_key_encoding_long_word(encoding, value, index);
	}
}

#endif							/* GPUSORT_KEY_ENCODING_H */
