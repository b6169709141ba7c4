/*-------------------------------------------------------------------------
 *
 * sort_eligibility.h
 *		Which sorts of a plan GpuSort takes over.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ELIGIBILITY_H
#define GPUSORT_SORT_ELIGIBILITY_H

#include "sort/base/session_spec.h"

/* A sort, as the planner knows it. */
typedef struct GsSortCandidate
{
	double		rows;			/* estimated */
	int			width;			/* of a row in bytes, estimated */
	double		bound;			/* rows wanted; see exec/limit_bound.h */
	GsInputRepeat repeat;		/* of the input */
} GsSortCandidate;

/*
 * Is such a sort worth taking over?  Returns GS_FALLBACK_NONE, or the reason why
 * not.  Does not look at 'repeat'.
 */
extern GsFallback gpusort_eligibility_of_rows(const GsSortCandidate *candidate);

/* Likewise: can a sort by these keys be taken over?  Looks at the system catalogs. */
extern GsFallback gpusort_eligibility_of_keys(const GsSortKeys *keys);

/*
 * Will a sort that is taken, with so many words in a key, need no disk, as far
 * as can be told?
 */
extern bool gpusort_eligibility_fits(const GsSortCandidate *candidate,
									 unsigned words);

#endif							/* GPUSORT_SORT_ELIGIBILITY_H */
