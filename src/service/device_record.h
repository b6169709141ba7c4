/*-------------------------------------------------------------------------
 *
 * device_record.h
 *		What is known of each device, over the lives of device processes.
 *
 * The devices are those of GsService.devices, by their place there.  The device
 * process calls these functions for its devices; those at the end are the
 * supervisor's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_RECORD_H
#define GPUSORT_DEVICE_RECORD_H

#include "service/service_shmem.h"
#include "utils/timestamp.h"

/* How a device failed, which decides when it is tried again. */
typedef enum GsDeviceFailure
{
	GS_DEVICE_NOT_OPENED,		/* after a while */
	GS_DEVICE_NO_MEMORY,		/* likewise, however often that happens */
	GS_DEVICE_LOST_IN_USE		/* by the next device process */
} GsDeviceFailure;

/*
 * Make the list of devices: those of the machine's 'count' that are to be used.
 * What is known of them is forgotten if they are others than before.
 */
extern void gpusort_device_record_list(int count);

/* Is a device that is not open to be opened now? */
extern bool gpusort_device_record_is_due(int device);

/* A device is being opened; is open; has sorted. */
extern void gpusort_device_record_opening(int device);
extern void gpusort_device_record_opened(int device);
extern void gpusort_device_record_success(int device);

/* A device could not be opened, or was lost. */
extern void gpusort_device_record_failure(int device, GsDeviceFailure failure,
										  const char *message);

/*
 * Is that another reason why a device could not be opened than the one before, or the
 * first since it was open?  Remembers it.
 */
extern bool gpusort_device_record_is_news(int device, const char *message);

/* Has it failed so often in a row that it is left out for long? */
extern bool gpusort_device_record_left_out(int device);

/*
 * After the end of a device process: no device is open any more.  'crash' is the
 * signal of a crash, which is the failure of a device that was being opened then;
 * or 0.
 */
extern void gpusort_device_record_process_ended(int crash);

/* When the first of the devices is to be opened again, if none is open. */
extern TimestampTz gpusort_device_record_next_try(void);

/* Have all devices opened that are not, as soon as can be. */
extern void gpusort_device_record_try_all(void);

#endif							/* GPUSORT_DEVICE_RECORD_H */
