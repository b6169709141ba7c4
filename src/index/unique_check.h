/*-------------------------------------------------------------------------
 *
 * unique_check.h
 *		Sees to it that a unique index gets no live row twice.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIQUE_CHECK_H
#define GPUSORT_UNIQUE_CHECK_H

#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "key/key_plan.h"

typedef struct GsUniqueCheck GsUniqueCheck;

/* Prepare in the current memory context.  The keys must stay. */
extern GsUniqueCheck *gpusort_unique_check_create(Relation heap, Relation index,
												  const IndexInfo *info,
												  const GsSortKeys *keys);

/*
 * Look at the key columns of the next live row in the order of the index.
 * Raises stock PostgreSQL's error if they are equal to those of the live row
 * before; NULLs are, if the index says so.
 */
extern void gpusort_unique_check_row(GsUniqueCheck *check, const Datum *values,
									 const bool *isnull);

#endif							/* GPUSORT_UNIQUE_CHECK_H */
