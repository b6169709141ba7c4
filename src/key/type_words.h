/*-------------------------------------------------------------------------
 *
 * type_words.h
 *		The words and bytes of types of which key_encoding.c does not make them itself.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TYPE_WORDS_H
#define GPUSORT_TYPE_WORDS_H

#include "utils/sortsupport.h"

#include "key/encoding_kind.h"
#include "key/locale_weights.h"
#include "key/string_bytes.h"

/* ---- Enum types: enum_words.c ---- */

/* Our own numbers for the labels of one enum type. */
typedef struct GsEnumNumbers GsEnumNumbers;

/*
 * Create an empty object, for the labels of one type, in the current memory
 * context.
 */
extern GsEnumNumbers *gpusort_enum_numbers_create(void);

/*
 * Returns the word of a label, which has 32 bits.  The first call reads
 * pg_enum, and so does a later call for a label that was not in it then.
 * Words of the same GsEnumNumbers have the order of their labels, even if the
 * type changes meanwhile.
 */
extern uint64 gpusort_enum_word(GsEnumNumbers *numbers, Oid label);

/*
 * Returns true if other processes with the same active snapshot would assign
 * the same words to all labels encoded so far.
 */
extern bool gpusort_enum_numbers_are_common(const GsEnumNumbers *numbers);

/* ---- Type numeric: numeric_words.c ---- */

/* Returns the word of a value at 'index', counted from 0. */
extern uint64 gpusort_numeric_word(Datum value, uint32 index);

/* gpusort_key_encoding_rest() of a value. */
extern GsEncodingRest gpusort_numeric_rest(Datum value, uint32 nwords);

/* ---- Type citext of PostgreSQL's contrib modules: citext_bytes.c ---- */

/* Get the bytes of a value in lower case, as a copy in the current memory context. */
extern GsBytes gpusort_citext_bytes(Datum value);

/* ---- Strings by a collation of ICU: icu_keys.c ---- */

typedef struct GsIcuCollator GsIcuCollator;

/* The bytes of recent strings. */
typedef struct GsIcuRecent GsIcuRecent;

/*
 * Returns the collator for a locale of ICU, which remains for the life of the process.
 * Returns NULL if the server's encoding is not UTF-8, if ICU's functions cannot be found in
 * the server, or if ICU cannot open the locale.
 */
extern GsIcuCollator *gpusort_icu_collator_get(const char *locale);

/*
 * Make room for recent strings of one collator, in the current memory context.  It begins
 * with some kilobytes, when the first string comes, and grows with the number of strings up
 * to 'limit' bytes, if that is more.
 */
extern GsIcuRecent *gpusort_icu_recent_create(void);

/* Returns how many bytes they will take at most. */
extern Size gpusort_icu_recent_set_limit(GsIcuRecent *recent, Size limit);

/*
 * Write up to 'count' bytes of a string of 'length' bytes, from the first one on.  Returns
 * their number, less than 'count' if they end.  'recent' may be NULL.
 */
extern Size gpusort_icu_key(GsIcuCollator *collator, GsIcuRecent *recent,
							const unsigned char *string, Size length,
							unsigned char *key, Size count);

/* ---- Whether ICU's keys agree with PostgreSQL's comparisons: icu_agreement.c ---- */

/*
 * Do words of texts that differ always have the order of PostgreSQL's comparisons by a
 * collation of ICU, as far as a sample of strings shows?  The answer for a collation is kept
 * for the life of the process.  The first time takes 1 to 2 ms.
 */
extern bool gpusort_icu_agreement_check(Oid collation, const GsKeyEncoding *encoding);

/* ---- Values that consist of other values: nested_bytes.c ---- */

typedef struct GsNested GsNested;

/* gpusort_key_encoding_find() */
typedef GsKeyEncoding (*GsFindPartEncoding) (Oid operator, Oid collation, bool *descending);

/*
 * Writes bytes that have the order of the values of an encoding, as far as they differ, and are
 * never the beginning of another value's bytes.  Returns GS_REST_COMPARE if equal bytes leave the
 * order open, or else GS_REST_NONE.
 */
typedef GsEncodingRest (*GsWritePart) (const GsKeyEncoding *encoding, Datum value,
									   GsByteBuffer *buffer);

/*
 * Create the encoding of the values that a btree comparison function compares, in the current
 * memory context.  'collation' is that of the elements of arrays.
 */
extern GsNested *gpusort_nested_create(Oid comparison, Oid collation,
									   GsFindPartEncoding find, GsWritePart write);

/*
 * Returns true if other processes with the same active snapshot would encode
 * all values so far as the same words, whatever the kind of the encoding is.
 */
extern bool gpusort_key_encoding_is_common(const GsKeyEncoding *encoding);

/*
 * Write the bytes of a value, relative to the reference unless that is NULL.  Returns whether
 * equal bytes leave open which value is less.  Looks up types in the system catalogs.
 */
extern bool gpusort_nested_write(GsNested *nested, const GsNestedReference *reference,
								 Datum value, GsByteBuffer *buffer);

/* Make a value a reference, in the current memory context. */
extern GsNestedReference *gpusort_nested_reference_create(GsNested *nested, Datum value);
extern void gpusort_nested_reference_free(GsNestedReference *reference);

/* ---- What find_encoding.c adds to encodings of some kinds ---- */

/*
 * Returns the kind with the order of a comparator if it is one that PostgreSQL's types share, or
 * GS_ENCODE_NONE.
 */
extern GsEncodingKind gpusort_key_encoding_of_comparator(const SortSupportData *ssup);

/* Room for the weights of most strings. */
#define GPUSORT_WEIGHTS_BUFFER_BYTES	512

struct GsEncodingState
{
	SortSupportData ssup;		/* GS_ENCODE_ABBREVIATION */
	GsKeyEncoding abbreviated;	/* encoding of its abbreviated keys */
	GsEnumNumbers *numbers;		/* GS_ENCODE_ENUM */
	const GsLocaleWeights *weights; /* GS_ENCODE_LOCALE */
	GsIcuCollator *collator;	/* GS_ENCODE_ICU */
	GsIcuRecent *recent;		/* GS_ENCODE_ICU */
	GsEncodingKind string;		/* of the values' own bytes */
	GsWeightMemo memo;			/* GS_ENCODE_LOCALE */
	GsNested   *nested;			/* GS_ENCODE_NESTED */
	unsigned char buffer[GPUSORT_WEIGHTS_BUFFER_BYTES]; /* the last two */
};

#endif							/* GPUSORT_TYPE_WORDS_H */
