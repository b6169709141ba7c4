/*-------------------------------------------------------------------------
 *
 * copy_bytes.h
 *		Copies values of a few bytes.
 *
 * If gcc can infer that the length passed to memcpy() is small, it emits "rep
 * movs", which takes about 100 ns to start on processors without fast short
 * string moves.  Whether it can infer this changes with every inlined call in
 * the function.  So copies of single values and index tuples use this function
 * instead.
 *
 * This header does not depend on PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COPY_BYTES_H
#define GPUSORT_COPY_BYTES_H

#include <stddef.h>
#include <string.h>

/* Copy n bytes, 0 or more.  The source and the target must not overlap. */
static inline void
gpusort_copy_bytes(void *to, const void *from, size_t n)
{
	char	   *target = to;
	const char *source = from;

	if (n < 8)
	{
		for (size_t i = 0; i < n; i++)
			target[i] = source[i];
		return;
	}
	for (size_t i = 0; i + 8 <= n; i += 8)
		memcpy(target + i, source + i, 8);
	memcpy(target + n - 8, source + n - 8, 8);
}

/* Copy values of n bytes each, which are at one distance, to places at another. */
static inline void
gpusort_copy_values(char *to, size_t to_step, const char *from, size_t from_step, size_t n,
					size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (n == 8)
			memcpy(to, from, 8);
		else if (n == 4)
			memcpy(to, from, 4);
		else
			gpusort_copy_bytes(to, from, n);
		to += to_step;
		from += from_step;
	}
}

#endif							/* GPUSORT_COPY_BYTES_H */
