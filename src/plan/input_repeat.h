/*-------------------------------------------------------------------------
 *
 * input_repeat.h
 *		Determines whether the input of a sort can be read a second time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_REPEAT_H
#define GPUSORT_INPUT_REPEAT_H

#include "nodes/plannodes.h"

#include "sort/base/sort_spec.h"

/* The subplans of a statement, which all of its sorts have in common. */
typedef struct GsSubplans
{
	List	   *plans;			/* PlannedStmt.subplans */
	bool		judged;
	bool		keep_order;		/* if so: do they return the same rows in the
								 * same order each time? */
} GsSubplans;

/*
 * Determine what a plan that has been read returns again after ExecReScan().
 * The sorts below it must have been judged before, or not be taken over.  The answer holds only
 * as long as no setting changes on which stable functions or the memory of
 * nodes depend.  The user of a cursor may change one between two FETCHes.
 */
extern GsInputRepeat gpusort_input_repeat(const Plan *plan,
										  GsSubplans *subplans);

#endif							/* GPUSORT_INPUT_REPEAT_H */
