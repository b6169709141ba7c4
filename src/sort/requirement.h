/*-------------------------------------------------------------------------
 *
 * requirement.h
 *		What is left to stock PostgreSQL, and what a test may demand instead.
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
 * Count what is left to PostgreSQL, if it is of a size that matters.  With
 * pg_gpusort.debug_require it is an error.
 */
extern void gpusort_requirement_leave(GsLeft what, GsFallback reason);

/*
 * Raises an error if a session is not of the kind that pg_gpusort.debug_require
 * asks for.
 */
extern void gpusort_requirement_check(const GsSortReport *report);

#endif							/* GPUSORT_REQUIREMENT_H */
