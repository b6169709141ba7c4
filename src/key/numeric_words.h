/*-------------------------------------------------------------------------
 *
 * numeric_words.h
 *		Encodes values of type numeric as words with the same order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMERIC_WORDS_H
#define GPUSORT_NUMERIC_WORDS_H

/* Returns the word of a value at 'index', counted from 0. */
extern uint64 gpusort_numeric_word(Datum value, uint32 index);

/* Do the first 'nwords' words of a value include all of its digits? */
extern bool gpusort_numeric_ends(Datum value, uint32 nwords);

#endif							/* GPUSORT_NUMERIC_WORDS_H */
