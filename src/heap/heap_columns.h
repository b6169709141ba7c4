/*-------------------------------------------------------------------------
 *
 * heap_columns.h
 *		Extracts columns from heap tuples.
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
 * Prepare, in the current memory context, to extract n columns of tuples of
 * the given type, which must stay valid.  Attribute attnos[i] will be
 * values[targets[i]], or values[i] if 'targets' is NULL.
 */
extern GsHeapColumns *gpusort_heap_columns_create(TupleDesc table, int n,
												  const AttrNumber *attnos,
												  const int *targets);

/*
 * Extract the columns of a tuple.  By-reference values point into the tuple.
 * 'isnull' must be all false at the first call, and be passed to each later
 * call as the previous one left it.
 */
extern void gpusort_heap_columns_extract(GsHeapColumns *columns,
										 HeapTupleHeader tuple,
										 Datum *values, bool *isnull);

#endif							/* GPUSORT_HEAP_COLUMNS_H */
