/*-------------------------------------------------------------------------
 *
 * device_use.h
 *		The devices that the device process uses.
 *
 * All of this is for the device process alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_USE_H
#define GPUSORT_DEVICE_USE_H

#include "service/service_shmem.h"

/* A device, by its number in GsService.devices. */
typedef struct GsDeviceUse
{
	GsDevice   *device;			/* NULL unless it is open */
	uint64		spoken_for;		/* bytes that sessions are yet to allocate */
} GsDeviceUse;

typedef struct GsOpenDevices
{
	const		GsDeviceApi *api;
	int			count;
	GsDeviceUse use[GPUSORT_MAX_DEVICES];
} GsOpenDevices;

/*
 * Open the devices that are to be used.  Ends the process if none can be opened.
 * Those that could not be opened are tried again, when it is time, by
 * gpusort_device_use_try_again(), which takes a while and may end the process.
 */
extern GsOpenDevices *gpusort_device_use_begin(void);
extern void gpusort_device_use_try_again(void);

/* Close all devices. */
extern void gpusort_device_use_end(void);

/*
 * The free memory of a device, which is published.  Ends the process if the
 * device is lost.
 */
extern uint64 gpusort_device_use_memory(int device);

/* End the process, since a device is lost. */
extern void gpusort_device_use_lose(int device, const char *message);

#endif							/* GPUSORT_DEVICE_USE_H */
