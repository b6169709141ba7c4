/*-------------------------------------------------------------------------
 *
 * poison.h
 *		Memory that is handed out is filled with a pattern, in builds for tests.
 *
 * With GPUSORT_POISON defined (make POISON=yes), what another sort or another
 * session has left in memory is overwritten when it is handed out, so that
 * bytes that are read before they are written change what comes out.
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
