/*-------------------------------------------------------------------------
 *
 * heap_rows.h
 *		Reads a table for an index build: values, TIDs, and which rows are
 *		live.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_ROWS_H
#define GPUSORT_HEAP_ROWS_H

#include "access/htup_details.h"
#include "nodes/execnodes.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

typedef struct GsHeapRows GsHeapRows;

/* A row that goes into the index. */
typedef struct GsHeapRow
{
	ItemPointerData tid;		/* of its HOT chain's root */
	bool		alive;			/* does it count for uniqueness? */
} GsHeapRow;

typedef struct GsHeapTally
{
	double		live;			/* rows, including those that a partial index
								 * excludes */
	int64		returned;		/* rows */
	bool		blocked;		/* does another open transaction decide on a
								 * row, so that reading has to wait for it? */
} GsHeapTally;

/* Shared state of the processes that read a heap together. */
typedef struct GsHeapShare GsHeapShare;

/*
 * Begin to read a heap, in a new memory context below the current one.  The
 * caller must hold the locks that an index build needs.  Values of the index
 * that are stored out of line are fetched with their rows, or if 'fetch' is
 * false by the caller.  'share' is NULL but in a worker.
 */
extern GsHeapRows *gpusort_heap_rows_begin(Relation heap, Relation index,
										   IndexInfo *info, bool fetch,
										   GsHeapShare *share);

/* TIDs of a block, as bits: bit offset - 1 for each offset. */
typedef uint64 GsKnownTids[(MaxHeapTuplesPerPage + 63) / 64];

/*
 * Begin to read those rows that a snapshot sees and an index lacks.  'known' has the TIDs of the
 * first 'nknown' blocks that it has.  Values are not fetched.
 */
extern GsHeapRows *gpusort_heap_rows_begin_missing(Relation heap, Relation index,
												   IndexInfo *info, Snapshot snapshot,
												   const GsKnownTids *known,
												   BlockNumber nknown);

/*
 * To read the heap together with other processes, call share() before the
 * first row, with share_bytes() bytes of memory.  The others begin with these, and call
 * report() after their last row.  Call unshare() when all of them have done so; it adds
 * their results, the first time.  The rows of each process come in TID order.
 */
extern Size gpusort_heap_rows_share_bytes(const GsHeapRows *rows);
extern void gpusort_heap_rows_share(GsHeapRows *rows, GsHeapShare *share);
extern void gpusort_heap_rows_report(GsHeapRows *rows);
extern void gpusort_heap_rows_unshare(GsHeapRows *rows);

/*
 * Get the next row, in TID order, and the values of the index's columns.
 * By-reference values are valid until the next call; if they are fetched, they depend on
 * nothing that is stored out of line.  'isnull' must be all false at the first call,
 * and be passed to each later call as the previous one left it.
 *
 * Raises the error of PostgreSQL's build if a value is too long for any index.
 * Returns false at the end, or earlier if a row blocks the scan.
 */
extern bool gpusort_heap_rows_next(GsHeapRows *rows, GsHeapRow *row,
								   Datum *values, bool *isnull);

/*
 * Read the heap again from its beginning.  Rows that no snapshot sees any
 * longer are not returned again.
 */
extern void gpusort_heap_rows_rewind(GsHeapRows *rows);

/* What has been read, by workers too once they have reported. */
extern const GsHeapTally *gpusort_heap_rows_tally(const GsHeapRows *rows);

extern void gpusort_heap_rows_end(GsHeapRows *rows);

#endif							/* GPUSORT_HEAP_ROWS_H */
