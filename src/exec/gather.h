/*-------------------------------------------------------------------------
 *
 * gather.h
 *		Executes a Gather whose input returns no rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GATHER_H
#define GPUSORT_GATHER_H

#include "nodes/execnodes.h"

/*
 * Start the workers of a Gather, and execute its input in this process as well, if that takes
 * part.  Returns when this process is done, while workers may go on.  Returns false if it takes no
 * part.  Then all workers have started.
 */
extern bool gpusort_gather_start(GatherState *gather);

/* Wait for the workers, if there are any.  Their shared memory remains. */
extern void gpusort_gather_await(GatherState *gather);

#endif							/* GPUSORT_GATHER_H */
