/*-------------------------------------------------------------------------
 *
 * requirement.h
 *		What is left to stock PostgreSQL, and what a test may demand instead.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REQUIREMENT_H
#define GPUSORT_REQUIREMENT_H

#include "sort/sort_session.h"

/*
 * Something, such as "a sort", is left to PostgreSQL: count that if it is of a
 * size that matters.  With pg_gpusort.debug_require it is an error.
 */
extern void gpusort_requirement_leave(const char *what, GsFallback reason);

/*
 * Raises an error if a session is not of the kind that pg_gpusort.debug_require
 * asks for.
 */
extern void gpusort_requirement_check(const GsSessionReport *report);

#endif							/* GPUSORT_REQUIREMENT_H */
