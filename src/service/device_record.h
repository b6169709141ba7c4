/*-------------------------------------------------------------------------
 *
 * device_record.h
 *		Keeps a record of each device's failures, over several device processes.
 *
 * 'device' is an index in GsService.devices.  The device process calls these
 * functions for its devices; those at the end are the supervisor's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_RECORD_H
#define GPUSORT_DEVICE_RECORD_H

#include "service/service_shmem.h"
#include "utils/timestamp.h"

/* How a device failed, which determines when it is tried again. */
typedef enum GsDeviceFailure
{
	GS_DEVICE_NOT_OPENED,		/* retry after a while */
	GS_DEVICE_TAKEN,			/* likewise, however often: others use it, or
								 * all of its memory */
	GS_DEVICE_LOST_IN_USE		/* retry in the next device process */
} GsDeviceFailure;

/*
 * Make the list of devices to use, given the 'count' of devices in the
 * machine.  Resets their records if that count has changed.
 */
extern void gpusort_device_record_list(int count);

/* Should a device that is not open be opened now? */
extern bool gpusort_device_record_is_due(int device);

/* Record that a device is being opened, is open, or has sorted. */
extern void gpusort_device_record_opening(int device);
extern void gpusort_device_record_opened(int device);
extern void gpusort_device_record_success(int device);

/* Record that a device could not be opened, or was lost. */
extern void gpusort_device_record_failure(int device, GsDeviceFailure failure,
										  const char *message);

/*
 * Is this reason why a device could not be opened different from the previous
 * one, or the first since it was open?  Stores the reason.
 */
extern bool gpusort_device_record_is_news(int device, const char *message);

/*
 * Has the device failed so many times in a row that it is left out for an
 * hour?
 */
extern bool gpusort_device_record_left_out(int device);

/*
 * Record that the device process has ended, so that no device is open any
 * more.  'cause' says what the process did then, as in "exited with exit code
 * 1", if that counts as a failure of a device that was being opened; or it is "".
 */
extern void gpusort_device_record_process_ended(const char *cause);

/* Is a device being opened? */
extern bool gpusort_device_record_any_opening(void);

/* Returns when to try again to open a device, if none could be opened. */
extern TimestampTz gpusort_device_record_next_try(void);

/* Make all devices that are not open due for opening. */
extern void gpusort_device_record_try_all(void);

#endif							/* GPUSORT_DEVICE_RECORD_H */
