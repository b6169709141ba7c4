/*-------------------------------------------------------------------------
 *
 * row_runs.h
 *		Writes rows of a sort to disk as sorted runs, and shares runs.
 *
 * Runs come into existence in three ways.  In an overflow, the rows of row sorters
 * are written as runs, and a run builder makes runs of the other rows.  Runs that
 * other processes share are added to our runs, or are merged with the rows of a row
 * sorter.  Finally, a process with spec->target shares its own rows as a single run.
 *
 * The struct is public because callers may read its members, and may call the functions of
 * 'external' that merge and read runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_RUNS_H
#define GPUSORT_ROW_RUNS_H

#include "nodes/pg_list.h"

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
	GsRunBuilder *builder;		/* for rows after an overflow, or NULL */
	GsFallback	overflow;		/* its reason, here or in another process, or
								 * GS_FALLBACK_NONE */
	GsRunSet   *set;			/* where other processes write, or NULL */
	bool		has_own_target; /* do we write there, too? */
	GsRunTarget own_target;
	Size		reader_bytes;	/* memory for reading their runs */
	int			nimported;		/* number of their runs */
	GsSharedRun shared;			/* with spec->target: the run written */
} GsRowRuns;

/*
 * Initialize, without any runs.  Their memory will be in 'context' or its children.
 * 'spec' and what it points to must stay valid.
 */
extern void gpusort_row_runs_init(GsRowRuns *runs, const GsSortSpec *spec,
								  MemoryContext context);

/*
 * Prepare to write runs, because the rows do not fit in memory.  Counts the reason,
 * except in a worker, for which the leader does that.
 */
extern void gpusort_row_runs_begin_overflow(GsRowRuns *runs, GsFallback reason);

/* The same for rows that would fit, if those of other processes do not. */
extern void gpusort_row_runs_begin(GsRowRuns *runs);

/* Write runs to a file of this process alone, and remove those that it has, which have been read. */
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
 * Create the set to which 'nprocesses' other processes write runs, and reserve the
 * memory for reading them in the budget of the row sorter.  If they are 'expected' to
 * write all rows, returns false if temp_file_limit does not allow that.  If it is
 * 'shared', this process writes its runs to the set, too.
 */
extern bool gpusort_row_runs_make_set(GsRowRuns *runs, GsRowSorter *sorter,
									  int nprocesses, bool expected, bool shared,
									  GsRunSetHandle *handle);

/* Reserve that memory in the budget of a row sorter that replaces the first one. */
extern void gpusort_row_runs_reserve_readers(const GsRowRuns *runs,
											 GsRowSorter *sorter);

/*
 * Add runs of other processes, GsSharedRuns, to our runs, or to the sorted rows of the row
 * sorter.  Returns how many rows these processes have dropped.
 */
extern int64 gpusort_row_runs_import(GsRowRuns *runs, GsRowSorter *sorter, List *imports);

/*
 * With spec->target: share the rows of all runs or, if there are no runs, the sorted
 * rows of the row sorter.  They are written as a single run, of at most spec->bound
 * rows.
 */
extern void gpusort_row_runs_share(GsRowRuns *runs, GsRowSorter *sorter);

/*
 * Remove the runs that this process has written, and forget the reason for them.  The
 * memory of a run builder is freed with 'context'.
 */
extern void gpusort_row_runs_end(GsRowRuns *runs);

#endif							/* GPUSORT_ROW_RUNS_H */
