/*-------------------------------------------------------------------------
 *
 * key_encoding.h
 *		Encodes the values of one sort key as words with the same order.
 *
 * A value is encoded as one or more words.  The number that a plan requests
 * varies: a GPU gets more words of a string than the CPU, and even more are
 * compared for ties.  Therefore every encoding must obey this rule:
 *
 *	For any n, if the first n words of two values differ, they have the order
 *	that the type's comparison function gives the values.  If they are equal,
 *	gpusort_key_encoding_rest() returns the same for both values; and if it
 *	returns GS_REST_NONE, the comparison function calls the values equal.
 *
 * As a consequence, if a word does not hold all of its part of a value, more
 * words may follow only if they are compared after everything that it omits.
 * Otherwise the following words must be the same for all values.
 *
 * Words can be compared only within one sort, and only with words of the same
 * encoding.  They can be compared with words of another process if
 * gpusort_key_encoding_is_common() of type_words.h is true in both processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ENCODING_H
#define GPUSORT_KEY_ENCODING_H

#include "core/key_codec.h"
#include "key/encoding_kind.h"
#include "key/locale_weights.h"
#include "key/string_bytes.h"

/* Does a collation compare strings byte by byte? */
extern bool gpusort_key_encoding_compares_bytes(Oid collation);

/*
 * Find the encoding for a sort operator, and whether the operator is a ">"; 'descending' may be
 * NULL.  Any state is allocated in the current memory context, which must live as
 * long as the encoding is used.  Accesses the system catalogs.
 */
extern GsKeyEncoding gpusort_key_encoding_find(Oid operator, Oid collation,
											   bool *descending);

/*
 * Returns the name of the locale that compares strings by a collation, and of its library; or
 * "" if they are compared byte by byte, or not by a collation.
 */
extern char *gpusort_key_encoding_locale(Oid collation);

/* Returns what the words of a kind of encodings are made from, for EXPLAIN. */
extern const char *gpusort_key_encoding_name(GsEncodingKind kind);

/* Are values sequences of words, of which one is encoded initially? */
static inline bool
gpusort_key_encoding_has_words(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_TEXT && encoding->kind <= GS_ENCODE_NUMERIC;
}

/* Are values strings that are ordered by bytes: their own, or those of weights? */
static inline bool
gpusort_key_encoding_is_string(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_TEXT && encoding->kind <= GS_ENCODE_BYTEA;
}

/* If so: do equal bytes leave open which value is less? */
static inline bool
gpusort_key_encoding_leaves_open(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_LOCALE && encoding->kind <= GS_ENCODE_NESTED;
}

/* Are there words after which there is nothing to compare of some values? */
static inline bool
gpusort_key_encoding_can_end(const GsKeyEncoding *encoding)
{
	return gpusort_key_encoding_has_words(encoding) &&
		encoding->kind != GS_ENCODE_LOCALE && encoding->kind != GS_ENCODE_ICU;
}

/* Can they have zero bytes, so that the words have the number of theirs? */
static inline bool
gpusort_key_encoding_is_binary(const GsKeyEncoding *encoding)
{
	return encoding->kind == GS_ENCODE_NESTED || encoding->kind == GS_ENCODE_BYTEA;
}

/*
 * Are they texts, whose words have other bytes for 0 and 1, as gpusort_codec_text() writes
 * them?
 */
static inline bool
gpusort_key_encoding_is_text(const GsKeyEncoding *encoding)
{
	return encoding->kind == GS_ENCODE_TEXT || encoding->kind == GS_ENCODE_BPCHAR;
}

/*
 * If values are strings: get these bytes from offset 'start' on.  Of a value that is not
 * simply stored with its own bytes, only the first 'count' of them are valid.  'length'
 * counts all of them; of weights and nested values, it may also be 'count' or 'count' + 1 if
 * there are more.  A copy is in the current memory context; such bytes without one are valid
 * until the next call.  Checks for interrupts within long strings.
 *
 * The bytes of nested values are relative to the reference, unless that is NULL.
 */
extern GsBytes gpusort_key_encoding_bytes(const GsKeyEncoding *encoding,
										  const GsNestedReference *reference,
										  Datum value, Size start, Size count);

/* Make a value the reference for others, or return NULL if the encoding needs none. */
extern GsNestedReference *gpusort_key_encoding_reference(const GsKeyEncoding *encoding,
														 Datum value);

/* Write the bytes of a part of a nested value: a GsWritePart of type_words.h. */
extern GsEncodingRest gpusort_key_encoding_write(const GsKeyEncoding *encoding, Datum value,
												 GsByteBuffer *buffer);

/* Are values ordered by the weights of a locale, as far as these differ? */
static inline bool
gpusort_key_encoding_has_weights(const GsKeyEncoding *encoding)
{
	return encoding->kind == GS_ENCODE_LOCALE;
}

/*
 * If so: compare two values by their weights.  Returns 0 if these are equal, and sets
 * *same to whether the values are the same, too.
 */
