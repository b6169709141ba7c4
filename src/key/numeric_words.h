/*-------------------------------------------------------------------------
 *
 * numeric_words.h
 *		Values of type numeric as words that order the same way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMERIC_WORDS_H
#define GPUSORT_NUMERIC_WORDS_H

#include "key/key_encoding.h"

/* See gpusort_key_encoding_word() and gpusort_key_encoding_rest(). */
extern uint64 gpusort_numeric_word(Datum value, uint32 index);
extern GsEncodingRest gpusort_numeric_rest(Datum value, uint32 nwords);

#endif							/* GPUSORT_NUMERIC_WORDS_H */
