/*-------------------------------------------------------------------------
 *
 * incremental_node.h
 *		The GpuIncrementalSort executor node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INCREMENTAL_NODE_H
#define GPUSORT_INCREMENTAL_NODE_H

#include "nodes/plannodes.h"

/* CreateCustomScanState of the GpuIncrementalSort plan node. */
extern Node *gpusort_incremental_create_state(CustomScan *plan);

#endif							/* GPUSORT_INCREMENTAL_NODE_H */
