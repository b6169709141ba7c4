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

/* Does the file exist?  Does not open it. */
extern bool gpusort_device_library_exists(void);

/*
 * Open the library.  Only the device process calls this.  If the library
 * cannot be used, returns NULL and writes the reason to 'message'.
 */
extern const GsDeviceApi *gpusort_device_library_open(char *message,
													  Size message_bytes);

#endif							/* GPUSORT_DEVICE_LIBRARY_H */
