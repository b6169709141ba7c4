/*-------------------------------------------------------------------------
 *
 * limit_bound.h
 *		Determines how many of a sort's rows a Limit above it wants.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIMIT_BOUND_H
#define GPUSORT_LIMIT_BOUND_H

#include "nodes/plannodes.h"

/* The value of a bound if all rows may be wanted. */
#define GPUSORT_NO_BOUND		(-1.0)

/* The value of a bound that will be known only at execution. */
#define GPUSORT_UNKNOWN_BOUND	(-2.0)

/*
 * Returns how many rows LIMIT and OFFSET, of a Query or of a Limit, need of
 * their input, as far as that is known before execution.
 */
extern double gpusort_limit_bound_estimate(const Node *count,
										   const Node *offset,
										   LimitOption option);

/*
 * Does the executor pass a bound on a node's rows on to the node's children?
 */
extern bool gpusort_limit_bound_passes(const Plan *plan);

/* Called once by _PG_init(). */
extern void gpusort_limit_bound_init(void);

#endif							/* GPUSORT_LIMIT_BOUND_H */
