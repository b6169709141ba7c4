/*-------------------------------------------------------------------------
 *
 * row_sorter.h
 *		Holds the rows of a sort in memory: a GPU's or the backend's own.
 *
 * A sorter has a GPU session or a memory sort, which take rows until one does
 * not fit.  With pg_gpusort.debug_stock_ties it has both, which take each row;
 * sorted, they must have the same rows in the same order, bit for bit, and rows
 * are returned from the memory sort.
 *
 * The struct is open since each row of a sort passes put() or get_gpu(), which
 * are inline.  An input sort also calls the sessions themselves: it reads each row
 * of a memory sort, and moves rows from one session to another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_SORTER_H
#define GPUSORT_ROW_SORTER_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"
#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_ties.h"
#include "sort/memory/memory_sort.h"

typedef struct GsRowSorter
{
	const GsSortSpec *spec;
	MemoryContext parent;
	bool		stock_ties;		/* have both sessions, if there is a GPU? */

	/* NULL if there are none. */
	MemoryContext context;		/* of what follows */
	GsGpuSession *gpu;
	GsGpuTies  *gpu_ties;		/* reads 'gpu' once it is sorted, if need be */
	GsMemorySort *cpu;
} GsRowSorter;

/*
 * Make a sorter without sessions, which takes no row.  Their memory will be below
 * 'context'.  What 'spec' points to must stay.
 */
extern void gpusort_row_sorter_init(GsRowSorter *sorter,
									const GsSortSpec *spec,
									MemoryContext context);

/*
 * Begin a session, or both, in a sorter without sessions.  The first one returns
 * false, and sets *reason, if there is no GPU to be had.
 */
extern bool gpusort_row_sorter_begin_gpu(GsRowSorter *sorter,
										 GsFallback *reason);
extern void gpusort_row_sorter_begin_cpu(GsRowSorter *sorter);

/* Have the session refuse rows when there are about as many as 'rows'. */
extern void gpusort_row_sorter_set_capacity(GsRowSorter *sorter, double rows);

/*
 * After a row was refused, or rows were lost: why.  GS_FALLBACK_NONE if a GPU
 * session is not the reason.
 */
extern GsFallback gpusort_row_sorter_failure(const GsRowSorter *sorter);

/*
 * Sort.  Returns false if the rows of a GPU session are lost, or if there is no
 * memory to sort those of a memory sort, which are still there then.
 */
extern bool gpusort_row_sorter_sort(GsRowSorter *sorter);

/*
 * After sorting, with 'stock_ties': check that both sessions agree, and give the
 * rows to be returned the order of stock PostgreSQL among ties.  Returns false if
 * the rows of the GPU session are lost.
 */
extern bool gpusort_row_sorter_apply_stock_ties(GsRowSorter *sorter);

/* After sorting: rows that can be read by their positions. */
extern int64 gpusort_row_sorter_count(const GsRowSorter *sorter);

/* End the sessions, if there are any. */
extern void gpusort_row_sorter_end(GsRowSorter *sorter);

/*
 * Add the row of a slot that has all its columns.  Returns false if there is no
 * session, or the row is not possible: gpusort_row_sorter_failure() says why.
 */
static inline bool
gpusort_row_sorter_put(GsRowSorter *sorter, TupleTableSlot *slot)
{
	if (sorter->gpu != NULL)
	{
		if (!gpusort_gpu_session_put(sorter->gpu, slot->tts_values,
									 slot->tts_isnull))
			return false;
		if (likely(sorter->cpu == NULL))
			return true;
	}
	return sorter->cpu != NULL &&
		gpusort_memory_sort_put(sorter->cpu, slot->tts_values,
								slot->tts_isnull);
}

/*
 * After sorting: read the row at a position of the GPU session, from 0, as
 * gpusort_gpu_session_get() does; but rows with equal keys in the order of their
 * comparators.  Returns false if the rows are lost.
 */
static inline bool
gpusort_row_sorter_get_gpu(GsRowSorter *sorter, int64 position,
						   Datum *values, bool *isnull)
{
	if (unlikely(sorter->gpu_ties != NULL))
		return gpusort_gpu_ties_get(sorter->gpu_ties, position, values, isnull);
	return gpusort_gpu_session_get(sorter->gpu, position, values, isnull);
}

#endif							/* GPUSORT_ROW_SORTER_H */
