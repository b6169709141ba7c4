/*-------------------------------------------------------------------------
 *
 * run_splitters.h
 *		Divides the rows of many sorted runs into ranges that can be merged separately.
 *
 * Range r has the rows of all runs that sort before splitter r, and not before splitter
 * r - 1.  Splitters are rows, the first ones of blocks.  No two rows are equal: ties are in
 * the order of the runs, and within a run in its order.  So ranges have about the same
 * length whatever the keys are.
 *
 * Where a range begins in a run is its cut.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_SPLITTERS_H
#define GPUSORT_RUN_SPLITTERS_H

#include "sort/base/sort_spec.h"
#include "sort/disk/sorted_run.h"

/*
 * Where a run is divided.  If the cut is at the end of the run, there is no such block.
 */
typedef struct GsRunCut
{
	int64		row;			/* number of the first row behind it */
	uint32		block;			/* in which that row is */
	uint32		offset;			/* of the row in the block, in bytes */
} GsRunCut;

typedef struct GsRunSplitters GsRunSplitters;

/*
 * Choose the splitters of about 'nranges' ranges, in the current memory context.  The
 * result is the same in all processes.
 */
extern GsRunSplitters *gpusort_run_splitters_create(const GsSortSpec *spec,
													const GsRowFormat *format,
													const GsIndexedRun *runs,
													int nruns, int nranges);

extern int	gpusort_run_splitters_ranges(const GsRunSplitters *splitters);

/*
 * Returns where a range begins in a run, which is opened as 'file'; for the number of
 * ranges, where the run ends.  Calls comparators, which may raise errors, and reads blocks.
 */
extern GsRunCut gpusort_run_splitters_cut(GsRunSplitters *splitters, int range,
										  int run, GsSortedRun *file);

/* Returns a run that has only the rows between two cuts.  Its file is that of 'file'. */
extern GsSortedRun gpusort_run_slice(const GsIndexedRun *run,
									 const GsSortedRun *file,
									 const GsRunCut *start, const GsRunCut *end);

#endif							/* GPUSORT_RUN_SPLITTERS_H */
