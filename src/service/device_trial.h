/*-------------------------------------------------------------------------
 *
 * device_trial.h
 *		Sorts made-up rows on a device that was just opened.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_TRIAL_H
#define GPUSORT_DEVICE_TRIAL_H

#include "service/service_shmem.h"

/*
 * Sort some rows and check the result.  Returns GPUSORT_OK if it is correct; otherwise writes
 * the reason to 'message'.
 */
extern GsStatus gpusort_device_trial_check(const GsDeviceApi * api, GsDevice * device,
										   char *message, Size message_bytes);

/* Measure the device.  'speed' is set if that was possible. */
extern GsStatus gpusort_device_trial_measure(const GsDeviceApi * api, GsDevice * device,
											 GsDeviceSpeed *speed);

#endif							/* GPUSORT_DEVICE_TRIAL_H */
