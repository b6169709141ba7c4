/*-------------------------------------------------------------------------
 *
 * session_spec.h
 *		What a sort session is asked to do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SESSION_SPEC_H
#define GPUSORT_SESSION_SPEC_H

#include "access/tupdesc.h"

#include "key/key_plan.h"

typedef struct GsSessionSpec
{
	TupleDesc	tupdesc;		/* of the rows */
	GsSortKeys	keys;
	const GsKeyPlan *key_plan;	/* made from 'keys' */
	double		expected_rows;	/* the planner's estimate */
	bool		random_access;	/* will the cursor move but forward? */
} GsSessionSpec;

#endif							/* GPUSORT_SESSION_SPEC_H */
