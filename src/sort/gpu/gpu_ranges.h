/*-------------------------------------------------------------------------
 *
 * gpu_ranges.h
 *		Ranges of the sorted rows of a GPU session, each of which one process reads.
 *
 * For sorts with spec->group_keys.  Each process is a client of the session, and reads the ranges
 * that it takes (memory/shared_ranges.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_RANGES_H
#define GPUSORT_GPU_RANGES_H

#include "sort/gpu/gpu_rows.h"
#include "sort/memory/shared_ranges.h"

typedef struct GsGpuRanges GsGpuRanges;

/*
 * Prepare to read ranges of 'rows', which are sorted, by that number of processes.  Must be
 * called with the same number in all of them.  All memory is that of 'rows'.
 */
extern GsGpuRanges *gpusort_gpu_ranges_create(const GsGpuRows *rows, const GsSortSpec *spec,
											  GsSharedRanges *shared, int processes);

/* Takes ranges.  It tells how many rows come next, but not where they are. */
extern GsRangeMaker *gpusort_gpu_ranges_maker(const GsGpuRanges *ranges);

/* Returns the position in the session of the first of the rows that the maker has told of. */
extern int64 gpusort_gpu_ranges_position(const GsGpuRanges *ranges);

#endif							/* GPUSORT_GPU_RANGES_H */
