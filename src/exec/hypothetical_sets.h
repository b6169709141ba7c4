/*-------------------------------------------------------------------------
 *
 * hypothetical_sets.h
 *		Hypothetical-set aggregates that count rows instead of sorting them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HYPOTHETICAL_SETS_H
#define GPUSORT_HYPOTHETICAL_SETS_H

#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

/*
 * Can an aggregate with these functions count its rows?  'in_order' says whether they
 * come in its order, which dense_rank() needs.
 */
extern bool gpusort_hypothetical_sets_supports(const Aggref *aggref,
											   Oid transition_oid,
											   Oid final_oid, bool in_order);

/*
 * Replace the functions of the only aggregate with this transition state, which must be
 * supported.  The current memory context must live as long as the execution.
 */
extern void gpusort_hypothetical_sets_connect(AggState *state, int transno);

#endif							/* GPUSORT_HYPOTHETICAL_SETS_H */
