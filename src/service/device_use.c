/*-------------------------------------------------------------------------
 *
 * device_use.c
 *		Opens the devices that the device process uses, and tracks their memory.
 *
 * After the loss of a device it is undefined what the process can still do
 * with other devices.  So it exits, with a message for the supervisor, which
 * starts a new process.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>

#include "service/device_process.h"
#include "service/device_record.h"

/* Device memory that is left free, because allocations are rounded up. */
#define SPARE_MEMORY		((uint64) 64 * 1024 * 1024)

static GsOpenDevices devices;

/* ----------------------------------------------------------------
 *		ends
 * ----------------------------------------------------------------
 */

/* Exit with a message for the supervisor. */
static void
fail_process(GsProcessEnd end, const char *message)
{
	strlcpy(gpusort_service->message, message, GPUSORT_MESSAGE_BYTES);
	gpusort_service_end_process(end);
}

void
gpusort_device_use_lose(int d, const char *message)
{
	gpusort_device_record_failure(d, GS_DEVICE_LOST_IN_USE, message);
	gpusort_service->lost_device = d;
	fail_process(GS_END_LOST, message);
}

/* ----------------------------------------------------------------
 *		memory
 * ----------------------------------------------------------------
 */

/* Ask a device for its free memory, and publish it. */
static GsStatus
query_memory(int d)
{
	GsServiceDevice *shared = &gpusort_service->devices[d];
	GsDeviceMemory memory;
	GsStatus	status = devices.api->device_memory(devices.use[d].device, &memory);

	if (status == GPUSORT_OK)
	{
		pg_atomic_write_u64(&shared->free_memory, memory.free);
		pg_atomic_write_u64(&shared->used_memory, memory.in_use);
	}
	return status;
}

uint64
gpusort_device_use_memory(int d)
{
	GsServiceDevice *shared = &gpusort_service->devices[d];
	uint64		free_memory;

	/* This call may be the first to notice that the device is lost. */
	if (query_memory(d) == GPUSORT_DEVICE_LOST)
		gpusort_device_use_lose(d, devices.api->device_message(devices.use[d].device));

	/*
	 * If the query failed, use the previous value: if it is wrong,
	 * allocations will fail.
	 */
	free_memory = pg_atomic_read_u64(&shared->free_memory);
	return free_memory > SPARE_MEMORY ? free_memory - SPARE_MEMORY : 0;
}

/* ----------------------------------------------------------------
 *		opening
 * ----------------------------------------------------------------
 */

/* Open the device library.  If it cannot be used, returns NULL and writes the reason. */
static const GsDeviceApi *
open_library(char *message, Size message_bytes)
{
	const char *path = gpusort_service_library_path();
	void	   *library;
	GsDeviceApiFunction get_api;
	const		GsDeviceApi *api;

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		snprintf(message, message_bytes, "could not open \"%s\": %s", path,
				 dlerror());
		return NULL;
	}
	get_api = (GsDeviceApiFunction) dlsym(library, GPUSORT_DEVICE_ENTRY);
	if (get_api == NULL)
	{
		snprintf(message, message_bytes, "\"%s\" is not a device library",
				 path);
		return NULL;
	}
	api = get_api(GPUSORT_DEVICE_ABI_VERSION);
	if (api == NULL || api->abi_version != GPUSORT_DEVICE_ABI_VERSION)
	{
		snprintf(message, message_bytes,
				 "\"%s\" is of another version of pg_gpusort", path);
		return NULL;
	}
	return api;
}

/*
 * Measure a device, unless an earlier process has.  The result is part of what the state of
 * the device announces.
 */
static GsStatus
measure_speed(int d, char *message)
{
	GsDevice   *device = devices.use[d].device;
	GsDeviceSpeed *shared = &gpusort_service->devices[d].speed;
	GsDeviceSpeed speed;
	GsStatus	status;

	if (shared->cpu_row_ns > 0)
		return GPUSORT_OK;
	status = gpusort_device_trial_measure(devices.api, device, &speed);
	if (status == GPUSORT_OK)
		*shared = speed;
	else
		strlcpy(message, devices.api->device_message(device), GPUSORT_MESSAGE_BYTES);
	return status;
}

