/*-------------------------------------------------------------------------
 *
 * sorted_values.h
 *		The values of a group of an aggregate, which come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORTED_VALUES_H
#define GPUSORT_SORTED_VALUES_H

#include "fmgr.h"

/* NULL instead of this struct means that there are no values. */
typedef struct GsSortedValues GsSortedValues;

/*
 * Makes an empty list of values of a type.  It lives until the end of the group of the
 * aggregate that 'fcinfo' calls.
 */
extern GsSortedValues *gpusort_sorted_values_create(FunctionCallInfo fcinfo, Oid type);

/* Appends a value that is not NULL.  A value that is passed by reference is copied. */
extern void gpusort_sorted_values_add(FunctionCallInfo fcinfo,
									  GsSortedValues *sorted, Datum value);

extern int64 gpusort_sorted_values_count(const GsSortedValues *sorted);

/*
 * Returns the value at a position, from 0.  It is valid until the next call if it is passed by
 * reference.  Ascending positions are fastest.
 */
extern Datum gpusort_sorted_values_get(GsSortedValues *sorted, int64 position);

/* The same, but valid until the current memory context is reset. */
extern Datum gpusort_sorted_values_copy(GsSortedValues *sorted, int64 position);

/*
 * Frees the memory and the file of values that are passed by value.  The list cannot be used
 * any more.
 */
extern void gpusort_sorted_values_clear(GsSortedValues *sorted);

#endif							/* GPUSORT_SORTED_VALUES_H */