extern int	gpusort_key_encoding_compare_weights(const GsKeyEncoding *encoding,
												 Datum a, Datum b, bool *same);

/*
 * Likewise, if a value is plain within limits: write its bytes, one for each letter, into as many
 * words as 'limits.letters' need, and *rest: see gpusort_plain_string_encode().  Otherwise returns
 * false.
 */
extern bool gpusort_key_encoding_plain_words(const GsKeyEncoding *encoding, GsPlainLimits limits,
											 Datum value, uint64 *words, uint64 *rest);

/* Are the words that are encoded initially exact for every value? */
static inline bool
gpusort_key_encoding_is_exact(const GsKeyEncoding *encoding)
{
	return encoding->kind >= GS_ENCODE_BOOL && encoding->kind <= GS_ENCODE_TIMETZ;
}

/*
 * Some encodings keep what they have made of recent values.  Let that be 'limit' bytes, or
 * some kilobytes if that is more, and return the maximum, in bytes.
 */
extern Size gpusort_key_encoding_set_memory(const GsKeyEncoding *encoding, Size limit);

/* Returns how many bytes of a string are in a word, unless a text has the bytes 0 or 1. */
static inline Size
gpusort_key_encoding_word_bytes(const GsKeyEncoding *encoding)
{
	return gpusort_key_encoding_is_binary(encoding) ? 7 : 8;
}

/* Read the next word of a string from its bytes. */
static inline uint64
gpusort_key_encoding_next_word(const GsKeyEncoding *encoding, GsTextBytes *bytes)
{
	Size		count = Min(gpusort_key_encoding_word_bytes(encoding), bytes->length);
	uint64		word;

	if (gpusort_key_encoding_is_text(encoding))
		return gpusort_codec_text(bytes, 8);
	word = gpusort_key_encoding_is_binary(encoding) ?
		gpusort_codec_binary(bytes->next, bytes->length) :
		gpusort_codec_string(bytes->next, bytes->length);
	bytes->next += count;
	bytes->length -= count;
	return word;
}

/* Get the first words of a string, of which there are up to GPUSORT_CPU_MAX_KEY_WORDS. */
extern void gpusort_key_encoding_string_words(const GsKeyEncoding *encoding, Datum value,
											  uint64 *words, unsigned count);

/* Returns how to break ties of the first 'nwords' words of a value. */
extern GsEncodingRest gpusort_key_encoding_rest(const GsKeyEncoding *encoding,
												Datum value, uint32 nwords);

/*
 * Returns how many bytes of a string are in its first 'nwords' words, which have no room for
 * more.
 */
extern Size gpusort_key_encoding_bytes_in_words(const GsKeyEncoding *encoding,
												Datum value, uint32 nwords);

/*
 * gpusort_key_encoding_word() for kinds that take more than a few
 * instructions.
 */
extern uint64 gpusort_key_encoding_long_word(const GsKeyEncoding *encoding,
											 Datum value, uint32 index);

/*
 * Returns the word of a value at 'index', counted from 0.  If one or two words
 * are exact, the last one has its bits at the low end, as many as remain of
 * encoding->bits.  Allocates memory in the current context at most
 * temporarily; only after an error is it not freed.
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

/* ---- Words of strings relative to one of them, the pivot: string_pivot.c ---- */

/*
 * What is needed to encode a set of strings and to interpret their words: how
 * many bytes all of them have in common, how long the rest of the pivot is,
 * and how many words a key has.
 */
typedef struct GsPivotFrame
{
	const GsKeyEncoding *encoding;
	bool		descending;		/* are words inverted? */
	unsigned	words;
	Size		start;
	Size		rest;
} GsPivotFrame;

/* A frame and the pivot's bytes.  Callers allocate it. */
typedef struct GsPivot
{
	GsPivotFrame frame;
	GsNestedReference *reference;	/* of nested values, or NULL */
	GsBytes		bytes;			/* from the frame's start */
	Size		window;			/* bytes to read of a toasted value */
} GsPivot;

/*
 * Make a string the pivot, and set the frame's rest.  All strings have the
 * first 'start' bytes of the frame in common.  If the string is compressed or
 * stored out of line, its copy is allocated in the current memory context;
 * call gpusort_pivot_drop() to free it.
 */
extern void gpusort_pivot_init(GsPivot *pivot, const GsPivotFrame *frame,
							   Datum value);
extern void gpusort_pivot_drop(GsPivot *pivot);

/*
 * Write the words of a string.  If the words of two strings differ, they have
 * the same order as the strings.  Checks for interrupts within long strings.
 */
extern void gpusort_pivot_encode(GsPivot *pivot, Datum value, uint64 *key);

/*
 * Returns false if strings with these equal words have no other bytes.  Otherwise sets *start to
 * the number of first bytes that they have in common.  Nested values whose bytes end have others
 * relative to one of them, unless they are like this pivot.
 */
extern bool gpusort_pivot_leaves_open(const GsPivotFrame *frame,
									  const uint64 *key, Size *start);

#endif							/* GPUSORT_KEY_ENCODING_H */
