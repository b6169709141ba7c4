/*-------------------------------------------------------------------------
 *
 * device_sessions.h
 *		The sessions that the device process serves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SESSIONS_H
#define GPUSORT_DEVICE_SESSIONS_H

#include "service/device_use.h"

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
