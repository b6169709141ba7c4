/*-------------------------------------------------------------------------
 *
 * cpu_sort.h
 *		Sorts rows without a GPU, in memory or, if they do not fit, on disk.
 *
 * Rows are put into a memory sort until it refuses one.  Then begin_runs() says that they go to
 * disk, and write_rows() writes them as a sorted run.  From then on, add() collects rows in memory,
 * and writes them as another run when that is full.  After the last row, sort() sorts what is in
 * memory, or writes it as the last run.  perform() merges the runs.
 *
 * The struct is public because callers may read its members, call the functions that read 'rows',
 * write runs to 'file', and set 'target' before there are runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CPU_SORT_H
#define GPUSORT_CPU_SORT_H

#include "sort/base/sort_spec.h"
#include "sort/disk/run_merge.h"
#include "sort/disk/sorted_run.h"
#include "sort/memory/memory_sort.h"
#include "sort/memory/shared_sort.h"

typedef struct GsCpuSort
{
	const GsSortSpec *spec;
	MemoryContext context;
	GsReason	overflow;		/* why rows are on disk, here or in another
								 * process, or GS_REASON_NONE */

	/* Rows in memory. */
	MemoryContext rows_context; /* for 'rows' */
	GsMemorySort *rows;			/* NULL if no rows are in memory */

	/*
	 * Runs, in the order in which their rows arrived.  Merging takes up to
	 * 'limit' bytes.
	 */
	const GsRunTarget *target;	/* where runs are written that other processes
								 * read; or NULL, for a file of its own */
	GsRunFile  *file;			/* NULL if there are no runs */
	GsRowFormat *format;
	GsSortSpec	run_spec;		/* of the rows in memory that become a run */
	Size		limit;
	Size		rows_limit;		/* of run_spec; less if the system has less */
	Size		reader_bytes;	/* memory to read a run */
	int			merge_order;	/* number of runs merged at a time */
	List	   *runs;			/* of GsSortedRun */
	int64		nrows;			/* in runs */

	/* After performing, there is either a merge or a cursor. */
	MemoryContext merge_context;
	GsRunMerge *merge;
	int64		next_position;	/* of the next row of the merge */
	GsRunCursor *cursor;
} GsCpuSort;

/*
 * Initialize, without rows.  Memory will be in children of 'context'.  'spec' and what it points
 * to must stay valid.
 */
extern void gpusort_cpu_sort_init(GsCpuSort *sort, const GsSortSpec *spec, MemoryContext context);

/*
 * Begin rows in memory, when there are neither rows nor runs: in memory that processes share if
 * 'member' is not NULL.
 */
extern void gpusort_cpu_sort_begin_rows(GsCpuSort *sort, GsSharedMember *member);

/*
 * Put a row into memory.  Returns false if there are runs, so that gpusort_cpu_sort_add() must be
 * called, or if there is no room.  Memory that has refused a row takes no other one.
 */
static inline bool
gpusort_cpu_sort_put(GsCpuSort *sort, const Datum *values, const bool *isnull)
{
	return sort->file == NULL && gpusort_memory_sort_put(sort->rows, values, isnull);
}

/* Sort the rows in memory.  Returns false, and changes nothing, if the system has none left. */
extern bool gpusort_cpu_sort_sort_rows(GsCpuSort *sort);

/*
 * Let rows go to disk.  The reason is counted by the process that counts the sort.
 * It is GS_REASON_NONE if only rows of other processes do not fit in memory.
 */
extern void gpusort_cpu_sort_begin_runs(GsCpuSort *sort, GsReason reason);

/*
 * Write the rows in memory, if any, as a run, or as several if there is not enough memory to sort
 * all of them at once.  Checks for interrupts.
 */
extern void gpusort_cpu_sort_write_rows(GsCpuSort *sort);

/* Add a row that will be in a run.  Writes runs when memory is full. */
extern void gpusort_cpu_sort_add(GsCpuSort *sort, const Datum *values, const bool *isnull);

/* All of that: the rows in memory become a run, as do those that are added. */
extern void gpusort_cpu_sort_overflow(GsCpuSort *sort, GsReason reason);

/*
 * After the last row: sort the rows in memory.  If there are runs, or the system has no memory
 * left, they become runs instead.
 */
extern void gpusort_cpu_sort_sort(GsCpuSort *sort);

/*
 * After that: merge the runs, if any, as far as is necessary to read rows: except for the last
 * merge if the rows will be read only once and forward.
 */
extern void gpusort_cpu_sort_perform(GsCpuSort *sort);

/*
 * The number of rows; and the row at a position, counted from 0.  If there are runs, positions must
 * ascend without random_access, and values passed by reference are valid until the next call.
 */
extern int64 gpusort_cpu_sort_count(const GsCpuSort *sort);
extern void gpusort_cpu_sort_get(GsCpuSort *sort, int64 position, Datum *values, bool *isnull);

/*
 * Insert the run that has been written to sort->file: among ties, the rows of runs with lower
 * indexes come first.
 */
extern void gpusort_cpu_sort_end_run(GsCpuSort *sort, int index);

/*
 * Merge some runs if there are too many, which changes their number, or until there are at most
 * 'most'.  Call this between runs, while the memory allowed is not used for anything else.
 */
extern void gpusort_cpu_sort_limit_runs(GsCpuSort *sort);
extern void gpusort_cpu_sort_reduce_runs(GsCpuSort *sort, int most);

/*
 * Take the memory sort out, and *context, which the caller deletes.  Then new rows can be begun.
 */
extern GsMemorySort *gpusort_cpu_sort_detach_rows(GsCpuSort *sort, MemoryContext *context);

/*
 * Begin runs in a file of this process alone, and forget those before.  Those who still read them
 * have opened their file themselves.
 */
extern void gpusort_cpu_sort_begin_anew(GsCpuSort *sort);

/* Another process has written runs for this reason. */
extern void gpusort_cpu_sort_note_overflow(GsCpuSort *sort, GsReason reason);

/* Remove all rows and runs, and forget the reason for the runs. */
extern void gpusort_cpu_sort_end(GsCpuSort *sort);

#endif							/* GPUSORT_CPU_SORT_H */
