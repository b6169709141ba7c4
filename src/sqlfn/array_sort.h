/*-------------------------------------------------------------------------
 *
 * array_sort.h
 *		What calls of the SQL functions that sort elements have in common.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_SORT_H
#define GPUSORT_ARRAY_SORT_H

#include "fmgr.h"

#include "sqlfn/array_elements.h"

/* The direction of a sort, from the arguments of a call. */
typedef struct GsSortDirection
{
	bool		descending;
	bool		nulls_first;
} GsSortDirection;

/*
 * Read the argument 'descending', whose number is given, and the next one,
 * 'nulls_first'.  Arguments that the function does not have are the defaults.
 * Returns false if 'descending' is NULL.
 */
extern bool gpusort_sort_call_direction(FunctionCallInfo fcinfo, int argno,
										GsSortDirection *direction);

/*
 * Begin a sort in a new memory context, which is for everything except the
 * result.  Returns the caller's context, to be passed to gpusort_sort_call_end().
 */
extern MemoryContext gpusort_sort_call_begin(void);
extern void gpusort_sort_call_end(MemoryContext caller);

/* Make the array that has this order, in the memory context 'target'. */
extern ArrayType *gpusort_sort_call_rearrange(const GsArrayElements *elements,
											  const uint64 *order,
											  MemoryContext target);

/*
 * Make the array of the sorted elements, of which there must be at least two, in the
 * memory context 'target'.
 */
extern ArrayType *gpusort_sort_call_sort(FunctionCallInfo fcinfo,
										 const GsArrayElements *elements,
										 const GsSortDirection *direction,
										 MemoryContext target);

/*
 * Make the array of the elements' positions in sorted order, counted from 1, in the
 * memory context 'target'.
 */
extern ArrayType *gpusort_sort_call_positions(FunctionCallInfo fcinfo,
											  const GsArrayElements *elements,
											  const GsSortDirection *direction,
											  MemoryContext target);

#endif							/* GPUSORT_ARRAY_SORT_H */
