/*-------------------------------------------------------------------------
 *
 * sort_eligibility.h
 *		Which sorts of a plan GpuSort takes over.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ELIGIBILITY_H
#define GPUSORT_SORT_ELIGIBILITY_H

#include "sort/session_spec.h"

/* A sort, as the planner knows it. */
typedef struct GsSortCandidate
{
	GsSortKeys	keys;
	double		rows;			/* estimated */
	int			width;			/* of a row in bytes, estimated */
	double		bound;			/* rows wanted; see exec/limit_bound.h */
	GsInputRepeat repeat;		/* of the input */
} GsSortCandidate;

/* The keys of a sort that is taken. */
typedef struct GsSortEncoding
{
	unsigned	words;			/* of a key */
	bool		exact;			/* they say all of it */
} GsSortEncoding;

/*
 * Returns GS_FALLBACK_NONE if GpuSort takes the sort, and sets *encoding; or
 * else returns why not.
 */
extern GsFallback gpusort_eligibility_check(const GsSortCandidate *candidate,
											GsSortEncoding *encoding);

/*
 * Will a sort that is taken, with so many words in a key, need no disk, as far
 * as can be told?
 */
extern bool gpusort_eligibility_fits(const GsSortCandidate *candidate,
									 unsigned words);

#endif							/* GPUSORT_SORT_ELIGIBILITY_H */
