/*-------------------------------------------------------------------------
 *
 * sink_node.h
 *		The GpuSortSink executor node: has each process put its rows into a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SINK_NODE_H
#define GPUSORT_SINK_NODE_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "service/service_client.h"
#include "sort/sort_session.h"

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
 * For the leader: before the Gather is executed, open the sink to a GPU session,
 * or have workers write runs, and the leader put its rows into its own session;
 * from then on it returns no rows.  Closed, it passes its rows on.  'bound' is that
 * of the session's specification.
 */
extern void gpusort_sink_open_gpu(GsSinkState *sink, GsClientHandle handle);
extern void gpusort_sink_open_runs(GsSinkState *sink, GsSortSession *session,
								   GsRunSetHandle runs, int64 bound);
extern void gpusort_sink_close(GsSinkState *sink);

/*
 * After the Gather has ended, and before its shared memory goes: the runs that
 * workers have written, from 0 on; NULL if there are no more.
 */
extern const GsSharedRun *gpusort_sink_run(const GsSinkState *sink, int number);

/* After the Gather has ended: why rows are missing, or GS_FALLBACK_NONE. */
extern GsFallback gpusort_sink_failure(const GsSinkState *sink);

#endif							/* GPUSORT_SINK_NODE_H */
