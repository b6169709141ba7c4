/*-------------------------------------------------------------------------
 *
 * icu_keys.h
 *		Makes ICU's sort keys of strings, of which PostgreSQL gives only 8 bytes.
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
 * Write up to 'count' bytes of the sort key of a string of 'length' bytes, from its first
 * one on.  Returns their number, less than 'count' if the sort key ends.  None of them is 0.
 * memcmp() of sort keys has the sign of PostgreSQL's comparison of the strings, unless they
 * are equal.
 */
extern Size gpusort_icu_key(GsIcuCollator *collator, const unsigned char *string,
							Size length, unsigned char *key, Size count);

#endif							/* GPUSORT_ICU_KEYS_H */
