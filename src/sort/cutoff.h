/*-------------------------------------------------------------------------
 *
 * cutoff.h
 *		Recognizes rows that a Limit does not want as they arrive.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CUTOFF_H
#define GPUSORT_CUTOFF_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

typedef struct GsCutoff GsCutoff;

/*
 * Create a cutoff in the current memory context.  It is freed with that context.  It
 * must be set before it is used.  'spec' and what it points to must stay valid.
 */
extern GsCutoff *gpusort_cutoff_create(const GsSortSpec *spec);

/*
 * Set the cutoff to a row, whose columns are values[attno - 1] and
 * isnull[attno - 1].  Its sort keys are copied.  Returns false, and does not change
 * the cutoff, if there is not enough memory for them.
 */
extern bool gpusort_cutoff_set(GsCutoff *cutoff, const Datum *values,
							   const bool *isnull);

/*
 * Can a row be dropped, because it sorts after the cutoff?  That includes a row with
 * equal keys, since it arrived later.  Deforms the slot only up to the last sort key.
 */
extern bool gpusort_cutoff_drops(GsCutoff *cutoff, TupleTableSlot *slot);

#endif							/* GPUSORT_CUTOFF_H */
