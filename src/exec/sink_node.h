/*-------------------------------------------------------------------------
 *
 * sink_node.h
 *		The GpuSortSink executor node: adds rows to the GPU session of a GpuSort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SINK_NODE_H
#define GPUSORT_SINK_NODE_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "exec/worker_reports.h"
#include "service/service_client.h"

typedef struct GsSinkState GsSinkState;

/* CreateCustomScanState of the GpuSortSink plan node. */
extern Node *gpusort_sink_create_state(CustomScan *plan);

/* The sink below a Gather that is the input of a GpuSort, or NULL. */
extern GsSinkState *gpusort_sink_find(PlanState *input);

/*
 * Do rows below such a Gather go to a session in the order in which the Gather
 * would return them?  So they do if they all go through one process.
 */
extern bool gpusort_sink_keeps_order(const PlanState *gather);

/*
 * For the leader: before the Gather is executed, open the sink to a GPU
 * session; from then on it returns no rows.  Closed, it passes its rows on.
 */
extern void gpusort_sink_open(GsSinkState *sink, GsClientHandle handle);
extern void gpusort_sink_close(GsSinkState *sink);

/* After the Gather has ended: why rows are missing, or GS_FALLBACK_NONE. */
extern GsFallback gpusort_sink_failure(const GsSinkState *sink);

/*
 * For EXPLAIN, in the leader: the rows that all processes have added in the last
 * execution, or -1 if the sink has passed rows on; and an int64 of each worker,
 * or NULL if there are none.
 */
extern int64 gpusort_sink_rows(const GsSinkState *sink);
extern const GsWorkerReports *gpusort_sink_reports(const GsSinkState *sink);

#endif							/* GPUSORT_SINK_NODE_H */
