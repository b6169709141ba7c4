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
 * Begin to merge so many runs, at least one, and the rows of a session that is
 * sorted unless 'held' is NULL, in the current memory context.  Rows with equal
 * keys come in the order of the runs, and then of the session.  What is passed
 * has to stay; the runs are read up, in the memory context of 'file'.
 */
extern GsRunMerge *gpusort_run_merge_begin(const GsSortSpec *spec,
										   const GsRowFormat *format,
										   GsRunFile *file,
										   GsSortedRun *const *runs, int nruns,
										   GsMemorySort *held);

/*
 * The next row, packed, and its length, or NULL if there is none; valid until
 * the next call.
 */
extern char *gpusort_run_merge_next(GsRunMerge *merge, Size *bytes);

#endif							/* GPUSORT_RUN_MERGE_H */
