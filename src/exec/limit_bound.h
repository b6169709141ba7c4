/*-------------------------------------------------------------------------
 *
 * limit_bound.h
 *		How many of a sort's rows a Limit above it wants.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIMIT_BOUND_H
#define GPUSORT_LIMIT_BOUND_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/* A bound that says all rows may be wanted. */
#define GPUSORT_NO_BOUND		(-1.0)

/* A bound that will be known when the query runs. */
#define GPUSORT_UNKNOWN_BOUND	(-2.0)

/*
 * The rows that LIMIT and OFFSET, of a Query or of a Limit, need of their
 * input, as far as that is known before the execution.
 */
extern double gpusort_limit_bound_estimate(const Node *count,
										   const Node *offset,
										   LimitOption option);

/* Does the executor hand a bound on a node's rows on to its children? */
extern bool gpusort_limit_bound_passes(const Plan *plan);

/*
 * The rows that a Limit needs of its input, or -1 for all of them.  The Limit
 * has begun to read it, or to rescan it.
 */
extern int64 gpusort_limit_bound_now(const LimitState *limit);

/*
 * Is it better to keep so few of the rows expected in a heap than to sort
 * all?  No, if the bound is none or unknown.
 */
extern bool gpusort_limit_bound_is_small(double bound, double rows);

#endif							/* GPUSORT_LIMIT_BOUND_H */
