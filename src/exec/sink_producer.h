/*-------------------------------------------------------------------------
 *
 * sink_producer.h
 *		Puts a process's rows into the GPU session of a parallel sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SINK_PRODUCER_H
#define GPUSORT_SINK_PRODUCER_H

#include "exec/sink_rows.h"

/*
 * Read all rows, and put them into the session.  Those for which the GPU has no room become runs.
 * 'context' is for memory that is needed until the function returns.
 */
extern void gpusort_sink_producer_put(GsSinkRows *rows, MemoryContext context);

#endif							/* GPUSORT_SINK_PRODUCER_H */
