/*-------------------------------------------------------------------------
 *
 * distinct_rows.h
 *		DISTINCT in an aggregate whose rows come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DISTINCT_ROWS_H
#define GPUSORT_DISTINCT_ROWS_H

#include "executor/nodeAgg.h"

/*
 * Make the transition function of an aggregate with DISTINCT skip rows that
 * are equal to the row before, within a group.  Allocates in the current
 * memory context, which must live as long as the execution.
 */
extern void gpusort_distinct_rows_connect(AggStatePerTrans pertrans);

#endif							/* GPUSORT_DISTINCT_ROWS_H */
