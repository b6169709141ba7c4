/*-------------------------------------------------------------------------
 *
 * run_merge.h
 *		Merges sorted runs, and divides their rows into ranges that can be merged separately.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_MERGE_H
#define GPUSORT_RUN_MERGE_H

#include "sort/base/sort_spec.h"
#include "sort/disk/sorted_run.h"

typedef struct GsRunMerge GsRunMerge;

/*
 * A place in the order of all rows: in front of the first row of a block.  Ties in earlier runs
 * come before it, and ties in later runs come after it.  If it is in front of all rows that agree
 * with it in the first keys, no ties come before it.
 */
#define GPUSORT_BEFORE_RUNS		(-1)

typedef struct GsRunSplitter
{
	int			run;			/* its number among all runs, or
								 * GPUSORT_BEFORE_RUNS */
	uint32		block;
	Datum	   *values;			/* the sort keys of the row */
	bool	   *isnull;
} GsRunSplitter;

/* Memory to read runs, for each of them 'bytes' bytes. */
typedef struct GsRunWindows
{
	char	   *memory;
	Size		bytes;
} GsRunWindows;

/* The blocks of a run that have rows of a range. */
typedef struct GsRunSlice
{
	GsSortedRun run;
	int			number;			/* of the run among all runs */
	bool		begins_before;	/* may its first block have rows that come
								 * before the range? */
} GsRunSlice;

/* The rows between two splitters, each of which is NULL if there is none: all rows without. */
typedef struct GsRunRange
{
	const GsRunSplitter *start;
	const GsRunSplitter *end;
	GsRunSlice *slices;			/* in the order of the runs */
	int			nslices;
	GsRunWindows windows;		/* to read them */
} GsRunRange;

/* Allocate windows for n runs, of up to 'limit' bytes, in the current memory context. */
extern GsRunWindows gpusort_run_windows_alloc(int n, Size limit);

/*
 * Begin to merge the rows of a range, which has at least one slice, in the current memory context.
 * Ties are returned in the order of the slices.  All arguments must stay valid.
 */
extern GsRunMerge *gpusort_run_merge_begin(const GsSortSpec *spec, const GsRowFormat *format,
										   const GsRunRange *range);

/*
 * Go to the next row.  Returns false after the last one.  The row, in its packed form or
 * in its dense form of *bytes bytes (see row_format.h), is valid until the next call.
 */
extern bool gpusort_run_merge_next(GsRunMerge *merge);
extern char *gpusort_run_merge_packed_row(const GsRunMerge *merge);
extern char *gpusort_run_merge_dense_row(const GsRunMerge *merge, Size *bytes);

/* ---- Ranges: run_ranges.c ---- */

typedef struct GsRunRanges GsRunRanges;

/*
 * Divide 'nruns' runs into about 'nranges' ranges, in the current memory context.  The result
 * is the same in all processes.  The runs have samples, and can be read any number of times.
 * All arguments must stay valid.
 */
extern GsRunRanges *gpusort_run_ranges_create(const GsSortSpec *spec,
											  const GsSortedRun *runs,
											  int nruns, int nranges);

/*
 * Divide the runs of two sorts with spec->group_keys, which have the same keys, into the same
 * ranges: between the splitters of both.
 */
extern void gpusort_run_ranges_unite(GsRunRanges *a, GsRunRanges *b);

/* The number of ranges, from 1 to those wanted, of both if they were united. */
extern int	gpusort_run_ranges_count(const GsRunRanges *ranges);

/*
 * Find a range, with slices in the current memory context.  It may have no slices.  Calls
 * comparators, which may raise errors.
 */
extern void gpusort_run_ranges_get(GsRunRanges *ranges, int number, GsRunRange *range);

#endif							/* GPUSORT_RUN_MERGE_H */
