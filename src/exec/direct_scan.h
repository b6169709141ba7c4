/*-------------------------------------------------------------------------
 *
 * direct_scan.h
 *		Reads a plain sequential scan without going through the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DIRECT_SCAN_H
#define GPUSORT_DIRECT_SCAN_H

#include "nodes/execnodes.h"

/*
 * Can all of this node's rows be read by gpusort_direct_scan_next()?  To be
 * asked before any is read.
 */
extern bool gpusort_direct_scan_applies(const PlanState *node);

/* The next row, in the node's own slot, or NULL at the end. */
extern TupleTableSlot *gpusort_direct_scan_next(PlanState *node);

#endif							/* GPUSORT_DIRECT_SCAN_H */
