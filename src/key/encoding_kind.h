/*-------------------------------------------------------------------------
 *
 * encoding_kind.h
 *		The kinds of encodings of sort keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENCODING_KIND_H
#define GPUSORT_ENCODING_KIND_H

typedef enum GsEncodingKind
{
	/* No words: only comparisons can order the values. */
	GS_ENCODE_NONE,

	/* One word, which is exact. */
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

	/* Two words, which are exact together. */
	GS_ENCODE_UUID,
	GS_ENCODE_INTERVAL,
	GS_ENCODE_TIMETZ,

	/* As many words as the value needs. */
	GS_ENCODE_TEXT,
	GS_ENCODE_BPCHAR,
	GS_ENCODE_NAME,
	GS_ENCODE_CITEXT,
	GS_ENCODE_LOCALE,
	GS_ENCODE_ICU,
	GS_ENCODE_NESTED,
	GS_ENCODE_BYTEA,
	GS_ENCODE_INET,
	GS_ENCODE_NUMERIC,

	/* One word, and comparisons to break its ties. */
	GS_ENCODE_VARBIT,
	GS_ENCODE_ABBREVIATION,

	/*
	 * No words, because ICU's sort keys contradict its comparisons.  Such
	 * values are not left to PostgreSQL's own sort, whose abbreviations are
	 * made from these keys.
	 */
	GS_ENCODE_COMPARISONS
} GsEncodingKind;

typedef struct GsKeyEncoding
{
	GsEncodingKind kind;
	unsigned	bits;			/* of the words that are encoded initially */
	bool		ends_at_zero;	/* does a text end at its first zero byte? */
	struct GsEncodingState *state;	/* state of some kinds, or NULL */
} GsKeyEncoding;

/* A value to which the bytes of others are relative: see nested_bytes.c. */
typedef struct GsNestedReference GsNestedReference;

/* How to break ties of the first words of values. */
typedef enum GsEncodingRest
{
	GS_REST_NONE,				/* no ties: the values are equal */
	GS_REST_WORDS,				/* by the following words */
	GS_REST_COMPARE				/* by comparisons only */
} GsEncodingRest;

#endif							/* GPUSORT_ENCODING_KIND_H */
