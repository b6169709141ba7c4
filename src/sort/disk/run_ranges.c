/*-------------------------------------------------------------------------
 *
 * run_ranges.c
 *		The rows of sorted runs, one range of the sorted order at a time.
 *
 * A range ends in each run where the next one begins.  So if ranges are read one after the
 * other, only one cut of each run has to be found for a range.
 *
 * Processes that merge together take ranges in turn (shared_merge.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"

#include "sort/disk/run_ranges.h"
#include "sort/disk/run_splitters.h"

struct GsRunRanges
{
	MemoryContext context;
	const GsIndexedRun *runs;
	GsSortedRun *files;
	int			nruns;
	GsRunSplitters *splitters;
	GsRunCut   *cuts;			/* where range 'cuts_of' begins in each run, */
	GsRunCut   *next_cuts;		/* and where it ends */
	int			cuts_of;		/* or -1 */
};

GsRunRanges *
gpusort_run_ranges_create(const GsSortSpec *spec, const GsRowFormat *format,
						  const GsIndexedRun *runs, GsSortedRun *files,
						  int nruns, int nranges)
{
	GsRunRanges *ranges = palloc0(sizeof(GsRunRanges));

	ranges->context = CurrentMemoryContext;
	ranges->runs = runs;
	ranges->files = files;
	ranges->nruns = nruns;
	ranges->splitters = gpusort_run_splitters_create(spec, format, runs, nruns, nranges);
	ranges->cuts = palloc(nruns * sizeof(GsRunCut));
	ranges->next_cuts = palloc(nruns * sizeof(GsRunCut));
	ranges->cuts_of = -1;
	return ranges;
}

int
gpusort_run_ranges_count(const GsRunRanges *ranges)
{
	return gpusort_run_splitters_ranges(ranges->splitters);
}

static void
find_cuts(GsRunRanges *ranges, int range, GsRunCut *cuts)
{
	for (int r = 0; r < ranges->nruns; r++)
	{
		CHECK_FOR_INTERRUPTS();
		cuts[r] = gpusort_run_splitters_cut(ranges->splitters, range, r,
											&ranges->files[r]);
	}
}

/* Find where a range begins and ends in all runs. */
static void
find_range(GsRunRanges *ranges, int range)
{
	if (ranges->cuts_of >= 0 && ranges->cuts_of == range - 1)
	{
		GsRunCut   *cuts = ranges->cuts;

		ranges->cuts = ranges->next_cuts;
		ranges->next_cuts = cuts;
	}
	else
		find_cuts(ranges, range, ranges->cuts);
	ranges->cuts_of = -1;		/* in case of an error */
	find_cuts(ranges, range + 1, ranges->next_cuts);
	ranges->cuts_of = range;
}

int
gpusort_run_ranges_slices(GsRunRanges *ranges, int range, GsSortedRun *slices)
{
	MemoryContext caller = MemoryContextSwitchTo(ranges->context);
	int			n = 0;

	find_range(ranges, range);
	MemoryContextSwitchTo(caller);
	for (int r = 0; r < ranges->nruns; r++)
		if (ranges->cuts[r].row < ranges->next_cuts[r].row)
			slices[n++] = gpusort_run_slice(&ranges->runs[r], &ranges->files[r],
											&ranges->cuts[r], &ranges->next_cuts[r]);
	return n;
}
