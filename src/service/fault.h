/*-------------------------------------------------------------------------
 *
 * fault.h
 *		Faults on purpose, for tests: of the GPU service, and of host memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FAULT_H
#define GPUSORT_FAULT_H

#include "service/service_shmem.h"

/* Where the device process can be made to fail; or a backend, at GS_FAULT_HOST. */
typedef enum GsFaultPoint
{
	GS_FAULT_NOWHERE,
	GS_FAULT_OPEN,				/* a session is begun */
	GS_FAULT_PUT,				/* a chunk is taken */
	GS_FAULT_SORT,
	GS_FAULT_GET,				/* a sorted chunk is delivered */
	GS_FAULT_CLOSE,
	GS_FAULT_HOST				/* a backend allocates memory for a sort */
} GsFaultPoint;

/* What happens there. */
typedef enum GsFaultAction
{
	GS_FAULT_NOTHING,
	GS_FAULT_CRASH,				/* the device process is killed */
	GS_FAULT_LOST,				/* the device is lost */
	GS_FAULT_MEMORY,			/* device memory is exhausted */
	GS_FAULT_ERROR,				/* the device reports an error */
	GS_FAULT_HANG,				/* nothing, for some seconds */
	GS_FAULT_ALLOC				/* so many allocations after the session was
								 * opened succeed, and the next one fails; of
								 * the points, GS_FAULT_HOST means those of a
								 * backend, all others the device's */
} GsFaultAction;

/*
 * The fault that pg_gpusort.debug_fault describes, "point:action[:number]";
 * raises an error if it cannot be read.
 */
extern GsFault gpusort_fault_parse(const char *text);

/*
 * The number of the allocation for a sort that is to fail in this backend,
 * counted from 1, or 0.
 */
extern uint32 gpusort_fault_host_alloc(void);

#endif							/* GPUSORT_FAULT_H */
