/*-------------------------------------------------------------------------
 *
 * copy_bytes.h
 *		Copies a few dozen bytes.
 *
 * gcc turns memcpy() of a length that it can tell to be small into "rep movs",
 * which takes some 100 ns to start on processors without fast short string moves.
 * Whether it can tell changes with every inlined call around, so that copies of
 * single values and index tuples say what they want.
 *
 * This header knows nothing of PostgreSQL, so that it can be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COPY_BYTES_H
#define GPUSORT_COPY_BYTES_H

#include <stddef.h>
#include <string.h>

/* Copy n bytes, of which there may be none, to where they were not before. */
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
