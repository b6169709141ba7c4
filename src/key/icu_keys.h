/*-------------------------------------------------------------------------
 *
 * icu_keys.h
 *		Turns strings into bytes with the order of a collation of ICU.
 *
 * The bytes are the beginning of ICU's sort key of a string, its primary weights.  They are
 * never 0.  If those of two strings differ, memcmp() of them has the sign of PostgreSQL's
 * comparison of the strings.  If they are equal, only that comparison can tell.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_KEYS_H
#define GPUSORT_ICU_KEYS_H

typedef struct GsIcuCollator GsIcuCollator;

/*
 * Returns the collator for a locale of ICU, which remains for the life of the process.
 * Returns NULL if the server's encoding is not UTF-8, if ICU's functions cannot be found in
 * the server, or if ICU cannot open the locale.
 */
extern GsIcuCollator *gpusort_icu_collator_get(const char *locale);

/*
 * Write up to 'count' bytes of a string of 'length' bytes, from the first one on.  Returns
 * their number, less than 'count' if they end.
 */
extern Size gpusort_icu_key(GsIcuCollator *collator, const unsigned char *string,
							Size length, unsigned char *key, Size count);

/* For tests: the number of strings of a collator before it gets a table of weights. */
extern int	gpusort_icu_strings_before_table;

#endif							/* GPUSORT_ICU_KEYS_H */
