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

#include "service/service_shmem.h"

/*
 * Serve sessions until asked to exit; does not return.  Call this in a child
 * of the supervisor that is not connected to the server in any other way.
 */
extern void gpusort_device_process_main(void);

/* ---- device_use.c: opens the devices, and tracks their memory ---- */

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

/* ---- device_trial.c: sorts made-up rows on a device that was just opened ---- */

/*
 * Sort some rows and check the result.  Returns GPUSORT_OK if it is correct; otherwise writes
 * the reason to 'message'.
 */
extern GsStatus gpusort_device_trial_check(const GsDeviceApi * api, GsDevice * device,
										   char *message, Size message_bytes);

/* Measure the device.  'speed' is set if that was possible. */
extern GsStatus gpusort_device_trial_measure(const GsDeviceApi * api, GsDevice * device,
											 GsDeviceSpeed *speed);

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
