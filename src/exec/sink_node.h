/*-------------------------------------------------------------------------
 *
 * sink_node.h
 *		The GpuSortSink executor node: each process puts its rows into a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SINK_NODE_H
#define GPUSORT_SINK_NODE_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#include "sort/first_keys.h"
#include "sort/sort.h"

typedef struct GsSinkState GsSinkState;

/* CreateCustomScanState of the GpuSortSink plan node. */
extern Node *gpusort_sink_create_state(CustomScan *plan);

/* Returns the sink below a Gather that is the input of a GpuSort, or NULL. */
extern GsSinkState *gpusort_sink_find(PlanState *input);

/* Returns how many processes can execute the sink, with the leader. */
extern int	gpusort_sink_processes(const GsSinkState *sink);

/*
 * Called by the leader before the Gather above the sink is executed or started.  open() makes all
 * processes put their rows into 'sort', see gpusort_parallel_sort_open().  'whole_tuples' says how
 * the sort keeps rows.  The sink then returns no rows.
 * Returns false if the processes must not do that.  close() makes the sink return all rows to the
 * Gather.
 */
extern bool gpusort_sink_open(GsSinkState *sink, bool whole_tuples, GsSort *sort);
extern void gpusort_sink_close(GsSinkState *sink);

/*
 * When the sink is open: have all processes add their rows to the sort.  Waits for the workers,
 * unless they sort while rows are read.  Returns why rows are missing, or GS_REASON_NONE.
 */
extern GsReason gpusort_sink_add_rows(GsSinkState *sink);

/* Wait for workers that have not ended. */
extern void gpusort_sink_await(const GsSinkState *sink);

/* The sort that was passed to open() ends. */
extern void gpusort_sink_forget_sort(GsSinkState *sink);

/* After that, if the sort has spec->group_keys: add what workers have counted. */
extern void gpusort_sink_add_counts(const GsSinkState *sink, const GsSort *sort,
									GsKeyCounts *counts);

/* Do the sinks put their rows into a sort? */
extern bool gpusort_sink_is_open(const GsSinkState *sink);

#endif							/* GPUSORT_SINK_NODE_H */
