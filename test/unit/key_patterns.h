/*-------------------------------------------------------------------------
 *
 * key_patterns.h
 *		Keys with various distributions, as inputs of the sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_PATTERNS_H
#define GPUSORT_KEY_PATTERNS_H

#include <stdint.h>

#include "random.h"

typedef enum KeyPattern
{
	PATTERN_RANDOM,
	PATTERN_EQUAL,
	PATTERN_ASCENDING,			/* ascending, all keys differ */
	PATTERN_ASCENDING_RUNS,		/* ascending, with ties */
	PATTERN_DESCENDING,
	PATTERN_NEARLY_ASCENDING,	/* except for one row in a hundred */
	PATTERN_LOW_ENTROPY_2,		/* AND of 2 random words */
	PATTERN_LOW_ENTROPY_4,
	PATTERN_LOW_ENTROPY_6,
	PATTERN_FEW_DISTINCT,
	PATTERN_ONE_HOT,			/* nine of ten rows have one key */
	PATTERN_EQUAL_TOP,			/* a few values in the upper half of a word */
	PATTERN_EQUAL_LAST_BIT,		/* differ in the first and the last bit */
	PATTERN_BOTH_SIGNS,			/* numbers near 0 */
	PATTERN_SIGNS_APART,		/* of either sign for a while, then of both,
								 * and larger and larger ones */
	PATTERN_COUNT
} KeyPattern;

extern const char *key_pattern_name(KeyPattern pattern);

/* Makes 'rows' keys of 'words' words, to be freed with free(). */
extern uint64_t *key_pattern_make(KeyPattern pattern, uint32_t rows,
								  unsigned words, RandomState *random);

#endif							/* GPUSORT_KEY_PATTERNS_H */
