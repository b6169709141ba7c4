/*-------------------------------------------------------------------------
 *
 * service_status.h
 *		Reads the status of the GPU service from shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_STATUS_H
#define GPUSORT_SERVICE_STATUS_H

#include "service/device_speed.h"

typedef struct GsDeviceRow
{
	int			ordinal;
	char		name[128];
	char		compute_capability[16];
	int64		total_memory;
	int64		free_memory;	/* when the device was last asked; 0 unless it
								 * is used */
	int			sessions;
	const char *state;
	int			failures;		/* consecutive ones */
	char		message[256];	/* of the last failure, or "" */
} GsDeviceRow;

/*
 * Get the n-th device that the settings allow, from 0; returns false if there
 * are no more.  Name, capability and memory are empty until the device was
 * queried.
 */
extern bool gpusort_service_get_device(int n, GsDeviceRow *device);

typedef struct GsServiceStatus
{
	const char *state;
	char		message[256];	/* why there is no device, or "" */
	char		build[16];		/* of the device library */
	int64		device_pid;		/* PID of the device process, or 0 */
	int64		restarts;		/* after unexpected ends of that process */
	int64		device_memory;	/* bytes in use on all devices */
	int64		sessions;		/* slots in use */
	int64		slots;
	int64		chunks;			/* of the pool */
	int64		chunks_in_use;
	int64		chunk_bytes;
} GsServiceStatus;

/*
 * Get the measurements of the device in use that is worth using with the fewest rows.  Returns
 * false if there is none.
 */
extern bool gpusort_service_get_speed(GsDeviceSpeed *speed);

/* Returns false if there is no GPU service. */
extern bool gpusort_service_get_status(GsServiceStatus *status);

#endif							/* GPUSORT_SERVICE_STATUS_H */
