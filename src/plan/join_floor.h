/*-------------------------------------------------------------------------
 *
 * join_floor.h
 *		Rules out joins for which a merge at GpuSort's cost cannot win.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOIN_FLOOR_H
#define GPUSORT_JOIN_FLOOR_H

#include "nodes/pathnodes.h"

/* A join for which paths are made: the arguments of set_join_pathlist_hook. */
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
 * Is every merge join over a GpuSort more expensive than the paths that the
 * join has?  The join must already have a path.  The cheapest paths of its
 * inputs must not be parameterized.
 */
extern bool gpusort_join_floor_rules_out(const GsJoin *join);

#endif							/* GPUSORT_JOIN_FLOOR_H */
