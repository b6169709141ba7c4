/*-------------------------------------------------------------------------
 *
 * external_sort.h
 *		Rows of a sort that went on to a stock tuplesort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_SORT_H
#define GPUSORT_EXTERNAL_SORT_H

#include "executor/tuptable.h"
#include "utils/tuplesort.h"

#include "sort/session_spec.h"

typedef struct GsExternalSort GsExternalSort;

/*
 * Begin in the current memory context, with so much memory in kB.  With
 * 'by_arrival', rows with equal keys come in the order in which they were put.
 */
extern GsExternalSort *gpusort_external_begin(const GsSessionSpec *spec,
											  int limit_kb, bool by_arrival);

/* A virtual slot for rows that are no slot yet. */
extern TupleTableSlot *gpusort_external_slot(GsExternalSort *sort);

/* Add a row.  Checks for interrupts. */
extern void gpusort_external_put(GsExternalSort *sort, TupleTableSlot *slot);

/* Rows added. */
extern int64 gpusort_external_count(const GsExternalSort *sort);

/* All rows are in: sort them, and stand before the first one. */
extern void gpusort_external_perform(GsExternalSort *sort);

/*
 * Move to the next or previous row and store it in 'slot', a virtual slot that
 * is empty; false, and an empty slot, at the end.
 */
extern bool gpusort_external_next(GsExternalSort *sort, bool forward,
								  TupleTableSlot *slot);

/* Move forward by so many rows, as if they had been returned. */
extern void gpusort_external_skip(GsExternalSort *sort, int64 rows);

extern void gpusort_external_mark(GsExternalSort *sort);
extern void gpusort_external_restore(GsExternalSort *sort);
extern void gpusort_external_rescan(GsExternalSort *sort);

extern void gpusort_external_stats(GsExternalSort *sort,
								   TuplesortInstrumentation *stats);

extern void gpusort_external_end(GsExternalSort *sort);

#endif							/* GPUSORT_EXTERNAL_SORT_H */