/* Prepare a device that was just opened, and check that it sorts. */
static GsStatus
prepare_device(int d, char *message)
{
	static bool pool_is_pinned = false;
	GsDevice   *device = devices.use[d].device;
	GsStatus	status;

	status = gpusort_device_trial_check(devices.api, device, message,
										GPUSORT_MESSAGE_BYTES);
	gpusort_service_step();
	if (status == GPUSORT_OK)
		status = measure_speed(d, message);
	gpusort_service_step();
	if (status != GPUSORT_OK)
		return status;

	/* Memory is pinned for all devices, and cannot be pinned twice. */
	if (!pool_is_pinned)
		status = devices.api->host_register(device, gpusort_service->pool,
											gpusort_service->pool_bytes);
	if (status == GPUSORT_OK)
	{
		pool_is_pinned = true;
		status = query_memory(d);
	}
	if (status != GPUSORT_OK)
		strlcpy(message, devices.api->device_message(device), GPUSORT_MESSAGE_BYTES);
	return status;
}

/* Open a device.  After a failure, 'message' may have the reason. */
static GsStatus
open_device(int d, char *message)
{
	GsServiceDevice *shared = &gpusort_service->devices[d];
	int			ordinal = shared->info.ordinal;
	GsDeviceInfo info;
	GsStatus	status;

	status = devices.api->device_info(ordinal, &info, message,
									  GPUSORT_MESSAGE_BYTES);
	if (status != GPUSORT_OK)
		return status;
	shared->info = info;
	status = devices.api->device_open(ordinal, &devices.use[d].device, message,
									  GPUSORT_MESSAGE_BYTES);
	gpusort_service_step();
	if (status != GPUSORT_OK)
		return status;
	status = prepare_device(d, message);
	if (status != GPUSORT_OK)
	{
		devices.api->device_close(devices.use[d].device);
		devices.use[d].device = NULL;
	}
	return status;
}

/* Open a device if it is due, and log the result. */
static void
try_device(int d)
{
	const		GsDeviceInfo *info = &gpusort_service->devices[d].info;
	char		message[GPUSORT_MESSAGE_BYTES] = "";
	GsStatus	status;

	if (devices.use[d].device != NULL || !gpusort_device_record_is_due(d))
		return;
	gpusort_device_record_opening(d);
	status = open_device(d, message);
	gpusort_service_step();
	if (status == GPUSORT_OK)
	{
		gpusort_device_record_opened(d);
		ereport(LOG,
				(errmsg("pg_gpusort uses GPU %d: %s, compute capability %d.%d, %llu MB, through a pool of %zu MB",
						info->ordinal, info->name, info->capability_major,
						info->capability_minor,
						(unsigned long long) (info->total_memory >> 20),
						gpusort_service->pool_bytes >> 20)));
		return;
	}
	if (message[0] == '\0')
		strlcpy(message, devices.api->status_text(status), sizeof(message));
	gpusort_device_record_failure(d, status == GPUSORT_DEVICE_MEMORY ||
								  status == GPUSORT_HOST_MEMORY ||
								  status == GPUSORT_DEVICE_BUSY ?
								  GS_DEVICE_TAKEN : GS_DEVICE_NOT_OPENED,
								  message);
	if (gpusort_device_record_is_news(d, message))
		ereport(WARNING,
				(errmsg("could not use GPU %d: %s", info->ordinal, message)));

	/* It is undefined what this process could still do with other devices. */
	if (status == GPUSORT_DEVICE_LOST)
		fail_process(GS_END_AGAIN, message);
}

static bool
any_is_open(void)
{
	for (int d = 0; d < devices.count; d++)
		if (devices.use[d].device != NULL)
			return true;
	return false;
}

GsOpenDevices *
gpusort_device_use_begin(void)
{
	char		message[GPUSORT_MESSAGE_BYTES] = "";
	GsStatus	status;
	int			count = 0;

	devices.api = open_library(message, sizeof(message));
	if (devices.api == NULL)
		fail_process(GS_END_NO_DEVICE, message);
	status = devices.api->device_count(&count, message, sizeof(message));
	if (status != GPUSORT_OK)
		fail_process(GS_END_NO_DEVICE, message[0] != '\0' ? message :
					 devices.api->status_text(status));
	gpusort_device_record_list(count);
	devices.count = (int) pg_atomic_read_u32(&gpusort_service->ndevices);
	for (int d = 0; d < devices.count; d++)
		try_device(d);
	if (!any_is_open())
		fail_process(GS_END_NO_DEVICE, devices.count > 0 ?
					 gpusort_service->devices[0].message :
					 "no GPU is allowed by pg_gpusort.devices");
	strlcpy(gpusort_service->build, devices.api->build, sizeof(gpusort_service->build));
	return &devices;
}

void
gpusort_device_use_try_again(void)
{
	for (int d = 0; d < devices.count; d++)
		try_device(d);
}

void
gpusort_device_use_end(void)
{
	for (int d = 0; d < devices.count; d++)
		devices.api->device_close(devices.use[d].device);
}
