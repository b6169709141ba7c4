/*-------------------------------------------------------------------------
 *
 * devices.h
 *		The GPUs of the machine, and the process that owns them.
 *
 * A device is named by its index in GsService.devices.  The device process opens devices and
 * uses them, and only it may call the functions for devices and sessions.  The supervisor notes
 * what it leaves when it ends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICES_H
#define GPUSORT_DEVICES_H

#include "service/service_shmem.h"
#include "utils/timestamp.h"

/* Has the device failed so many times in a row that it is left out for an hour? */
extern bool gpusort_devices_left_out(int device);

/* ---- in the device process ---- */

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
 * Open the devices that the settings allow.  Ends the process if none can be opened.
 */
extern GsOpenDevices *gpusort_devices_open(void);

/* Try to open the others that are due, which takes a while and may end the process. */
extern void gpusort_devices_try_again(void);

extern void gpusort_devices_close(void);

/*
 * Returns the free memory of a device, and publishes it in shared memory.  Ends the process if
 * the device is lost.
 */
extern uint64 gpusort_devices_memory(int device);

/* Give memory that no session uses back to the system. */
extern void gpusort_devices_trim(void);

/* Ask the driver for the health of devices, if that was some seconds ago, and publish it. */
extern void gpusort_devices_look_at_health(void);

/* Note that a device has sorted rows. */
extern void gpusort_devices_succeeded(int device);

/* End the process because a device is lost. */
extern void gpusort_devices_lose(int device, const char *message);

/* ---- device_trial.c: sorts made-up rows on a device that was just opened ---- */

/*
 * Sort some rows and check the result, and then measure the device unless 'speed' is set.
 * Returns GPUSORT_OK if the result is right.  'message' gets the reason why it is not.
 */
extern GsStatus gpusort_device_trial(const GsDeviceApi * api, GsDevice * device,
									 GsDeviceSpeed *speed, char *message);

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

/*
 * Returns the number of milliseconds until rows of an idle session are to be parked, at most
 * 'most'.
 */
extern long gpusort_device_sessions_idle_ms(long most);

/* Is any session open? */
extern bool gpusort_device_sessions_any(void);

/* ---- in the supervisor ---- */

/*
 * device_process.c: serve sessions until asked to exit; does not return.  Call this in a child
 * of the supervisor that is not connected to the server in any other way.
 */
extern void gpusort_device_process_main(void);

/*
 * The device process has ended, so that no device is open any more.  'cause' says what the
 * process did then, as in "exited with exit code 1", if that counts as a failure of a device
 * that was being opened; or it is "".
 */
extern void gpusort_devices_process_ended(const char *cause);

/* Is a device being opened? */
extern bool gpusort_devices_any_opening(void);

/* Returns when to try again to open a device, if none could be opened. */
extern TimestampTz gpusort_devices_next_try(void);

/* Make all devices that are not open due for opening. */
extern void gpusort_devices_try_all(void);

#endif							/* GPUSORT_DEVICES_H */
