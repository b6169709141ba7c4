/*-------------------------------------------------------------------------
 *
 * run_ranges.h
 *		Divides the rows of sorted runs into ranges that can be merged separately.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_RANGES_H
#define GPUSORT_RUN_RANGES_H

#include "sort/base/sort_spec.h"
#include "sort/disk/run_merge.h"
#include "sort/disk/sorted_run.h"

typedef struct GsRunRanges GsRunRanges;

/*
 * Divide 'nruns' runs into about 'nranges' ranges, in the current memory context.  The result
 * is the same in all processes.  files[r] is runs[r], opened to be read any number of times.
 * All arguments must stay valid.
 */
extern GsRunRanges *gpusort_run_ranges_create(const GsSortSpec *spec,
											  const GsRowFormat *format,
											  const GsSharedRun *runs,
											  GsSortedRun *files,
											  int nruns, int nranges);

/* The number of ranges, from 1 to those wanted. */
extern int	gpusort_run_ranges_count(const GsRunRanges *ranges);

/*
 * Find a range, with slices in the current memory context.  It may have no slices.  Calls
 * comparators, which may raise errors, and reads blocks that have no sample.
 */
extern void gpusort_run_ranges_get(GsRunRanges *ranges, int number, GsRunRange *range);

#endif							/* GPUSORT_RUN_RANGES_H */
