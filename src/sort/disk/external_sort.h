/*-------------------------------------------------------------------------
 *
 * external_sort.h
 *		Keeps the rows of a sort on disk as sorted runs, and merges the runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_SORT_H
#define GPUSORT_EXTERNAL_SORT_H

#include "sort/base/sort_spec.h"
#include "sort/disk/extent_file.h"
#include "sort/disk/sorted_run.h"
#include "sort/memory/memory_sort.h"

typedef struct GsExternalSort GsExternalSort;

/*
 * Begin a sort in the current memory context.  Merging uses up to 'limit' bytes of
 * memory.  'spec' and what it points to must stay valid.  Unless 'target' is NULL, the
 * runs are written to that file, which other processes can open, and read in ranges.
 */
extern GsExternalSort *gpusort_external_begin(const GsSortSpec *spec, Size limit,
											  const GsRunTarget *target);

/*
 * Write a run: begin it, put its rows in sorted order, and end it.  Instead of
 * putting a row, the caller can reserve space for it, and must then write the dense
 * row there before the next call.  'index' is the index, from 0, at which to insert
 * the run: among ties, the rows of runs with lower indexes come first.  To append
 * the run, pass gpusort_external_runs().  Checks for interrupts.
 */
extern void gpusort_external_begin_run(GsExternalSort *sort);
extern void gpusort_external_put(GsExternalSort *sort, const Datum *values,
								 const bool *isnull);
extern char *gpusort_external_reserve(GsExternalSort *sort, Size bytes);
extern void gpusort_external_end_run(GsExternalSort *sort, int index);

/* The number of runs. */
extern int	gpusort_external_runs(const GsExternalSort *sort);

/* With a target: describe a run, which other processes can open. */
extern void gpusort_external_describe_run(const GsExternalSort *sort, int index,
										  GsSharedRun *run);

/*
 * Merge some runs if there are too many, which changes their number.  Call this
 * between runs, while the memory allowed is not used for anything else.
 */
extern void gpusort_external_limit_runs(GsExternalSort *sort);

/* The same, until there are at most 'most' runs. */
extern void gpusort_external_reduce_runs(GsExternalSort *sort, int most);

/* The number of rows added. */
extern int64 gpusort_external_count(const GsExternalSort *sort);

/*
 * Call this when all runs have been added.  Merges the runs, except for the last
 * merge if the rows will be read only once and forward.
 */
extern void gpusort_external_perform(GsExternalSort *sort);

/*
 * Call this instead when the run that is being written has all rows: ends it, and prepares to read
 * it in both directions.
 */
extern void gpusort_external_read_run(GsExternalSort *sort);

/*
 * Read the row at a position, counted from 0.  Without random_access, positions must
 * ascend.  Values passed by reference are valid until the next call.
 */
extern void gpusort_external_get(GsExternalSort *sort, int64 position,
								 Datum *values, bool *isnull);

/* Note that the row read last may be read again. */
extern void gpusort_external_mark(GsExternalSort *sort);

/* The sort method that EXPLAIN shows, and the kB used on disk. */
extern const char *gpusort_external_method(const GsExternalSort *sort);
extern int64 gpusort_external_kb(const GsExternalSort *sort);

/* End the sort and remove its files. */
extern void gpusort_external_end(GsExternalSort *sort);

#endif							/* GPUSORT_EXTERNAL_SORT_H */
