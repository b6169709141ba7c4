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

#include "exec/page_scan.h"
#include "exec/sink_node.h"
#include "sort/sort_session.h"

/* Reports of a parallel query's workers, in its dynamic shared memory. */
typedef struct GsWorkerReports
{
	int			nworkers;
	struct
	{
		bool		filled;		/* set last, by the worker itself */
		GsSessionReport report;
	}			workers[FLEXIBLE_ARRAY_MEMBER];
} GsWorkerReports;

typedef struct GsNodeState
{
	CustomScanState css;		/* first: it is a node of this type */
	GsSessionSpec spec;
	GsPageScan *page_scan;		/* reads the input, or NULL */
	GsSinkState *sink;			/* below the input, or NULL */
	GsSortSession *session;		/* NULL until the first row is asked for */
	bool		has_report;		/* of the last session of this process */
	GsSessionReport report;
	GsWorkerReports *shared_reports;	/* in shared memory, or NULL */
	GsWorkerReports *worker_reports;	/* the leader's copy, or NULL */
	Plan	   *plan_for_explain;	/* see gpusort_node_begin() */
} GsNodeState;

/* CreateCustomScanState of the GpuSort plan node. */
extern Node *gpusort_node_create_state(CustomScan *plan);

#endif							/* GPUSORT_GPUSORT_NODE_H */
