/*-------------------------------------------------------------------------
 *
 * percentiles.h
 *		Percentiles and the mode of values that come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PERCENTILES_H
#define GPUSORT_PERCENTILES_H

#include "executor/nodeAgg.h"
#include "nodes/primnodes.h"

/* Can an ordered-set aggregate with these functions be computed here? */
extern bool gpusort_percentiles_supports(const Aggref *aggref,
										 Oid transition_oid, Oid final_oid);

/*
 * Replace the functions of aggregates that gpusort_percentiles_supports(), and
 * whose values will come in order.
 */
extern void gpusort_percentiles_connect_transition(AggStatePerTrans pertrans);
extern void gpusort_percentiles_connect_final(AggStatePerAgg peragg);

#endif							/* GPUSORT_PERCENTILES_H */
