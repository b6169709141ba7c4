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
 * Make a reader of the node's rows, none of which has been read, in the current
 * memory context.  Returns NULL if the node has to be executed.
 */
extern GsPageScan *gpusort_page_scan_create(PlanState *node);

/*
 * The next row in a virtual slot, or NULL at the end.  What is passed by
 * reference is valid until the next call.
 */
extern TupleTableSlot *gpusort_page_scan_next(GsPageScan *scan);

/* The node was rescanned: begin again. */
extern void gpusort_page_scan_rewind(GsPageScan *scan);

#endif							/* GPUSORT_PAGE_SCAN_H */
