/*-------------------------------------------------------------------------
 *
 * agg_paths.h
 *		Adds paths over sorts in the order that aggregates want.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGG_PATHS_H
#define GPUSORT_AGG_PATHS_H

#include "nodes/pathnodes.h"

/*
 * Add paths that sort the rows of 'input_rel' by the groups and by what the
 * aggregates sort by, so that these need no sorts of their own.  Called after
 * all other paths have been added to 'grouped_rel'.
 */
extern void gpusort_agg_paths_add(PlannerInfo *root, RelOptInfo *input_rel,
								  RelOptInfo *grouped_rel,
								  GroupPathExtraData *extra, double groups);

#endif							/* GPUSORT_AGG_PATHS_H */
