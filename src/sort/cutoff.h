/*-------------------------------------------------------------------------
 *
 * cutoff.h
 *		The last of the rows that a Limit wants, as far as they are known.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CUTOFF_H
#define GPUSORT_CUTOFF_H

#include "executor/tuptable.h"

#include "sort/base/sort_spec.h"

typedef struct GsCutoff GsCutoff;

/*
 * Make a cutoff in the current memory context, which is also what frees it.  It
 * has to be set before it is asked.  What 'spec' points to must stay.
 */
extern GsCutoff *gpusort_cutoff_create(const GsSortSpec *spec);

/*
 * Set the cutoff to a row, whose columns are values[attno - 1] and
 * isnull[attno - 1].  Its sort keys are copied.  Returns false, and leaves the
 * cutoff as it was, if there is no memory for them.
 */
extern bool gpusort_cutoff_set(GsCutoff *cutoff, const Datum *values,
							   const bool *isnull);

/*
 * Does a row that arrives later come behind the cutoff?  So does one with equal
 * keys.  Reads no columns of the slot behind the last sort key.
 */
extern bool gpusort_cutoff_drops(GsCutoff *cutoff, TupleTableSlot *slot);

#endif							/* GPUSORT_CUTOFF_H */
