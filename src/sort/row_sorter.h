/*-------------------------------------------------------------------------
 *
 * row_sorter.h
 *		Sorts rows without using the disk, on a GPU or in the backend's memory.
 *
 * A row sorter has either a GPU session or a memory sort, to which rows are added
 * until one does not fit.
 *
 * The struct is public because put() and get_gpu(), which are called for each row, are
 * inline.  An input sort also accesses the GPU session and the memory sort directly,
 * to read rows and to move them from one row sorter to another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_SORTER_H
#define GPUSORT_ROW_SORTER_H

#include "executor/tuptable.h"

#include "sort/base/rows_in_place.h"
#include "sort/base/sort_spec.h"
#include "sort/gpu/gpu_session.h"
#include "sort/gpu/gpu_sorted_rows.h"
#include "sort/gpu/gpu_ties.h"
#include "sort/memory/memory_sort.h"
#include "sort/team.h"

typedef struct GsRowSorter
{
	const GsSortSpec *spec;
	MemoryContext parent;

	/* All NULL if the row sorter is empty. */
	MemoryContext context;		/* for what follows */
	GsGpuSession *gpu;
	GsGpuTies  *ties;			/* of 'gpu' after sorting, unless keys are
								 * exact */
	GsMemorySort *cpu;
} GsRowSorter;

/*
 * Initialize an empty row sorter, which refuses rows.  Its memory will be in a child
 * of 'context'.  'spec' and what it points to must stay valid.
 */
extern void gpusort_row_sorter_init(GsRowSorter *sorter,
									const GsSortSpec *spec,
									MemoryContext context);

/*
 * Begin a GPU session, or a memory sort, in an empty row sorter.  The former returns
 * false and sets *reason if no GPU is available.
 */
extern bool gpusort_row_sorter_begin_gpu(GsRowSorter *sorter,
										 GsFallback *reason);
extern void gpusort_row_sorter_begin_cpu(GsRowSorter *sorter);

/* Begin a memory sort whose rows will be sorted together with those of others. */
extern void gpusort_row_sorter_begin_shared(GsRowSorter *sorter,
											GsParticipant *participant);

/*
 * Returns why a row was refused or rows were lost; GS_FALLBACK_NONE if there is a GPU
 * session that is not the reason.
 */
extern GsFallback gpusort_row_sorter_failure(const GsRowSorter *sorter);

/*
 * Sort the rows.  Returns false if the rows of a GPU session are lost, or if there is
 * not enough memory to sort those of a memory sort, which are then still there.
 */
extern bool gpusort_row_sorter_sort(GsRowSorter *sorter);

/* After sorting: the number of rows that can be read by position. */
extern int64 gpusort_row_sorter_count(const GsRowSorter *sorter);

/*
 * After sorting: can the rows of the GPU session from a position to the one read last be read
 * again about as fast as rows in memory?
 */
extern bool gpusort_row_sorter_is_near_gpu(const GsRowSorter *sorter, int64 position);

/* See gpusort_gpu_session_in_place(). */
extern bool gpusort_row_sorter_in_place_gpu(const GsRowSorter *sorter, int64 position,
											GsRowsInPlace *in_place);

/* Make the row sorter empty. */
extern void gpusort_row_sorter_end(GsRowSorter *sorter);

/*
 * Add the row in a slot, all of whose columns must have been deformed.  Returns false if
 * the row sorter is empty or refuses the row, for which gpusort_row_sorter_failure()
 * returns the reason.
 */
static inline bool
gpusort_row_sorter_put(GsRowSorter *sorter, TupleTableSlot *slot)
{
	if (sorter->gpu != NULL)
		return gpusort_gpu_session_put(sorter->gpu, slot->tts_values,
									   slot->tts_isnull);
	return sorter->cpu != NULL &&
		gpusort_memory_sort_put(sorter->cpu, slot->tts_values,
								slot->tts_isnull);
}

/*
 * After sorting: read the row at a position of the GPU session as
 * gpusort_gpu_session_get() does, except that ties are in the order of the comparators.
 * Returns false if the rows are lost.
 */
static inline bool
gpusort_row_sorter_get_gpu(GsRowSorter *sorter, int64 position,
						   Datum *values, bool *isnull)
{
	if (unlikely(sorter->ties != NULL))
		return gpusort_gpu_ties_get(sorter->ties, position, values, isnull);
	return gpusort_gpu_session_get(sorter->gpu, position, values, isnull);
}

#endif							/* GPUSORT_ROW_SORTER_H */
