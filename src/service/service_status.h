/*-------------------------------------------------------------------------
 *
 * service_status.h
 *		What the GPU service shows of itself.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_STATUS_H
#define GPUSORT_SERVICE_STATUS_H

typedef struct GsDeviceRow
{
	int			ordinal;
	char		name[128];
	char		compute_capability[16];
	int64		total_memory;
	int64		free_memory;	/* when it was last asked for; 0 unless it is
								 * used */
	int			sessions;
	const char *state;
	int			failures;		/* in a row */
	char		message[256];	/* of the last one, or "" */
} GsDeviceRow;

/*
 * The n-th device that is to be used, from 0; false if there are no more.  Name,
 * capability and memory are empty if they were never learned.
 */
extern bool gpusort_service_get_device(int n, GsDeviceRow *device);

typedef struct GsServiceStatus
{
	const char *state;
	char		message[256];	/* why there is no device, or "" */
	char		build[16];		/* of the device library */
	int64		device_pid;		/* of the device process, or 0 */
	int64		restarts;		/* of it, that nobody asked for */
	int64		device_memory;	/* bytes that sorts use, on all devices */
	int64		sessions;		/* slots in use */
	int64		slots;
	int64		chunks;			/* of the pool */
	int64		chunks_in_use;
	int64		chunk_bytes;
} GsServiceStatus;

/* Returns false if there is no GPU service. */
extern bool gpusort_service_get_status(GsServiceStatus *status);

#endif							/* GPUSORT_SERVICE_STATUS_H */
