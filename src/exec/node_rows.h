/*-------------------------------------------------------------------------
 *
 * node_rows.h
 *		The rows of a sort node: as it reads them, sorts them and returns them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_ROWS_H
#define GPUSORT_NODE_ROWS_H

#include "nodes/execnodes.h"

#include "exec/row_source.h"
#include "sort/sort.h"

typedef struct GsNodeRows
{
	GsRowSource *source;		/* reads the input */
	const GsNarrowRows *narrow; /* what the sort gets, or NULL */
	TupleTableSlot *sorted_row; /* as the sort returns it, if rows are whole
								 * tuples or narrow; otherwise NULL */
	AttrNumber	tuple_attno;	/* the column with the whole tuple, or 0 */
} GsNodeRows;

/*
 * Decide in which form rows are sorted, and set what 'spec' says of them.  Called
 * when the node begins, with its input in place.  spec->keys must be set, and
 * 'spec' must stay.
 */
extern void gpusort_node_rows_init(GsNodeRows *rows, CustomScanState *css,
								   GsSortSpec *spec);

/*
 * Move the cursor of a sort of these rows.  'slot' is the scan slot of the node.
 * Returns the slot with the row, or empty.
 */
extern TupleTableSlot *gpusort_node_rows_next(const GsNodeRows *rows,
											  GsSort *sort, bool forward,
											  TupleTableSlot *slot);

#endif							/* GPUSORT_NODE_ROWS_H */
