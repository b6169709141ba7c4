/*-------------------------------------------------------------------------
 *
 * kept_copy.h
 *		The copy that a sort keeps of its rows on a GPU, in case that is lost.
 *
 * A copy is kept of input that cannot be read a second time or, depending on
 * pg_gpusort.on_gpu_loss, that comes in another order then.  row_copy.h has the rows.
 * 'sorter' is the row sorter of the sort, which has the GPU sessions or takes the rows out
 * of the copy.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEPT_COPY_H
#define GPUSORT_KEPT_COPY_H

#include "executor/tuptable.h"

#include "sort/disk/row_copy.h"
#include "sort/disk/shared_run.h"
#include "sort/row_sorter.h"

typedef struct GsKeptCopy
{
	GsRowCopy  *rows;			/* or NULL: there is no copy */
	MemoryContext set_context;	/* of the set with copies of other processes,
								 * or NULL */
	GsRunSet   *set;
	TupleTableSlot *slot;		/* not NULL while rows are taken out */
	Size		reserved;		/* memory of the copy that the memory sort
								 * leaves alone */
} GsKeptCopy;

/* Should rows of a sort be copied, if they go to a GPU? */
extern bool gpusort_kept_copy_is_wanted(const GsSortSpec *spec);

/* Make the GPU session, which is new, copy its rows. */
extern void gpusort_kept_copy_begin(GsKeptCopy *copy, GsRowSorter *sorter);

extern void gpusort_kept_copy_end(GsKeptCopy *copy);

/*
 * Make a set of files for the copies of several processes, and get its handle.  Returns
 * false if they should not copy their rows.  When they have ended, import() makes one copy
 * of them.
 */
extern bool gpusort_kept_copy_share(GsKeptCopy *copy, GsRowSorter *sorter,
									GsRunSetHandle *handle);
extern void gpusort_kept_copy_import(GsKeptCopy *copy, GsRowSorter *sorter);

/* Leave the memory of the copy to the row sorter and to runs. */
extern void gpusort_kept_copy_leave_memory(GsKeptCopy *copy, GsRowSorter *sorter);

/* Add a row that the GPU session has not taken.  The session is lost. */
extern void gpusort_kept_copy_add_refused(GsKeptCopy *copy, GsRowSorter *sorter,
										  TupleTableSlot *slot);

/*
 * Begin to take the rows out of the copy, which go to the memory sort or, unless
 * 'in_memory', to runs.  take() returns the next one; after the last one, it ends the copy
 * and returns NULL.
 */
extern void gpusort_kept_copy_begin_taking(GsKeptCopy *copy, GsRowSorter *sorter,
										   bool in_memory);
extern TupleTableSlot *gpusort_kept_copy_take(GsKeptCopy *copy, GsRowSorter *sorter);

#endif							/* GPUSORT_KEPT_COPY_H */
