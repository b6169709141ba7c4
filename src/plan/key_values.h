/*-------------------------------------------------------------------------
 *
 * key_values.h
 *		What the statistics of ANALYZE say of the values of sort keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_VALUES_H
#define GPUSORT_KEY_VALUES_H

#include "nodes/pathnodes.h"

/* Returns which part of the rows of 'rel' has the most common value of a sort key. */
extern double gpusort_key_values_common_part(PlannerInfo *root, const RelOptInfo *rel,
											 const PathKey *pathkey);

/*
 * Returns the sort keys of 'rows' rows of 'rel' in the order in which the first ones tell most rows
 * apart, so that a sort need not look at the others.  Nothing may ask for another order.
 */
extern List *gpusort_key_values_order(PlannerInfo *root, const RelOptInfo *rel, List *pathkeys,
									  double rows);

/* Returns the subquery that has most rows among the inputs of a set operation, or NULL. */
extern const RelOptInfo *gpusort_key_values_largest_input(PlannerInfo *root,
														  const RelOptInfo *rel);

#endif							/* GPUSORT_KEY_VALUES_H */
