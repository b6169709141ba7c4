/*-------------------------------------------------------------------------
 *
 * sort_eligibility.h
 *		Determines which sorts of a plan are taken over.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ELIGIBILITY_H
#define GPUSORT_SORT_ELIGIBILITY_H

#include "sort/base/sort_spec.h"

/* A sort, as known to the planner. */
typedef struct GsSortCandidate
{
	double		rows;			/* estimated */
	int			width;			/* of a row in bytes, estimated */
	double		bound;			/* rows wanted; see exec/limit_bound.h */
	GsInputRepeat repeat;		/* of the input */
} GsSortCandidate;

/*
 * Is a sort worth taking over?  Returns GS_FALLBACK_NONE, or the reason why it
 * is not.  Ignores 'repeat'.
 */
extern GsFallback gpusort_eligibility_of_rows(const GsSortCandidate *candidate);

/*
 * Can a sort by these keys be taken over?  Returns as above.  Reads the system
 * catalogs.
 */
extern GsFallback gpusort_eligibility_of_keys(const GsSortKeys *keys);

/*
 * Will a sort that is taken over, with keys of 'words' words, need no disk, as
 * far as the estimates tell?
 */
extern bool gpusort_eligibility_fits(const GsSortCandidate *candidate,
									 unsigned words);

#endif							/* GPUSORT_SORT_ELIGIBILITY_H */
