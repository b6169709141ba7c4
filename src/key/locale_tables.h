/*-------------------------------------------------------------------------
 *
 * locale_tables.h
 *		The tables by which the GNU C library compares strings of a locale.
 *
 * 'starts' has for each first byte of a sequence of characters the position of its weights
 * in 'levels', or, if longer sequences begin with it, the negated position of their list in
 * 'sequences'.  An entry of a list has a position, the number n of bytes that follow the
 * first one, and these bytes; the next one is aligned like an int32.  If its position is
 * negative, the entry is for all sequences between two ones of n more bytes each, and the
 * positions of their weights are in 'ranges', from there on.  The last entry has no more
 * bytes.  The first entry that matches counts.
 *
 * The high 8 bits of the position of weights are the number of its rules.  There 'levels'
 * has for each level the number of bytes of the weights and these bytes.
 *
 * This is the layout of glibc's locale files, which its string/strcoll_l.c reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOCALE_TABLES_H
#define GPUSORT_LOCALE_TABLES_H

#include <locale.h>

#include "mb/pg_wchar.h"

/* A weight has at most this many bytes. */
#define GPUSORT_MAX_WEIGHT_BYTES	6

typedef struct GsLocaleTables
{
	uint32		nrules;			/* levels */
	const unsigned char *rules;
	Size		rules_bytes;
	const int32 *starts;		/* by the first byte of a sequence */
	const unsigned char *levels;
	Size		levels_bytes;
	const unsigned char *sequences;
	Size		sequences_bytes;
	const int32 *ranges;
	Size		nranges;
} GsLocaleTables;

/* A list entry. */
typedef struct GsSequence
{
	int32		position;
	Size		length;			/* of the bytes behind the first one */
	const unsigned char *first;
	const unsigned char *last;	/* of a range, otherwise the same as 'first' */
	const unsigned char *next;	/* entry */
} GsSequence;

/*
 * Find the tables of a locale, which last as long as it, and check that they are as described
 * above, so that no later look-up leaves them.  Returns false if they are not.
 */
extern bool gpusort_locale_tables_find(GsLocaleTables *tables, locale_t locale);

/*
 * Read the sequence at *next, and advance it.  Returns the position of its weights.  Sets
 * *alone to whether it is one character of that length, and would be so whatever follows.
 */
extern int32 gpusort_locale_tables_next(const GsLocaleTables *tables,
										const unsigned char **next,
										const unsigned char *end,
										Size character_bytes, bool *alone);

/* Read an entry of a list. */
static inline GsSequence
gpusort_locale_tables_read(const unsigned char *entry)
{
	GsSequence	sequence;
	Size		bytes;

	memcpy(&sequence.position, entry, sizeof(int32));
	sequence.length = entry[sizeof(int32)];
	sequence.first = entry + sizeof(int32) + 1;
	sequence.last = sequence.first;
	bytes = 1 + sequence.length;
	if (sequence.position < 0)
	{
		sequence.last += sequence.length;
		bytes += sequence.length;
	}
	sequence.next = entry + sizeof(int32) + TYPEALIGN(sizeof(int32), bytes);
	return sequence;
}

/* Returns the number of bytes of a character of the database's encoding, or 1. */
static inline Size
gpusort_locale_tables_character(const unsigned char *character)
{
	return GetDatabaseEncoding() == PG_UTF8 ? pg_utf_mblen(character) : 1;
}

/* The bytes of the weights of the first level at a position. */
static inline const unsigned char *
gpusort_locale_tables_level(const GsLocaleTables *tables, int32 position, Size *length)
{
	const unsigned char *level = tables->levels + (position & 0xFFFFFF);

	*length = level[0];
	return level + 1;
}

/*
 * Returns the length of the first of some weights, or 0 if it is not well-formed: no
 * weight must be the beginning of another one.  Sets *weight to a number with the order of
 * its bytes.
 */
static inline Size
gpusort_locale_tables_weight(const unsigned char *bytes, Size length, uint64 *weight)
{
	static const unsigned char leads[GPUSORT_MAX_WEIGHT_BYTES] =
	{0x00, 0xC0, 0xE0, 0xF0, 0xF8, 0xFC};
	Size		n = 0;

	if (length == 0 || bytes[0] < 2 || bytes[0] >= 0xFE ||
		(bytes[0] >= 0x80 && bytes[0] < 0xC0))
		return 0;
	while (n < GPUSORT_MAX_WEIGHT_BYTES && bytes[0] >= leads[n])
		n++;
	if (n > 1 && bytes[0] < 0x80)
		n = 1;
	if (n > length)
		return 0;
	*weight = 0;
	for (Size i = 0; i < n; i++)
	{
		if (i > 0 && (bytes[i] & 0xC0) != 0x80)
			return 0;
		*weight |= (uint64) bytes[i] << (8 * (GPUSORT_MAX_WEIGHT_BYTES - 1 - i));
	}
	return n;
}

#endif							/* GPUSORT_LOCALE_TABLES_H */
