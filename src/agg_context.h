/*-------------------------------------------------------------------------
 *
 * agg_context.h
 *		The memory context of an aggregate, for its functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_CONTEXT_H
#define GPUSORT_AGG_CONTEXT_H

#include "fmgr.h"

/* Returns the context of the transition state of the current group, or of a window. */
static inline MemoryContext
gpusort_agg_context(FunctionCallInfo fcinfo)
{
	MemoryContext group;

	if (!AggCheckCallContext(fcinfo, &group))
		elog(ERROR, "aggregate function called in non-aggregate context");
	return group;
}

#endif							/* GPUSORT_AGG_CONTEXT_H */
