/*-------------------------------------------------------------------------
 *
 * run_merge.h
 *		Merges sorted runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_MERGE_H
#define GPUSORT_RUN_MERGE_H

#include "sort/base/sort_spec.h"
#include "sort/disk/sorted_run.h"
#include "sort/memory/memory_sort.h"

typedef struct GsRunMerge GsRunMerge;

/*
 * Begin a merge, in the current memory context, of at least one run and, unless
 * 'held' is NULL, of the rows of a sorted memory sort.  Ties are returned in the
 * order of the runs, and those from memory last.  All arguments must stay valid.
 * The merge consumes the runs.
 */
extern GsRunMerge *gpusort_run_merge_begin(const GsSortSpec *spec,
										   const GsRowFormat *format,
										   GsSortedRun *const *runs, int nruns,
										   GsMemorySort *held);

/*
 * Return the next row, packed, and its length.  The row is valid until the next
 * call.  Returns NULL after the last row.
 */
extern char *gpusort_run_merge_next(GsRunMerge *merge, Size *bytes);

#endif							/* GPUSORT_RUN_MERGE_H */
