/*-------------------------------------------------------------------------
 *
 * service_status.c
 *		Reads the status of the GPU service from shared memory.
 *
 * The values are read one after the other, without a lock, so they may not be
 * consistent with each other.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "service/device_record.h"
#include "service/service_shmem.h"
#include "service/service_status.h"

static const char *const state_names[] = {
	[GS_SERVICE_OFF] = "off",
	[GS_SERVICE_STARTING] = "starting",
	[GS_SERVICE_READY] = "ready",
	[GS_SERVICE_FAILED] = "failed",
};

static const char *const device_state_names[] = {
	[GS_DEVICE_CLOSED] = "closed",
	[GS_DEVICE_OPENING] = "opening",
	[GS_DEVICE_USED] = "used",
	[GS_DEVICE_FAILED] = "failed",
};

static const char *
device_state(int n)
{
	uint32		state = pg_atomic_read_u32(&gpusort_service->devices[n].state);

	if (state == GS_DEVICE_FAILED && gpusort_device_record_left_out(n))
		return "left out";
	return device_state_names[state];
}

bool
gpusort_service_get_device(int n, GsDeviceRow *row)
{
	const GsServiceDevice *device;

	if (gpusort_service == NULL ||
		n >= (int) pg_atomic_read_u32(&gpusort_service->ndevices))
		return false;
	device = &gpusort_service->devices[n];

	/* The state is read first: what the others tell is not older. */
	row->state = device_state(n);
	pg_read_barrier();
	row->ordinal = device->info.ordinal;
	strlcpy(row->name, device->info.name, sizeof(row->name));
	snprintf(row->compute_capability, sizeof(row->compute_capability), "%d.%d",
			 device->info.capability_major, device->info.capability_minor);
	row->total_memory = device->info.total_memory;
	row->free_memory =
		pg_atomic_read_u64((pg_atomic_uint64 *) &device->free_memory);
	row->sessions = pg_atomic_read_u32((pg_atomic_uint32 *) &device->sessions);
	row->failures = pg_atomic_read_u32((pg_atomic_uint32 *) &device->failures);
	strlcpy(row->message, device->message, sizeof(row->message));
	return true;
}

bool
gpusort_service_get_speed(GsDeviceSpeed *speed)
{
	bool		found = false;

	for (int d = 0; gpusort_service != NULL &&
		 d < (int) pg_atomic_read_u32(&gpusort_service->ndevices); d++)
	{
		GsServiceDevice *device = &gpusort_service->devices[d];

		if (pg_atomic_read_u32(&device->state) != GS_DEVICE_USED)
			continue;
		pg_read_barrier();		/* the state announces the speed */
		if (!found || gpusort_device_speed_min_rows(&device->speed) <
			gpusort_device_speed_min_rows(speed))
			*speed = device->speed;
		found = true;
	}
	return found;
}

bool
gpusort_service_get_status(GsServiceStatus *status)
{
	GsService  *service = gpusort_service;
	uint32		ndevices;

	if (service == NULL)
		return false;
	memset(status, 0, sizeof(*status));
	status->state = state_names[pg_atomic_read_u32(&service->state)];
	pg_read_barrier();			/* what follows is not older than the state */
	ndevices = pg_atomic_read_u32(&service->ndevices);
	strlcpy(status->message, service->message, sizeof(status->message));
	strlcpy(status->build, service->build, sizeof(status->build));
	status->device_pid = pg_atomic_read_u32(&service->device_pid);
	status->restarts = pg_atomic_read_u32(&service->restarts);
	for (uint32 d = 0; d < ndevices; d++)
		status->device_memory +=
			pg_atomic_read_u64(&service->devices[d].used_memory);
	for (uint32 s = 0; s < service->nslots; s++)
		if (pg_atomic_read_u32(&service->slots[s].state) != GS_SLOT_FREE)
			status->sessions++;
	for (uint32 c = 0; c < service->nchunks; c++)
		if (pg_atomic_read_u32(&service->chunks[c].owner) != 0)
			status->chunks_in_use++;
	status->slots = service->nslots;
	status->chunks = service->nchunks;
	status->chunk_bytes = service->chunk_bytes;
	return true;
}
