/*-------------------------------------------------------------------------
 *
 * fault.h
 *		Injects faults into the GPU service and backends, in builds for tests.
 *
 * With GPUSORT_FAULTS defined (make FAULTS=yes), there is a setting
 * pg_gpusort.debug_fault, of which docs/settings.md describes points and actions, and the
 * functions below tell what should happen at a point.  In other builds nothing ever
 * happens, and the compiler removes the code for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FAULT_H
#define GPUSORT_FAULT_H

#include "service/service_shmem.h"

#ifdef GPUSORT_FAULTS

/*
 * Returns the fault of the GPU service that the setting of this backend
 * describes.  Raises an error if the setting is invalid.
 */
extern GsFault gpusort_fault_of_service(void);

/*
 * Does a session with this fault have it now, at one of the device process's points?
 * 'times' counts how often that point was reached, starting with 0.
 */
extern bool gpusort_fault_strikes(const GsFault *fault, const char *point, uint32 *times);

/*
 * Returns which allocation of a device fails, counted from 1, or 0 for none.
 */
extern uint32 gpusort_fault_device_alloc(const GsFault *fault);

/* Returns the number of an action of backends, or 0 without that fault. */
extern uint32 gpusort_fault_host(const char *action);

/*
 * Should this allocation for a sort in a backend fail?  'allocations' counts
 * those of its session.
 */
extern bool gpusort_fault_host_alloc(uint32 *allocations);

/*
 * Called in a worker of an index build before it forms tuples, and in processes of a parallel
 * sort, except the first worker, before their first row: waits if there is such a fault.
 */
extern void gpusort_fault_host_late(void);

#else

#define gpusort_fault_of_service()	((GsFault) {0})
#define gpusort_fault_strikes(fault, point, times)	((void) (fault), false)
#define gpusort_fault_device_alloc(fault)	((uint32) 0)
#define gpusort_fault_host(action)	((uint32) 0)
#define gpusort_fault_host_alloc(allocations)	false
#define gpusort_fault_host_late()	((void) 0)

#endif							/* GPUSORT_FAULTS */

#endif							/* GPUSORT_FAULT_H */
