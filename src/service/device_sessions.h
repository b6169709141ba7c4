/*-------------------------------------------------------------------------
 *
 * device_sessions.h
 *		The sessions that the device process serves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SESSIONS_H
#define GPUSORT_DEVICE_SESSIONS_H

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
 * Begin to serve, with no session open.  Devices that are open must stay; others
 * can be opened while there is no session.
 */
extern void gpusort_device_sessions_init(GsOpenDevices *open_devices);

/*
 * Do what there is to do for each slot; returns whether there was anything.
 * *flying tells of work that is under way on a device.
 */
extern bool gpusort_device_sessions_serve(bool *flying);

/* Is any session open? */
extern bool gpusort_device_sessions_any(void);

#endif							/* GPUSORT_DEVICE_SESSIONS_H */
