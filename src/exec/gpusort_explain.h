/*-------------------------------------------------------------------------
 *
 * gpusort_explain.h
 *		What EXPLAIN shows of GpuSort and GpuSortSink nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_EXPLAIN_H
#define GPUSORT_GPUSORT_EXPLAIN_H

#include "commands/explain.h"
#include "nodes/execnodes.h"

/* ExplainCustomScan of the nodes. */
extern void gpusort_explain_node(CustomScanState *css, List *ancestors,
								 ExplainState *es);
extern void gpusort_explain_sink(CustomScanState *css, List *ancestors,
								 ExplainState *es);

#endif							/* GPUSORT_GPUSORT_EXPLAIN_H */
