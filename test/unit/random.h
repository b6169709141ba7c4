/*-------------------------------------------------------------------------
 *
 * random.h
 *		Random numbers that are the same in each test run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANDOM_H
#define GPUSORT_RANDOM_H

#include <stdint.h>

/* Any initial value will do. */
typedef uint64_t RandomState;

/* Returns 64 random bits, from the generator known as splitmix64. */
static inline uint64_t
random_word(RandomState *state)
{
	uint64_t	word = (*state += UINT64_C(0x9e3779b97f4a7c15));

	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

/* Returns a random number from 0 to limit - 1. */
static inline uint64_t
random_below(RandomState *state, uint64_t limit)
{
	return random_word(state) % limit;
}

#endif							/* GPUSORT_RANDOM_H */
