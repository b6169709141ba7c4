/*-------------------------------------------------------------------------
 *
 * gpusort_explain.h
 *		What EXPLAIN shows of a GpuSort node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_EXPLAIN_H
#define GPUSORT_GPUSORT_EXPLAIN_H

#include "commands/explain.h"
#include "nodes/execnodes.h"

/* ExplainCustomScan of the GpuSort node. */
extern void gpusort_explain_node(CustomScanState *css, List *ancestors,
								 ExplainState *es);

#endif							/* GPUSORT_GPUSORT_EXPLAIN_H */
