/*-------------------------------------------------------------------------
 *
 * run_merge.h
 *		Merges sorted runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_MERGE_H
#define GPUSORT_RUN_MERGE_H

#include "sort/session_spec.h"
#include "sort/sorted_run.h"

typedef struct GsRunMerge GsRunMerge;

/*
 * Begin to merge so many runs of a file, at least one, in the current memory
 * context.  Rows with equal keys come in the order of the runs.  What is
 * passed has to stay; the runs are read up.
 */
extern GsRunMerge *gpusort_run_merge_begin(const GsSessionSpec *spec,
										   const GsRowFormat *format,
										   GsRunFile *file,
										   GsSortedRun *const *runs, int nruns);

/*
 * The next row, packed, and its length, or NULL if there is none; valid until
 * the next call.
 */
extern char *gpusort_run_merge_next(GsRunMerge *merge, Size *bytes);

#endif							/* GPUSORT_RUN_MERGE_H */
