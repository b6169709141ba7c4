/*-------------------------------------------------------------------------
 *
 * gpusort_private.h
 *		What the plan nodes GpuSort and GpuSortSink keep in custom_private.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GPUSORT_PRIVATE_H
#define GPUSORT_GPUSORT_PRIVATE_H

#include "nodes/plannodes.h"

#include "sort/base/session_spec.h"

/*
 * Make custom_private of a node that sorts as 'sort' does, of whose input rows
 * 'repeat' is known.
 */
extern List *gpusort_private_make(const Sort *sort, GsInputRepeat repeat);

/* Can the input of a GpuSort node be read a second time? */
extern GsInputRepeat gpusort_private_repeat(const CustomScan *gpusort);

/* The sort keys of a Sort, GpuSort or GpuSortSink; they point into the node. */
extern GsSortKeys gpusort_private_keys_of_sort(const Sort *sort);
extern GsSortKeys gpusort_private_keys(const CustomScan *gpusort);

#endif							/* GPUSORT_GPUSORT_PRIVATE_H */
