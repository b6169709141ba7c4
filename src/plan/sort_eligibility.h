/*-------------------------------------------------------------------------
 *
 * sort_eligibility.h
 *		Determines which sorts of a plan are taken over.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_ELIGIBILITY_H
#define GPUSORT_SORT_ELIGIBILITY_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "fallback.h"
#include "key/key_plan.h"

/*
 * Is a path to be made that sorts 'input' at GpuSort's cost?  Returns
 * GS_FALLBACK_NONE and sets *shape, or returns the reason why not.  The Sort
 * that the path becomes will be taken over, except where PostgreSQL's own sort
 * costs as little.  There are no paths for collations whose comparisons cost
 * as much as in a stock sort.
 */
extern GsFallback gpusort_eligibility_of_path(const Path *input,
											  List *pathkeys, double bound,
											  GsKeyShape *shape);

/*
 * Is a Sort of a finished plan to be taken over?  Returns GS_FALLBACK_NONE, or the
 * reason why not.  Reads the system catalogs.
 */
extern GsFallback gpusort_eligibility_of_sort(const Sort *sort, double bound,
											  const PlannedStmt *statement);

/* The same for an IncrementalSort. */
extern GsFallback gpusort_eligibility_of_incremental_sort(const IncrementalSort * sort,
														  double bound);

#endif							/* GPUSORT_SORT_ELIGIBILITY_H */
