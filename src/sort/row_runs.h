/*-------------------------------------------------------------------------
 *
 * row_runs.h
 *		The rows of a sort that are on disk, as sorted runs.
 *
 * Three things bring runs about.  In an overflow, rows that do not fit in
 * memory are written: those of sorters, and those for which there is no sorter.
 * The runs that other processes share are added to those there are, or merged
 * with a sorter's rows.  And a process with spec->target shares its own rows, as
 * one run.
 *
 * The struct is open since each row that comes from the last merge is read by
 * its 'external'.  Others may read its members, and call of 'external' what
 * merges and reads the runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_RUNS_H
#define GPUSORT_ROW_RUNS_H

#include "sort/base/sort_spec.h"
#include "sort/disk/external_sort.h"
#include "sort/disk/run_builder.h"
#include "sort/disk/shared_run.h"
#include "sort/row_sorter.h"

typedef struct GsRowRuns
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsExternalSort *external;	/* NULL if there are no runs */
	GsRunBuilder *builder;		/* of rows without a sorter, or NULL */
	GsFallback	overflow;		/* why, here or in another process, or
								 * GS_FALLBACK_NONE */
	GsRunSet   *set;			/* to which others write runs, or NULL */
	Size		reader_bytes;	/* for reading these */
	int			nimported;		/* runs of others */
	GsSharedRun shared;			/* with spec->target: what has been written */
} GsRowRuns;

/*
 * Have no runs.  Their memory will be in and below 'context'.  What 'spec' points
 * to must stay.
 */
extern void gpusort_row_runs_init(GsRowRuns *runs, const GsSortSpec *spec,
								  MemoryContext context);

/*
 * The rows do not fit in memory.  Begins the runs, and counts the reason, unless
 * that is the business of the leader.
 */
extern void gpusort_row_runs_begin_overflow(GsRowRuns *runs, GsFallback reason);

/*
 * Write a sorter's rows, those of a GPU session sorted and with the rest for
 * which there was no device memory.  Returns false if they are lost.  The sorter is
 * to be ended then.
 */
extern bool gpusort_row_runs_write(GsRowRuns *runs, GsRowSorter *sorter);

/* Begin and end a builder of the rows that follow. */
extern void gpusort_row_runs_begin_builder(GsRowRuns *runs);
extern void gpusort_row_runs_end_builder(GsRowRuns *runs);

/*
 * Make the set to which so many other processes write runs, and take the memory
 * for reading them from the sorter's budget.  Returns false if they are not to.
 */
extern bool gpusort_row_runs_make_set(GsRowRuns *runs, GsRowSorter *sorter,
									  int nprocesses, GsRunSetHandle *handle);

/* Take that memory from another sorter's budget, which replaces the first one. */
extern void gpusort_row_runs_reserve_readers(const GsRowRuns *runs,
											 GsRowSorter *sorter);

/*
 * Add the runs of which spec->input.run tells, to the runs that there are or to
 * the rows that the sorter has sorted.  Returns how many rows the other processes
 * have dropped.
 */
extern int64 gpusort_row_runs_import(GsRowRuns *runs, GsRowSorter *sorter);

/*
 * With spec->target: write there, as one run, the rows of all runs, or, if there
 * is none, those that the sorter has sorted; no more than spec->bound.
 */
extern void gpusort_row_runs_share(GsRowRuns *runs, GsRowSorter *sorter);

/*
 * Remove the runs that this process has written, and forget why.  What a builder
 * has goes with 'context'.
 */
extern void gpusort_row_runs_end(GsRowRuns *runs);

#endif							/* GPUSORT_ROW_RUNS_H */
