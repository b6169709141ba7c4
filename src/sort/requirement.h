/*-------------------------------------------------------------------------
 *
 * requirement.h
 *		Counts what is left to stock PostgreSQL, and checks what tests require.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REQUIREMENT_H
#define GPUSORT_REQUIREMENT_H

#include "sort/sort.h"

/* What can be left to PostgreSQL. */
typedef enum GsLeft
{
	GS_LEFT_SORT,
	GS_LEFT_INDEX_BUILD
} GsLeft;

/*
 * Count a sort or an index build that is left to PostgreSQL, unless it is disabled or
 * too small to matter.  Raises an error if pg_gpusort.debug_require is set.
 */
extern void gpusort_requirement_leave(GsLeft what, GsFallback reason);

/* Raise an error if a sort was not done as pg_gpusort.debug_require demands. */
extern void gpusort_requirement_check(const GsSortReport *report);

#endif							/* GPUSORT_REQUIREMENT_H */
