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

typedef struct GsRunMerge GsRunMerge;

/*
 * Begin a merge, in the current memory context, of at least one run.  Ties are returned in
 * the order of the runs.  All arguments must stay valid.  The merge consumes the runs.
 */
extern GsRunMerge *gpusort_run_merge_begin(const GsSortSpec *spec,
										   const GsRowFormat *format,
										   GsSortedRun *const *runs, int nruns);

/*
 * Go to the next row.  Returns false after the last one.  The row, in its packed form or
 * in its dense form of *bytes bytes (see dense_row.h), is valid until the next call.
 */
extern bool gpusort_run_merge_next(GsRunMerge *merge);
extern char *gpusort_run_merge_packed_row(const GsRunMerge *merge);
extern char *gpusort_run_merge_dense_row(const GsRunMerge *merge, Size *bytes);

#endif							/* GPUSORT_RUN_MERGE_H */
