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
 * Where to put rows of which not all columns are extracted, but those listed.
 *
 * If rows are whole tuples, a pointer to the tuple, to be used as a MinimalTuple whose
 * header is not valid before the infomasks, becomes attribute 'tuple_attno' of the
 * slot, and its length in bytes the attribute after that; columns keep their places.
 * Otherwise 'tuple_attno' is 0, and the slot has just the columns listed.
 */
typedef struct GsScanTarget
{
	TupleTableSlot *slot;		/* virtual, with a row in it */
	int			ncolumns;
	const AttrNumber *attnos;	/* columns of the node's rows */
	AttrNumber	tuple_attno;
} GsScanTarget;

/*
 * Call this before a node's rows are read, for the first time (*scan is NULL)
 * or again.  Sets *scan to a page scan, made in the current memory context.
 * *scan stays NULL if the node has to be executed.  'target' may be NULL, and has
 * to stay.  If it is for whole tuples, the node must not project.
 */
extern void gpusort_page_scan_prepare(GsPageScan **scan, PlanState *node,
									  const GsScanTarget *target);

/*
 * Returns the next row in a virtual slot, which is the target's if there is one, or
 * NULL at the end.  By-reference
 * values are valid until the next call.
 */
extern TupleTableSlot *gpusort_page_scan_next(GsPageScan *scan);

/* Call this after the node has been rescanned, to begin again. */
extern void gpusort_page_scan_rewind(GsPageScan *scan);

#endif							/* GPUSORT_PAGE_SCAN_H */
