/*-------------------------------------------------------------------------
 *
 * heap_rows.h
 *		Reads a table for an index build: values, TIDs, and who is alive.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_ROWS_H
#define GPUSORT_HEAP_ROWS_H

#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

typedef struct GsHeapRows GsHeapRows;

/* A row that the index is to have. */
typedef struct GsHeapRow
{
	ItemPointerData tid;		/* of the root of its HOT chain */
	bool		alive;			/* has it a say in uniqueness? */
} GsHeapRow;

/* What processes that read a heap together have in common. */
typedef struct GsHeapShare
{
	BlockNumber nblocks;		/* of the heap */
	pg_atomic_uint64 next_block;	/* to be read */
	pg_atomic_uint64 nlive;		/* live rows that workers found */
	pg_atomic_uint32 broken_chains; /* have they found broken HOT chains? */
	pg_atomic_uint32 blocked;	/* is one blocked? */
} GsHeapShare;

/*
 * Begin to read a heap, in a memory context of its own below the current one.
 * Nothing is locked here: the caller has what a build needs.
 */
extern GsHeapRows *gpusort_heap_rows_begin(Relation heap, Relation index,
										   IndexInfo *info);

/*
 * To read it with other processes: before the first row, fill in what they
 * share; when all of them have ended, add what they have found.  Rows of one
 * process are in the order of TIDs.
 */
extern void gpusort_heap_rows_share(GsHeapRows *rows, GsHeapShare *share);
extern void gpusort_heap_rows_unshare(GsHeapRows *rows);

/* The snapshot that they need, to be serialized, or NULL. */
extern Snapshot gpusort_heap_rows_snapshot(const GsHeapRows *rows);

/* For these other processes.  'snapshot' is serialized, or NULL. */
extern GsHeapRows *gpusort_heap_rows_join(Relation heap, Relation index,
										  IndexInfo *info, char *snapshot,
										  GsHeapShare *share);

/*
 * The next row, in the order of TIDs, and the values of the index's columns.
 * What is passed by reference is valid until the next call, and depends on nothing that
 * is stored elsewhere.  'isnull' is all false at the first call, and then as the
 * call before left it.
 *
 * Raises the error of PostgreSQL's build if a value is too long for any index.  Returns
 * false at the end, and before it if gpusort_heap_rows_is_blocked().
 */
extern bool gpusort_heap_rows_next(GsHeapRows *rows, GsHeapRow *row,
								   Datum *values, bool *isnull);

/*
 * Has there been a row whose fate another transaction decides, so that the
 * table cannot be read without waiting?
 */
extern bool gpusort_heap_rows_is_blocked(const GsHeapRows *rows);

/* Begin again.  Rows that no snapshot sees any longer do not come again. */
extern void gpusort_heap_rows_rewind(GsHeapRows *rows);

/* At the end: live rows of the table, of which a partial index has not all. */
extern double gpusort_heap_rows_live(const GsHeapRows *rows);

extern void gpusort_heap_rows_end(GsHeapRows *rows);

#endif							/* GPUSORT_HEAP_ROWS_H */
