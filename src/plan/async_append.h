/*-------------------------------------------------------------------------
 *
 * async_append.h
 *		Tells whether an Append can ask several foreign servers at the same time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ASYNC_APPEND_H
#define GPUSORT_ASYNC_APPEND_H

#include "nodes/pathnodes.h"

/* Is this an Append that scans tables of several servers asynchronously? */
extern bool gpusort_async_append_check(const Path *path);

#endif							/* GPUSORT_ASYNC_APPEND_H */
