/*-------------------------------------------------------------------------
 *
 * row_runs.h
 *		Writes rows of a sort to disk as sorted runs.
 *
 * In an overflow, the rows of row sorters are written as runs, and a run builder makes runs of
 * the other rows.
 *
 * The struct is public because callers may read its members, and may call the functions of
 * 'external' that merge and read runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_RUNS_H
#define GPUSORT_ROW_RUNS_H

#include "sort/base/sort_spec.h"
#include "sort/disk/external_sort.h"
#include "sort/disk/run_builder.h"
#include "sort/row_sorter.h"

typedef struct GsRowRuns
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsExternalSort *external;	/* NULL if there are no runs */
	GsRunBuilder *builder;		/* for rows after an overflow, or NULL */
	GsFallback	overflow;		/* its reason, here or in another process, or
								 * GS_FALLBACK_NONE */
	const GsRunTarget *target;	/* where runs are written that other processes
								 * read; or NULL, for a file of its own */
} GsRowRuns;

/*
 * Initialize, without any runs.  Their memory will be in 'context' or its children.
 * 'spec' and what it points to must stay valid.
 */
extern void gpusort_row_runs_init(GsRowRuns *runs, const GsSortSpec *spec,
								  MemoryContext context);

/* From the next run on, write to 'target'.  NULL is allowed. */
extern void gpusort_row_runs_set_target(GsRowRuns *runs, const GsRunTarget *target);

/*
 * Prepare to write runs, because the rows do not fit in memory.  Counts the reason,
 * except in a worker, for which the leader does that.
 */
extern void gpusort_row_runs_begin_overflow(GsRowRuns *runs, GsFallback reason);

/* The same for rows that would fit, if those of other processes do not. */
extern void gpusort_row_runs_begin(GsRowRuns *runs);

/* Write runs to a file of this process alone, and remove those that have been read. */
extern void gpusort_row_runs_begin_anew(GsRowRuns *runs);

/* Another process has written runs for this reason. */
extern void gpusort_row_runs_note_overflow(GsRowRuns *runs, GsFallback reason);

/*
 * Write the rows of a row sorter.  A GPU session must be sorted; rows for which there
 * was no device memory are written, too.  Returns false, and leaves no run of them, if
 * rows are lost.  In either case the caller must then end the row sorter.
 */
extern bool gpusort_row_runs_write(GsRowRuns *runs, GsRowSorter *sorter);

/* Begin and end a run builder for the rows that follow. */
extern void gpusort_row_runs_begin_builder(GsRowRuns *runs);
extern void gpusort_row_runs_end_builder(GsRowRuns *runs);

/*
 * Remove the runs that this process has written, and forget the reason for them.  The
 * memory of a run builder is freed with 'context'.
 */
extern void gpusort_row_runs_end(GsRowRuns *runs);

#endif							/* GPUSORT_ROW_RUNS_H */
