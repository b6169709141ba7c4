/*-------------------------------------------------------------------------
 *
 * enum_words.h
 *		Encodes values of enum types as words with the same order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENUM_WORDS_H
#define GPUSORT_ENUM_WORDS_H

/* Our own numbers for the labels of one enum type. */
typedef struct GsEnumNumbers GsEnumNumbers;

/*
 * Create an empty object, for the labels of one type, in the current memory
 * context.
 */
extern GsEnumNumbers *gpusort_enum_numbers_create(void);

/*
 * Returns the word of a label, which has 32 bits.  The first call reads
 * pg_enum, and so does a later call for a label that was not in it then.
 * Words of the same GsEnumNumbers have the order of their labels, even if the
 * type changes meanwhile.
 */
extern uint64 gpusort_enum_word(GsEnumNumbers *numbers, Oid label);

/*
 * Returns true if other processes with the same active snapshot would assign
 * the same words to all labels encoded so far.
 */
extern bool gpusort_enum_numbers_are_common(const GsEnumNumbers *numbers);

#endif							/* GPUSORT_ENUM_WORDS_H */
