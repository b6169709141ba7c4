/*-------------------------------------------------------------------------
 *
 * icu_primaries.h
 *		The primary weights of ICU, for strings of common characters.
 *
 * A sort key of ICU begins with the primary weights of the string's characters.  Those of
 * ASCII and of the letters of Latin-1 are in a table.  docs/design/keys.md says why the
 * bytes are those that ICU makes, and what is checked before a table is used.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_PRIMARIES_H
#define GPUSORT_ICU_PRIMARIES_H

typedef struct GsIcuPrimaries GsIcuPrimaries;

/*
 * Returns a table for a collator, which remains for the life of the process.  Takes 10 to
 * 40 ms.  Returns NULL if ICU cannot tell what the table depends on.
 */
extern GsIcuPrimaries *gpusort_icu_primaries_create(const void *collator);

/*
 * Write the first 'count' bytes of the primary weights of a string, exactly those of its
 * sort key for any 'count'.  Returns their number, less than 'count' if they end, or -1 if
 * the table does not tell them; 'key' may then have been written, too.
 */
extern int	gpusort_icu_primaries_key(const GsIcuPrimaries *primaries,
									  const unsigned char *string, Size length,
									  unsigned char *key, int count);

/* For the test of that check: spoil the weight of one character of new tables. */
extern bool gpusort_icu_primaries_spoil;

/* Returns the number of characters in a table. */
extern int	gpusort_icu_primaries_count(const GsIcuPrimaries *primaries);

#endif							/* GPUSORT_ICU_PRIMARIES_H */
