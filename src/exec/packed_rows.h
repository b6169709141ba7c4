/*-------------------------------------------------------------------------
 *
 * packed_rows.h
 *		The GpuSortPack and GpuSortUnpack executor nodes: many rows pass a Gather as one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PACKED_ROWS_H
#define GPUSORT_PACKED_ROWS_H

#include "nodes/plannodes.h"

/* CreateCustomScanState of the two plan nodes. */
extern Node *gpusort_pack_create_state(CustomScan *plan);
extern Node *gpusort_unpack_create_state(CustomScan *plan);

#endif							/* GPUSORT_PACKED_ROWS_H */
