/*-------------------------------------------------------------------------
 *
 * partition_rows.h
 *		Returns the first rows of each partition only, for a window that wants no more.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTITION_ROWS_H
#define GPUSORT_PARTITION_ROWS_H

#include "sort/sort.h"

/*
 * The same as gpusort_sort_next(), forward, of a sort with spec->partition_keys, but skips the rows
 * of a partition after its first spec->partition_rows ones.
 */
extern bool gpusort_partition_rows_next(GsSort *sort, TupleTableSlot *slot);

#endif							/* GPUSORT_PARTITION_ROWS_H */
