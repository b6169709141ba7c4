/*-------------------------------------------------------------------------
 *
 * join_floor.h
 *		Joins for which a merge at GpuSort's cost is not worth considering.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOIN_FLOOR_H
#define GPUSORT_JOIN_FLOOR_H

#include "nodes/pathnodes.h"

/* A join for which paths are made. */
typedef struct GsJoin
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
} GsJoin;

/*
 * Is every merge join over a GpuSort more expensive than the paths that the join
 * has?  The join must have a path already.  The cheapest paths of its inputs must
 * not depend on parameters.
 */
extern bool gpusort_join_floor_rules_out(const GsJoin *join);

#endif							/* GPUSORT_JOIN_FLOOR_H */
