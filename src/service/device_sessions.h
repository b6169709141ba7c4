/*-------------------------------------------------------------------------
 *
 * device_sessions.h
 *		Serves the clients' sessions, in the device process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SESSIONS_H
#define GPUSORT_DEVICE_SESSIONS_H

#include "service/device_use.h"

/*
 * Initialize, with no session open.  Devices that are open must stay open;
 * others may be opened while there is no session.
 */
extern void gpusort_device_sessions_init(GsOpenDevices *open_devices);

/*
 * Serve each slot once; returns true if there was anything to do.  Sets
 * *transferring to whether any chunk is in transfer.
 */
extern bool gpusort_device_sessions_serve(bool *transferring);

/* Is any session open? */
extern bool gpusort_device_sessions_any(void);

#endif							/* GPUSORT_DEVICE_SESSIONS_H */
