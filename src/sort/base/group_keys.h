/*-------------------------------------------------------------------------
 *
 * group_keys.h
 *		The first sort keys of a row, to find out which other rows agree in them.
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

/* Does another row agree in them?  One has been kept. */
extern bool gpusort_group_keys_match(GsGroupKeys *group, Datum *values, bool *isnull);

#endif							/* GPUSORT_GROUP_KEYS_H */
