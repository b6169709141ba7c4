/*-------------------------------------------------------------------------
 *
 * group_keys.h
 *		The first sort keys of a row, with which those of others are compared.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GROUP_KEYS_H
#define GPUSORT_GROUP_KEYS_H

#include "sort/base/sort_spec.h"

typedef struct GsGroupKeys GsGroupKeys;

/* Prepare to keep the first 'nkeys' sort keys of rows, in the current memory context. */
extern GsGroupKeys *gpusort_group_keys_create(const GsSortSpec *spec, int nkeys);

/* Keep those of a row, whose columns these are.  If it is a whole tuple, reads its sort keys. */
extern void gpusort_group_keys_keep(GsGroupKeys *group, Datum *values, bool *isnull);

/* Returns what is kept, by sort key. */
extern void gpusort_group_keys_get(const GsGroupKeys *group, Datum **keys, bool **isnull);

/*
 * When a row has been kept: does another one agree with it in these keys?  If it is a whole tuple,
 * reads its sort keys.
 */
extern bool gpusort_group_keys_match(GsGroupKeys *group, Datum *values, bool *isnull);

/*
 * Likewise, but compare only from sort key number 'first' on, and return a number less than, equal
 * to or greater than 0, as the other row sorts.  Its sort keys must have been read.
 */
extern int	gpusort_group_keys_compare(GsGroupKeys *group, int first, const Datum *values,
									   const bool *isnull);

#endif							/* GPUSORT_GROUP_KEYS_H */
