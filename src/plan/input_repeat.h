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

/* The subplans of a statement, which all of its sorts have in common. */
typedef struct GsSubplans
{
	List	   *plans;			/* PlannedStmt.subplans */
	bool		judged;
	bool		keep_order;		/* if so: do they return the same rows in the
								 * same order each time? */
} GsSubplans;

/*
 * Does a plan that has been read return the same rows again after ExecReScan(), in any
 * order?  The sorts below it must have been judged before, or not be taken over.
 */
extern bool gpusort_input_is_repeatable(const Plan *plan, GsSubplans *subplans);

#endif							/* GPUSORT_INPUT_REPEAT_H */
