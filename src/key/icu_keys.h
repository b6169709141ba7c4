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
extern void gpusort_icu_recent_set_limit(GsIcuRecent *recent, Size limit);

/* Returns how many bytes they will take at most. */
extern Size gpusort_icu_recent_bytes(const GsIcuRecent *recent);

/*
 * Write up to 'count' bytes of a string of 'length' bytes, from the first one on.  Returns
 * their number, less than 'count' if they end.  'recent' may be NULL.
 */
extern Size gpusort_icu_key(GsIcuCollator *collator, GsIcuRecent *recent,
							const unsigned char *string, Size length,
							unsigned char *key, Size count);

#endif							/* GPUSORT_ICU_KEYS_H */
