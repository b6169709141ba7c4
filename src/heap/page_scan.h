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
 * Before a node's rows are read, the first time (*scan is NULL) or again: have a
 * reader of them in *scan, made in the current memory context.  It stays NULL if
 * the node has to be executed.
 */
extern void gpusort_page_scan_prepare(GsPageScan **scan, PlanState *node);

/*
 * The next row in a virtual slot, or NULL at the end.  What is passed by
 * reference is valid until the next call.
 */
extern TupleTableSlot *gpusort_page_scan_next(GsPageScan *scan);

/* The node was rescanned: begin again. */
extern void gpusort_page_scan_rewind(GsPageScan *scan);

#endif							/* GPUSORT_PAGE_SCAN_H */
