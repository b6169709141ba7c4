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

/*
 * Determine what a plan that has been read returns again after ExecReScan().
 * 'subplans' is PlannedStmt.subplans of its statement.  The answer holds only
 * as long as no setting changes on which stable functions or the memory of
 * nodes depend.  The user of a cursor may change one between two FETCHes.
 */
extern GsInputRepeat gpusort_input_repeat(const Plan *plan,
										  const List *subplans);

#endif							/* GPUSORT_INPUT_REPEAT_H */
