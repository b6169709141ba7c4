/*-------------------------------------------------------------------------
 *
 * radix_sort.h
 *		Stable radix sort of row numbers by multi-word unsigned keys.
 *
 * This header does not depend on PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_SORT_H
#define GPUSORT_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of 64-bit words in a key. */
#define GPUSORT_CPU_MAX_KEY_WORDS	4

/* Maximum number of rows in one sort: row numbers are 32 bits wide. */
#define GPUSORT_MAX_ROWS		UINT32_MAX

/*
 * The keys of a set of rows.  The key of row r is the 'words' consecutive
 * words, most significant first, at
 *	chunks[r >> chunk_shift] + (r mod 2^chunk_shift) * words
 * so that rows can be collected in chunks of 2^chunk_shift rows.
 */
typedef struct GsKeyTable
{
	const uint64_t *const *chunks;
	unsigned	chunk_shift;	/* 0 to 32 */
	unsigned	words;			/* 1 to GPUSORT_CPU_MAX_KEY_WORDS */
} GsKeyTable;

/*
 * Called every few ten thousand rows, to look for interrupts.  It may leave the
 * sort by longjmp(), since the sort holds no resources.
 */
typedef void (*GsLookCallback) (void);

static inline const uint64_t *
gpusort_key_of_row(const GsKeyTable *keys, uint32_t row)
{
	uint64_t	within = row & ((UINT64_C(1) << keys->chunk_shift) - 1);

	return keys->chunks[(uint64_t) row >> keys->chunk_shift] +
		within * keys->words;
}

/*
 * Sort 'count' entries by the keys of their rows, in ascending order and
 * stably.
 *
 * The low 32 bits of an entry are its row number, any subset of the table's
 * rows in any order; the high 32 bits are ignored on input and undefined on
 * output.  'source' is 'entries', or NULL for the rows 0 to count - 1, all of
 * them and in this order, which is faster: then 'entries' need not be
 * initialized, and most of 'scratch' stays untouched unless the keys are
 * skewed.  'scratch' has room for 'count' entries; nothing else is allocated.
 * 'look' may be NULL.
 *
 * If the callback leaves the sort, the entries are in no particular order, and
 * row numbers can occur twice.
 */
extern void gpusort_radix_sort(const GsKeyTable *keys, const uint64_t *source,
							   uint64_t *entries, uint64_t *scratch, size_t count,
							   GsLookCallback look);

/* Adjacent bits of one key word, and their position in a window. */
typedef struct GsBitField
{
	unsigned	word;
	unsigned	shift;			/* of the lowest bit within the word */
	unsigned	position;		/* of the lowest bit within the window */
	uint32_t	mask;			/* as many low one bits as the field has */
} GsBitField;

/* Up to 32 bits of the key, combined into one number. */
#define GPUSORT_WINDOW_BITS		32

typedef struct GsKeyWindow
{
	unsigned	bits;
	unsigned	nfields;
	GsBitField	fields[GPUSORT_WINDOW_BITS];
} GsKeyWindow;

/*
 * Of keys whose highest bit is 0, and of those where it is 1: the bits that are set in any of
 * them, and in all.
 */
typedef struct GsKeyBits
{
	uint64_t	any[2][GPUSORT_CPU_MAX_KEY_WORDS];
	uint64_t	all[2][GPUSORT_CPU_MAX_KEY_WORDS];
} GsKeyBits;

/* Begin without keys. */
extern void gpusort_key_bits_begin(GsKeyBits *bits);

/* Add the keys of rows 0 to count - 1, or those of other bits. */
extern void gpusort_key_bits_collect(GsKeyBits *bits, const GsKeyTable *keys, size_t count,
									 GsLookCallback look);
extern void gpusort_key_bits_add(GsKeyBits *bits, const GsKeyBits *other);

/*
 * Set the bits of 'varying' by which the keys can be sorted: the highest bit, if they differ in it,
 * and those in which any keys differ that agree in the highest bit.  All others follow from the
 * highest one.  So numbers of both signs are sorted by few bits if they are near 0.
 */
extern void gpusort_key_bits_varying(const GsKeyBits *bits, unsigned words, uint64_t *varying);

/*
 * Make a window of the most significant bits that are set in 'varying', which has
 * 'words' words.  Returns whether bits are left below it.
 */
extern bool gpusort_key_window_make(const uint64_t *varying, unsigned words,
									GsKeyWindow *window);

static inline uint32_t
gpusort_key_window_value(const GsKeyWindow *window, const uint64_t *key)
{
	uint32_t	value = 0;

	for (unsigned f = 0; f < window->nfields; f++)
	{
		const GsBitField *field = &window->fields[f];

		value |= ((uint32_t) (key[field->word] >> field->shift) & field->mask)
			<< field->position;
	}
	return value;
}

/*
 * Sort entries by the values in their high 32 bits, stably.  Their row numbers must
 * ascend.  The values remain.
 */
extern void gpusort_radix_sort_by_values(uint64_t *entries,
										 uint64_t *scratch,
										 size_t count, GsLookCallback look);

/*
 * Sort words that have no rows, in ascending order.  'scratch' and 'look' are as above; if the
 * callback leaves the sort, words can be there twice.
 */
extern void gpusort_radix_sort_words(uint64_t *words, uint64_t *scratch, size_t count,
									 GsLookCallback look);

/* Returns the value in an entry. */
static inline uint32_t
gpusort_entry_value(uint64_t entry)
{
	return (uint32_t) (entry >> 32);
}

#endif							/* GPUSORT_RADIX_SORT_H */
