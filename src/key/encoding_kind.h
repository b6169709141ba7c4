/*-------------------------------------------------------------------------
 *
 * encoding_kind.h
 *		What comparison functions and collations say of encodings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENCODING_KIND_H
#define GPUSORT_ENCODING_KIND_H

#include "utils/sortsupport.h"

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

/*
 * Returns the kind with the order of a btree comparison function, which for strings is that
 * of their bytes.  Sets *collated to whether the function compares by a collation.
 */
extern GsEncodingKind gpusort_encoding_kind_of_comparison(Oid function, bool *collated);

/* Returns the kind with the order of a comparator, if it is one that PostgreSQL's types share. */
extern GsEncodingKind gpusort_encoding_kind_of_comparator(const SortSupportData *ssup);

typedef struct GsCollation
{
	char		provider;		/* 0 if there is no such collation */
	char	   *locale;			/* the provider's name of it, or NULL */
	bool		has_rules;		/* of its own, in addition to the locale's */
} GsCollation;

/* Accesses the system catalogs. */
extern GsCollation gpusort_collation_find(Oid oid);

/* Does it compare strings byte by byte? */
extern bool gpusort_collation_compares_bytes(const GsCollation *collation);

/*
 * If it compares bytes: do its strings end at the first zero byte, as those of
 * strcoll() do?
 */
extern bool gpusort_collation_ends_at_zero(const GsCollation *collation);

#endif							/* GPUSORT_ENCODING_KIND_H */
