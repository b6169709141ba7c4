/*-------------------------------------------------------------------------
 *
 * fault.h
 *		Faults on purpose, in builds for tests: of the GPU service, and of what
 *		a backend holds.
 *
 * With GPUSORT_FAULTS defined (make FAULTS=yes), there is a setting
 * pg_gpusort.debug_fault, "point:action[:number]", and the functions below say
 * what it has to happen.  Otherwise nothing ever does, and compilers leave out
 * what would have.
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
	GS_FAULT_HOST				/* a backend holds rows and keys of a sort */
} GsFaultPoint;

/* What happens there. */
typedef enum GsFaultAction
{
	GS_FAULT_NOTHING,
	GS_FAULT_CRASH,				/* the device process is killed */
	GS_FAULT_LOST,				/* the device is lost */
	GS_FAULT_MEMORY,			/* device memory is exhausted */
	GS_FAULT_ERROR,				/* the device reports an error */
	GS_FAULT_HANG,				/* nothing, until the session is given up */
	GS_FAULT_ROWS,				/* a backend's session cannot number more rows
								 * than that */
	GS_FAULT_ALLOC,				/* so many allocations after the session was
								 * opened succeed, and the next one fails; of
								 * the points, GS_FAULT_HOST means those of a
								 * backend, all others the device's */
	GS_FAULT_ALLOC_ONCE			/* the same, but of all sessions of a backend
								 * together, so that only one fails */
} GsFaultAction;

#ifdef GPUSORT_FAULTS

/*
 * The fault of the GPU service that the setting of this backend describes; raises
 * an error if it cannot be read.
 */
extern GsFault gpusort_fault_of_service(void);

/*
 * What happens at a point of a session with that fault.  'times' counts how often
 * the fault's point was met, from 0.
 */
extern GsFaultAction gpusort_fault_strikes(const GsFault *fault, GsFaultPoint point,
										   uint32 *times);

/* After how many allocations of a device one fails, or 0. */
extern uint32 gpusort_fault_device_alloc(const GsFault *fault);

/* Is this the allocation for a sort in this backend that fails?  Counts them. */
extern bool gpusort_fault_host_alloc(uint32 *allocations);

/* How many rows a session of this backend can number, 'most' without a fault. */
extern uint32 gpusort_fault_host_rows(uint32 most);

#else

static inline GsFault
gpusort_fault_of_service(void)
{
	return (GsFault)
	{
		0
	};
}

static inline GsFaultAction
gpusort_fault_strikes(const GsFault *fault, GsFaultPoint point, uint32 *times)
{
	return GS_FAULT_NOTHING;
}

static inline uint32
gpusort_fault_device_alloc(const GsFault *fault)
{
	return 0;
}

static inline bool
gpusort_fault_host_alloc(uint32 *allocations)
{
	return false;
}

static inline uint32
gpusort_fault_host_rows(uint32 most)
{
	return most;
}

#endif							/* GPUSORT_FAULTS */

#endif							/* GPUSORT_FAULT_H */
