/*-------------------------------------------------------------------------
 *
 * gpusort_explain.h
 *		What EXPLAIN shows of GpuSort and GpuSortSink nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_EXPLAIN_H
#define GPUSORT_GPUSORT_EXPLAIN_H

#include "nodes/execnodes.h"

/* Its header is another one from 18 on. */
struct ExplainState;

/* ExplainCustomScan of the nodes. */
extern void gpusort_explain_node(CustomScanState *css, List *ancestors,
								 struct ExplainState *es);
extern void gpusort_explain_sink(CustomScanState *css, List *ancestors,
								 struct ExplainState *es);

#endif							/* GPUSORT_GPUSORT_EXPLAIN_H */
