/*-------------------------------------------------------------------------
 *
 * input_repeat.h
 *		Can the input of a sort be read a second time?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_REPEAT_H
#define GPUSORT_INPUT_REPEAT_H

#include "nodes/plannodes.h"

#include "sort/base/session_spec.h"

/*
 * Judge what ExecReScan() gives of a plan that has been read, in a statement
 * with the given PlannedStmt.subplans.  The answer holds as long as no setting
 * changes in between, on which stable functions and the memory of nodes depend:
 * a cursor's user may change one between two FETCHes.
 */
extern GsInputRepeat gpusort_input_repeat(const Plan *plan,
										  const List *subplans);

#endif							/* GPUSORT_INPUT_REPEAT_H */
