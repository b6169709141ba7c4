/*-------------------------------------------------------------------------
 *
 * run_builder.h
 *		Sorts rows into runs on disk, as many at a time as fit in memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_BUILDER_H
#define GPUSORT_RUN_BUILDER_H

#include "sort/disk/external_sort.h"
#include "sort/memory/memory_sort.h"

typedef struct GsRunBuilder GsRunBuilder;

/*
 * Create a builder, in the current memory context, that adds runs to an external
 * sort and uses up to 'limit' bytes of memory.  With 'may_merge', runs are merged
 * when there are too many, including those that the external sort had before.
 */
extern GsRunBuilder *gpusort_run_builder_begin(const GsSortSpec *spec,
											   GsExternalSort *external,
											   Size limit, bool may_merge);

/* Add a row.  Writes a run when memory is full. */
extern void gpusort_run_builder_put(GsRunBuilder *builder,
									const Datum *values, const bool *isnull);

/* Write the remaining rows, and free the builder. */
extern void gpusort_run_builder_end(GsRunBuilder *builder);

/*
 * Sort and write the rows of a memory sort that has a budget of 'limit' bytes.  They
 * become a single run, or several if there is not enough memory to sort all of them
 * at once.  Call this in the memory context of the memory sort, which cannot be used
 * afterwards.
 */
extern void gpusort_run_builder_write(const GsSortSpec *spec,
									  GsExternalSort *external,
									  GsMemorySort *rows, Size limit);

#endif							/* GPUSORT_RUN_BUILDER_H */
