/*-------------------------------------------------------------------------
 *
 * agg_context.h
 *		The memory context of a group, for functions of aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_CONTEXT_H
#define GPUSORT_AGG_CONTEXT_H

#include "fmgr.h"

/* Returns the context in which an Agg keeps the transition state of the current group. */
static inline MemoryContext
gpusort_agg_context(FunctionCallInfo fcinfo)
{
	MemoryContext group;

	if (!AggCheckCallContext(fcinfo, &group))
		elog(ERROR, "pg_gpusort: aggregate function called in another context");
	return group;
}

#endif							/* GPUSORT_AGG_CONTEXT_H */
