/*-------------------------------------------------------------------------
 *
 * fault.h
 *		Injects faults into the GPU service and backends, in builds for tests.
 *
 * With GPUSORT_FAULTS defined (make FAULTS=yes), there is a setting
 * pg_gpusort.debug_fault, "point:action[:number]", and the functions
 * below tell what should happen at a point.  In other builds nothing ever
 * happens, and the compiler removes the code for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FAULT_H
#define GPUSORT_FAULT_H

#include "service/service_shmem.h"

/*
 * Points where the device process can be made to fail; a backend fails at
 * GS_FAULT_HOST.
 */
typedef enum GsFaultPoint
{
	GS_FAULT_NOWHERE,
	GS_FAULT_OPEN,				/* a session is opened */
	GS_FAULT_PUT,				/* a chunk is taken */
	GS_FAULT_SORT,
	GS_FAULT_GET,				/* a sorted chunk is delivered */
	GS_FAULT_CLOSE,
	GS_FAULT_HOST				/* a backend holds rows and keys of a sort */
} GsFaultPoint;

/* What happens at the point. */
typedef enum GsFaultAction
{
	GS_FAULT_NOTHING,
	GS_FAULT_CRASH,				/* the device process is killed */
	GS_FAULT_LOST,				/* the device is lost */
	GS_FAULT_MEMORY,			/* device memory is exhausted */
	GS_FAULT_ERROR,				/* the device reports an error */
	GS_FAULT_HANG,				/* no session is served until the client gives
								 * up this one */
	GS_FAULT_ROWS,				/* a backend's session cannot have more rows
								 * than 'number' */
	GS_FAULT_LATE,				/* a process does something only after
								 * 'number' milliseconds */
	GS_FAULT_SWAP,				/* the first and the last row of the chunk
								 * change places, if rows have one length */
	GS_FAULT_ALLOC,				/* of the allocations since the session was
								 * opened, the one with this number fails: an
								 * allocation of a backend at GS_FAULT_HOST,
								 * and of the device at all other points */
	GS_FAULT_ALLOC_ONCE			/* likewise, but counts the allocations for
								 * all sessions of a backend together, so that
								 * only one fails */
} GsFaultAction;

#ifdef GPUSORT_FAULTS

/*
 * Returns the fault of the GPU service that the setting of this backend
 * describes.  Raises an error if the setting is invalid.
 */
extern GsFault gpusort_fault_of_service(void);

/*
 * Returns what happens at a point of a session with this fault.  'times'
 * counts how often the fault's point was reached, starting with 0.
 */
extern GsFaultAction gpusort_fault_strikes(const GsFault *fault, GsFaultPoint point,
										   uint32 *times);

/*
 * Returns which allocation of a device fails, counted from 1, or 0 for none.
 */
extern uint32 gpusort_fault_device_alloc(const GsFault *fault);

/*
 * Should this allocation for a sort in a backend fail?  'allocations' counts
 * those of its session.
 */
extern bool gpusort_fault_host_alloc(uint32 *allocations);

/*
 * Returns how many rows a session of this backend can have: 'most', unless
 * there is a fault.
 */
extern uint32 gpusort_fault_host_rows(uint32 most);

/*
 * Called in a worker of an index build before it forms tuples, and in processes of a parallel
 * sort, except the first worker, before their first row: waits if there is such a fault.
 */
extern void gpusort_fault_host_late(void);

#else

#define gpusort_fault_of_service()	((GsFault) {0})
#define gpusort_fault_strikes(fault, point, times)	((void) (fault), GS_FAULT_NOTHING)
#define gpusort_fault_device_alloc(fault)	((uint32) 0)
#define gpusort_fault_host_alloc(allocations)	false
#define gpusort_fault_host_rows(most)	(most)
#define gpusort_fault_host_late()	((void) 0)

#endif							/* GPUSORT_FAULTS */

#endif							/* GPUSORT_FAULT_H */
