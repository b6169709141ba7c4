/*-------------------------------------------------------------------------
 *
 * gin_collect.h
 *		Reads a table, or a process's share of it, and collects the keys of a GIN index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_COLLECT_H
#define GPUSORT_GIN_COLLECT_H

#include "access/relscan.h"
#include "nodes/execnodes.h"

#include "index/gin/gin_order.h"
#include "sort/base/progress.h"
#include "sort/sort.h"

/* What a process has to collect. */
typedef struct GsGinCollection
{
	/* Set by the caller. */
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	TableScanDesc scan;			/* ended; NULL for the whole table */
	GsGinOrder *order;
	const GsSortSpec *spec;
	GsSort	   *sort;			/* to which rows are added */

	/* Afterwards. */
	GsProgress *progress;		/* of this process */
	double		nlive;			/* live rows of the table */
	int64		nentries;		/* pairs of a key and a TID */
} GsGinCollection;

/*
 * Describe the sort, in the current memory context.  The caller sets the memory and the rows that
 * are expected.  The sort has this part of a process's memory, and the keys that it collects have
 * the rest.
 */
extern void gpusort_gin_describe_sort(const GsGinOrder *order, GsSortSpec *spec);

#define GPUSORT_GIN_SORT_PART	2

/*
 * Read the table in the order of blocks, or the share of it that the scan has, collect the keys
 * of its rows, and add them to the sort.  In a worker, 'nworkers' is -1, and in the leader the
 * number of workers beside it, which also reports blocks.  All memory is in the current memory
 * context.
 */
extern void gpusort_gin_collect(GsGinCollection *collection, int nworkers);

#endif							/* GPUSORT_GIN_COLLECT_H */
