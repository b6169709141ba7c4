/*-------------------------------------------------------------------------
 *
 * numeric_words.h
 *		Values of type numeric as words that order the same way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMERIC_WORDS_H
#define GPUSORT_NUMERIC_WORDS_H

/* Word number 'index', from 0, of a value. */
extern uint64 gpusort_numeric_word(Datum value, uint32 index);

/* Do the first 'nwords' words of a value have all of its digits? */
extern bool gpusort_numeric_ends(Datum value, uint32 nwords);

#endif							/* GPUSORT_NUMERIC_WORDS_H */
