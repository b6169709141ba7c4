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

#include "exec/sink_node.h"
#include "exec/worker_reports.h"
#include "heap/page_scan.h"
#include "sort/bounded_sort.h"
#include "sort/sort_session.h"

/* In the dynamic shared memory of a parallel query, followed by reports. */
typedef struct GsNodeShared
{
	int64		bound;			/* rows wanted of each process, or -1 */
} GsNodeShared;

typedef struct GsNodeState
{
	CustomScanState css;		/* first: it is a node of this type */
	GsSessionSpec spec;
	GsPageScan *page_scan;		/* reads the input, or NULL */
	GsSinkState *sink;			/* below the input, or NULL */
	LimitState *limit;			/* bounds the rows wanted, or NULL */

	/* One of them holds the rows; none until the first row is asked for. */
	GsSortSession *session;
	GsBoundedSort *bounded;
	int64		bound;			/* when the rows were sorted, or -1 */

	bool		has_report;		/* of the last sort of this process */
	GsSessionReport report;
	GsNodeShared *shared;		/* or NULL */
	GsWorkerReports *worker_reports;	/* the leader's copy, or NULL */
	Plan	   *own_plan;		/* see ask_for_shared_memory() */
} GsNodeState;

/* CreateCustomScanState of the GpuSort plan node. */
extern Node *gpusort_node_create_state(CustomScan *plan);

/*
 * If the state is that of a GpuSort: 'limit', which may be NULL, bounds the rows
 * wanted of it.
 */
extern void gpusort_node_set_limit(PlanState *state, LimitState *limit);

/*
 * In a parallel worker, if the state is that of a GpuSort: get the number of rows
 * that the leader wants of it, or -1 for all.  Returns false if it is another node,
 * or if its Limit is in the worker's own plan.
 */
extern bool gpusort_node_leaders_bound(PlanState *state, int64 *bound);

/* Called once by _PG_init(). */
extern void gpusort_node_init(void);

#endif							/* GPUSORT_GPUSORT_NODE_H */
