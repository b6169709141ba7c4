/*-------------------------------------------------------------------------
 *
 * gpu_run_merge.h
 *		Merges sorted runs by sorting one range of their rows after another on a GPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPU_RUN_MERGE_H
#define GPUSORT_GPU_RUN_MERGE_H

#include "sort/base/sort_spec.h"
#include "sort/disk/external_sort.h"

typedef struct GsGpuRunMerge GsGpuRunMerge;

/*
 * Begin to merge the runs of a sort, in the current memory context.  They are indexed, and
 * gpusort_external_complete() has been called.  A session of a GPU has held 'batch_rows' of
 * the rows.  'spec' and 'external' must stay valid.
 */
extern GsGpuRunMerge *gpusort_gpu_run_merge_begin(const GsSortSpec *spec,
												  const GsExternalSort *external,
												  int64 batch_rows);

/*
 * Read the row at a position, counted from 0.  Positions must ascend.  Values passed by
 * reference are valid until the next call.  A range for which there is no GPU, or which is lost
 * with one, is merged on the CPU.
 */
extern void gpusort_gpu_run_merge_get(GsGpuRunMerge *merge, int64 position,
									  Datum *values, bool *isnull);

/* The number of ranges that a GPU has sorted so far. */
extern int	gpusort_gpu_run_merge_ranges(const GsGpuRunMerge *merge);

/* End reading.  The end of the memory context closes the GPU session. */
extern void gpusort_gpu_run_merge_end(GsGpuRunMerge *merge);

#endif							/* GPUSORT_GPU_RUN_MERGE_H */
