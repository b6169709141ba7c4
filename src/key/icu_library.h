/*-------------------------------------------------------------------------
 *
 * icu_library.h
 *		Calls the ICU that the server is linked to.
 *
 * A collator is ICU's UCollator.  It lives as long as the process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_LIBRARY_H
#define GPUSORT_ICU_LIBRARY_H

/* Can ICU's functions be called? */
extern bool gpusort_icu_library_is_there(void);

/* Open a collator for a locale.  Returns NULL if ICU cannot; raises an error if memory is short. */
extern void *gpusort_icu_library_open(const char *locale);

/*
 * Write up to 'count' bytes of the primary weights of a string in UTF-8, as in its sort key,
 * from the first one on.  Returns their number, less than 'count' if they end.
 * None of them is 0.
 */
extern Size gpusort_icu_library_primaries(const void *collator, const unsigned char *string,
										  Size length, unsigned char *key, Size count);

/*
 * Call 'found' for each sequence of characters that the collator does not treat as its
 * characters one by one: contractions, and characters with a context before them.  'string'
 * is in UTF-16, of 'length' units.  Returns false if ICU cannot tell all of them.
 */
extern bool gpusort_icu_library_contractions(const void *collator,
											 void (*found) (const uint16 *string, int length,
															void *argument),
											 void *argument);

#endif							/* GPUSORT_ICU_LIBRARY_H */
