/*-------------------------------------------------------------------------
 *
 * device_check.h
 *		Tests that a device sorts correctly.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_CHECK_H
#define GPUSORT_DEVICE_CHECK_H

#include "gpusort_device.h"

/*
 * Sort some rows on a device that was just opened, and check the result.
 * Returns GPUSORT_OK if it is correct; otherwise writes the reason to
 * 'message'.
 */
extern GsStatus gpusort_device_check_run(const GsDeviceApi * api, GsDevice * device,
										 char *message, Size message_bytes);

#endif							/* GPUSORT_DEVICE_CHECK_H */
