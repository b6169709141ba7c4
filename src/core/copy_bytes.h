/*-------------------------------------------------------------------------
 *
 * copy_bytes.h
 *		Copies a few dozen bytes.
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

#endif							/* GPUSORT_COPY_BYTES_H */
