/*-------------------------------------------------------------------------
 *
 * poison.h
 *		Fills memory with a pattern when it is handed out, in builds for tests.
 *
 * With GPUSORT_POISON defined (make POISON=yes), data that another sort or
 * session has left in memory is overwritten when the memory is handed out.
 * Reading bytes before writing them then changes the result.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_POISON_H
#define GPUSORT_POISON_H

#include <string.h>

#ifdef GPUSORT_POISON
#define gpusort_poison(memory, bytes)	((void) memset(memory, 0xA7, bytes))
#else
#define gpusort_poison(memory, bytes)	((void) 0)
#endif

#endif							/* GPUSORT_POISON_H */
