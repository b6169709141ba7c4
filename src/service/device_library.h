/*-------------------------------------------------------------------------
 *
 * device_library.h
 *		Finds and opens pg_gpusort.device_library.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_LIBRARY_H
#define GPUSORT_DEVICE_LIBRARY_H

#include "gpusort_device.h"

/* Is there a file of that name?  Does not open it. */
extern bool gpusort_device_library_exists(void);

/*
 * Open the library; for the device process alone.  Returns NULL, and writes
 * the reason to 'message', if it cannot be used.
 */
extern const GsDeviceApi *gpusort_device_library_open(char *message,
													  Size message_bytes);

#endif							/* GPUSORT_DEVICE_LIBRARY_H */
