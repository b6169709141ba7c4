/*-------------------------------------------------------------------------
 *
 * unique_check.h
 *		Verifies that no two live rows of a unique index are equal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIQUE_CHECK_H
#define GPUSORT_UNIQUE_CHECK_H

#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "key/key_plan.h"

typedef struct GsUniqueCheck GsUniqueCheck;

/* Create a check in the current memory context.  'keys' must stay valid. */
extern GsUniqueCheck *gpusort_unique_check_create(Relation heap, Relation index,
												  const IndexInfo *info,
												  const GsSortKeys *keys);

/*
 * Check the key columns of the next live row in index order.  Raises stock
 * PostgreSQL's error if they are equal to those of the previous live row.
 * NULLs are equal if the index is NULLS NOT DISTINCT.
 */
extern void gpusort_unique_check_row(GsUniqueCheck *check, const Datum *values,
									 const bool *isnull);

#endif							/* GPUSORT_UNIQUE_CHECK_H */
