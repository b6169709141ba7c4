/*-------------------------------------------------------------------------
 *
 * enum_words.h
 *		Values of enum types as words that order the same way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENUM_WORDS_H
#define GPUSORT_ENUM_WORDS_H

/* The numbers of an enum's labels. */
typedef struct GsEnumNumbers GsEnumNumbers;

/* Make an empty one, for labels of one type, in the current memory context. */
extern GsEnumNumbers *gpusort_enum_numbers_create(void);

/*
 * The word of a label, of 32 bits.  Reads pg_enum the first time, and again for a
 * label that it did not have then.  Words of the same GsEnumNumbers have the order
 * of their labels, whatever happens to the type.
 */
extern uint64 gpusort_enum_word(GsEnumNumbers *numbers, Oid label);

/*
 * Have all words so far been those that other processes with the active snapshot
 * of this one give the same labels?
 */
extern bool gpusort_enum_numbers_are_common(const GsEnumNumbers *numbers);

#endif							/* GPUSORT_ENUM_WORDS_H */
