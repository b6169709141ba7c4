/*-------------------------------------------------------------------------
 *
 * device_process.h
 *		The process that owns the GPUs.
 *
 * Only this process may call the functions for devices and sessions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_PROCESS_H
#define GPUSORT_DEVICE_PROCESS_H

#include "service/devices.h"

/*
 * Serve sessions until asked to exit; does not return.  Call this in a child
 * of the supervisor that is not connected to the server in any other way.
 */
extern void gpusort_device_process_main(void);

/* ---- device_sessions.c: serves the sessions ---- */

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

#endif							/* GPUSORT_DEVICE_PROCESS_H */
