/*-------------------------------------------------------------------------
 *
 * gpusort_node.h
 *		The GpuSort executor node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_NODE_H
#define GPUSORT_GPUSORT_NODE_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "exec/gpusort_state.h"

/*
 * CreateCustomScanState of the GpuSort, the GpuIncrementalSort (incremental_node.c), and the
 * GpuSortPack and GpuSortUnpack (packed_rows.c).
 */
extern Node *gpusort_node_create_state(CustomScan *plan);
extern Node *gpusort_incremental_create_state(CustomScan *plan);
extern Node *gpusort_pack_create_state(CustomScan *plan);
extern Node *gpusort_unpack_create_state(CustomScan *plan);

/*
 * If the state is a GpuSort, set the Limit that bounds the rows wanted from
 * it; NULL means none.
 */
extern void gpusort_node_set_limit(PlanState *state, LimitState *limit);

/* If the state is a Merge Join or SetOp of two sorts that are divided alike, connect them. */
extern void gpusort_node_connect_pair(PlanState *state);

/*
 * In a parallel worker, if the state is a GpuSort, get the number of rows that
 * the leader wants from it, or -1 for all.  Returns false if it is another
 * node, or if its Limit is in the worker's own plan.
 */
extern bool gpusort_node_leaders_bound(PlanState *state, int64 *bound);

/* If the state is a GpuSort, get its sort keys.  Otherwise return false. */
extern bool gpusort_node_keys(PlanState *state, GsSortKeys *keys);

/*
 * Before the execution: if the state is a GpuSort, have it withhold its rows, since the node above
 * wants only counts of their first keys, or these keys by position.  If it has any rows, it returns
 * one row of NULLs instead.  If keys cannot be read by position, it returns its rows nevertheless.
 * Otherwise returns false.
 */
extern bool gpusort_node_withhold(PlanState *state, GsWanted wanted);

/*
 * From the first row on: returns these counts; or the sort with these keys, or NULL if the state is
 * another node or has returned rows.
 */
extern const GsKeyCounts *gpusort_node_counts(const PlanState *state);
extern GsSort *gpusort_node_withheld_sort(const PlanState *state);

/* Called once by _PG_init(). */
extern void gpusort_node_init(void);

#endif							/* GPUSORT_GPUSORT_NODE_H */
