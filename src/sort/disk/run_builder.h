/*-------------------------------------------------------------------------
 *
 * run_builder.h
 *		Makes sorted runs of rows that come in any order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_BUILDER_H
#define GPUSORT_RUN_BUILDER_H

#include "sort/disk/external_sort.h"
#include "sort/memory/memory_sort.h"

typedef struct GsRunBuilder GsRunBuilder;

/*
 * Begin to add runs to an external sort, in the current memory context, with
 * so many bytes of memory.  With 'may_merge', runs are merged on the way if
 * they get too many, those that were there before as well.
 */
extern GsRunBuilder *gpusort_run_builder_begin(const GsSortSpec *spec,
											   GsExternalSort *external,
											   Size limit, bool may_merge);

/* Add a row.  If the memory is used up, write a run. */
extern void gpusort_run_builder_put(GsRunBuilder *builder,
									const Datum *values, const bool *isnull);

/* Write what is left, and free the builder. */
extern void gpusort_run_builder_end(GsRunBuilder *builder);

/*
 * Write the rows of a memory sort with so many bytes, as one run or, if there
 * is no memory to sort them all at once, as several.  To be called in the memory
 * context of the session, which is of no use afterwards.
 */
extern void gpusort_run_builder_write(const GsSortSpec *spec,
									  GsExternalSort *external,
									  GsMemorySort *rows, Size limit);

/* Begin a run, and put the first rows of a session that is sorted. */
extern void gpusort_run_builder_put_sorted(GsExternalSort *external,
										   GsMemorySort *rows, int64 nrows);

#endif							/* GPUSORT_RUN_BUILDER_H */
