/*-------------------------------------------------------------------------
 *
 * wrong_order.h
 *		Leaves an index to PostgreSQL whose rows or keys are not in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WRONG_ORDER_H
#define GPUSORT_WRONG_ORDER_H

#include "utils/rel.h"

/* Empty the file, as PostgreSQL's build wants to find it. */
extern void gpusort_wrong_order_truncate(Relation index);

/*
 * Warn that PostgreSQL builds the index.  That is more than a reason to be counted: indexes that
 * were built before should be looked at.  'encoding' describes what the rows or keys were
 * sorted by.
 */
extern void gpusort_wrong_order_warn(Relation index, const char *encoding);

#endif							/* GPUSORT_WRONG_ORDER_H */
