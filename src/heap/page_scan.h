/*-------------------------------------------------------------------------
 *
 * page_scan.h
 *		Reads a plain sequential scan of a heap page by page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_SCAN_H
#define GPUSORT_PAGE_SCAN_H

#include "nodes/execnodes.h"

typedef struct GsPageScan GsPageScan;

/*
 * Call this before a node's rows are read, for the first time (*scan is NULL)
 * or again.  Sets *scan to a page scan, made in the current memory context.
 * *scan stays NULL if the node has to be executed.
 */
extern void gpusort_page_scan_prepare(GsPageScan **scan, PlanState *node);

/*
 * Returns the next row in a virtual slot, or NULL at the end.  By-reference
 * values are valid until the next call.
 */
extern TupleTableSlot *gpusort_page_scan_next(GsPageScan *scan);

/* Call this after the node has been rescanned, to begin again. */
extern void gpusort_page_scan_rewind(GsPageScan *scan);

#endif							/* GPUSORT_PAGE_SCAN_H */
