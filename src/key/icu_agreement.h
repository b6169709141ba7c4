/*-------------------------------------------------------------------------
 *
 * icu_agreement.h
 *		Compares sort keys of ICU with PostgreSQL's comparisons.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_AGREEMENT_H
#define GPUSORT_ICU_AGREEMENT_H

/*
 * Writes the first bytes of a string's sort key, at most 'count'.  Returns their number.
 */
typedef Size (*GsIcuKeyWriter) (const unsigned char *string, Size length, unsigned char *key,
								Size count, void *argument);

/*
 * Returns true if keys that differ always have the order of PostgreSQL's comparisons by a
 * collation of ICU, as far as a sample of strings shows.  The answer for a collation is kept
 * for the life of the process.  The first time takes 1 to 2 ms.
 */
extern bool gpusort_icu_agreement_check(Oid collation, GsIcuKeyWriter write, void *argument);

#endif							/* GPUSORT_ICU_AGREEMENT_H */
