/*-------------------------------------------------------------------------
 *
 * device_use.h
 *		Functions for the devices that the device process uses.
 *
 * Only the device process may call them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_USE_H
#define GPUSORT_DEVICE_USE_H

#include "service/service_shmem.h"

/* A device; its index is that in GsService.devices. */
typedef struct GsDeviceUse
{
	GsDevice   *device;			/* NULL unless it is open */
	uint64		spoken_for;		/* bytes reserved for sessions, not allocated
								 * yet */
} GsDeviceUse;

typedef struct GsOpenDevices
{
	const		GsDeviceApi *api;
	int			count;
	GsDeviceUse use[GPUSORT_MAX_DEVICES];
} GsOpenDevices;

/*
 * gpusort_device_use_begin() opens the devices that the settings allow.  It
 * ends the process if none can be opened.  gpusort_device_use_try_again()
 * tries to open the others when they are due, which takes a while and may end
 * the process.
 */
extern GsOpenDevices *gpusort_device_use_begin(void);
extern void gpusort_device_use_try_again(void);

/* Close all devices. */
extern void gpusort_device_use_end(void);

/*
 * Returns the free memory of a device, and publishes it in shared memory.
 * Ends the process if the device is lost.
 */
extern uint64 gpusort_device_use_memory(int device);

/* End the process because a device is lost. */
extern void gpusort_device_use_lose(int device, const char *message);

#endif							/* GPUSORT_DEVICE_USE_H */
