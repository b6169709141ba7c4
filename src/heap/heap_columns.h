/*-------------------------------------------------------------------------
 *
 * heap_columns.h
 *		Takes columns out of heap tuples where they lie.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_COLUMNS_H
#define GPUSORT_HEAP_COLUMNS_H

#include "access/attnum.h"
#include "access/htup_details.h"
#include "access/tupdesc.h"

typedef struct GsHeapColumns GsHeapColumns;

/*
 * Prepare in the current memory context to take n columns, values[i] being that
 * of attribute attnos[i], from 1, of tuples of the given type, which must stay.
 */
extern GsHeapColumns *gpusort_heap_columns_create(TupleDesc table, int n,
												  const AttrNumber *attnos);

/*
 * Take the columns of a tuple.  What is passed by reference points into it.
 * 'isnull' is all false at the first call, and then as the call before left it.
 */
extern void gpusort_heap_columns_take(GsHeapColumns *columns,
									  HeapTupleHeader tuple,
									  Datum *values, bool *isnull);

#endif							/* GPUSORT_HEAP_COLUMNS_H */
