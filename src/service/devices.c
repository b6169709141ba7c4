/*-------------------------------------------------------------------------
 *
 * devices.c
 *		The GPUs of the machine: which are open, which have failed, and their memory.
 *
 * A device that cannot be opened does not affect the others: it is tried again while no sort is
 * in progress.  After the loss of a device it is undefined what the process can still do with
 * other devices.  So it exits, with a message for the supervisor, which starts a new process, and
 * all sessions on all devices are lost.  If that happens each time a device is used, it is better
 * not to use it.  So consecutive failures are counted in shared memory.  The count is reset when
 * a session with rows has completed on the device.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <dlfcn.h>

#include "service/devices.h"
#include "settings.h"

/* Device memory that is left free, because allocations are rounded up. */
#define SPARE_MEMORY		((uint64) 64 * 1024 * 1024)

/* A device with this many consecutive failures is left out for LEFT_OUT_MS. */
#define MOST_FAILURES		3

/*
 * Time until a failed device is tried again, normally and if it is left out.
 * Messages call the latter an hour.
 */
#define RETRY_MS			(60 * 1000)
#define LEFT_OUT_MS			(60 * 60 * 1000)

/* How often the driver is asked for the health of devices. */
#define HEALTH_MS			5000

/* How a device failed, which determines when it is tried again. */
typedef enum GsDeviceFailure
{
	GS_DEVICE_NOT_OPENED,		/* retry after a while */
	GS_DEVICE_TAKEN,			/* likewise, however often: others use it, or
								 * all of its memory */
	GS_DEVICE_LOST_IN_USE		/* retry in the next device process */
} GsDeviceFailure;

static GsOpenDevices devices;

/* ----------------------------------------------------------------
 *		the record of a device, in shared memory
 * ----------------------------------------------------------------
 */

static GsServiceDevice *
device_at(int device)
{
	return &gpusort_service->devices[device];
}

static int
device_count(void)
{
	return (int) pg_atomic_read_u32(&gpusort_service->ndevices);
}

static GsDeviceState
state_of(int device)
{
	return (GsDeviceState) pg_atomic_read_u32(&device_at(device)->state);
}

static void
set_state(int device, GsDeviceState state)
{
	pg_write_barrier();
	pg_atomic_write_u32(&device_at(device)->state, state);
}

static void
set_retry(int device, TimestampTz when)
{
	pg_atomic_write_u64(&device_at(device)->retry_at, (uint64) when);
}

static TimestampTz
retry_of(int device)
{
	return (TimestampTz) pg_atomic_read_u64(&device_at(device)->retry_at);
}

bool
gpusort_devices_left_out(int device)
{
	return pg_atomic_read_u32(&device_at(device)->failures) >= MOST_FAILURES;
}

/* Note that a device could not be opened, or was lost. */
static void
record_failure(int device, GsDeviceFailure failure, const char *message)
{
	GsServiceDevice *shared = device_at(device);
	TimestampTz now = GetCurrentTimestamp();

	strlcpy(shared->message, message, sizeof(shared->message));
	if (failure != GS_DEVICE_TAKEN)
		pg_atomic_fetch_add_u32(&shared->failures, 1);
	if (failure != GS_DEVICE_TAKEN && gpusort_devices_left_out(device))
		set_retry(device, TimestampTzPlusMilliseconds(now, LEFT_OUT_MS));
	else if (failure == GS_DEVICE_LOST_IN_USE)
		set_retry(device, 0);
	else
		set_retry(device, TimestampTzPlusMilliseconds(now, RETRY_MS));
	set_state(device, GS_DEVICE_FAILED);
}

void
gpusort_devices_succeeded(int device)
{
	GsServiceDevice *shared = device_at(device);

	if (pg_atomic_read_u32(&shared->failures) == 0)
		return;
	pg_atomic_write_u32(&shared->failures, 0);
	shared->message[0] = '\0';
}

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
gpusort_devices_lose(int d, const char *message)
{
	record_failure(d, GS_DEVICE_LOST_IN_USE, message);
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
	GsServiceDevice *shared = device_at(d);
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
gpusort_devices_memory(int d)
{
	GsServiceDevice *shared = device_at(d);
	uint64		free_memory;

	/* This call may be the first to notice that the device is lost. */
	if (query_memory(d) == GPUSORT_DEVICE_LOST)
		gpusort_devices_lose(d, devices.api->device_message(devices.use[d].device));

	/*
	 * If the query failed, use the previous value: if it is wrong,
	 * allocations will fail.
	 */
	free_memory = pg_atomic_read_u64(&shared->free_memory);
	return free_memory > SPARE_MEMORY ? free_memory - SPARE_MEMORY : 0;
}

void
gpusort_devices_trim(void)
{
	/* If a device is lost, the next session notices. */
	for (int d = 0; d < devices.count; d++)
		if (devices.use[d].device != NULL)
			(void) devices.api->device_trim(devices.use[d].device);
}

static const GsDeviceHealth unknown_health = {-1, -1};

static void
publish_health(int d, GsDeviceHealth health)
{
	pg_atomic_write_u32(&device_at(d)->temperature, health.temperature >= 0 ?
						(uint32) health.temperature : GPUSORT_UNKNOWN_HEALTH);
	pg_atomic_write_u64(&device_at(d)->memory_errors, health.memory_errors >= 0 ?
						(uint64) health.memory_errors : GPUSORT_UNKNOWN_HEALTH);
}

void
gpusort_devices_look_at_health(void)
{
	static TimestampTz next = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (now < next)
		return;
	next = TimestampTzPlusMilliseconds(now, HEALTH_MS);
	for (int d = 0; d < devices.count; d++)
	{
		GsDeviceHealth health;

		if (devices.use[d].device == NULL)
			continue;
		devices.api->device_health(devices.use[d].device, &health);
		publish_health(d, health);
		gpusort_service_step();
	}
}

/* ----------------------------------------------------------------
 *		opening
 * ----------------------------------------------------------------
 */

static void
reset_device(int device, int ordinal)
{
	GsServiceDevice *shared = device_at(device);

	memset(&shared->info, 0, sizeof(shared->info));
	shared->info.ordinal = ordinal;
	pg_atomic_write_u32(&shared->failures, 0);
	shared->message[0] = '\0';
	set_retry(device, 0);
	set_state(device, GS_DEVICE_CLOSED);
}

/*
 * Make the list of devices to use, given the 'count' of devices in the machine.  Resets their
 * records if that count has changed.
 */
static void
list_devices(int count)
{
	int			listed = 0;

	/*
	 * If the number of devices in the machine has changed, each ordinal may
	 * now stand for another device.
	 */
	bool		same = gpusort_service->machine_devices == count;

	for (int ordinal = 0; ordinal < count && listed < GPUSORT_MAX_DEVICES; ordinal++)
	{
		if (!gpusort_settings_use_device(ordinal))
			continue;
		if (!same)
			reset_device(listed, ordinal);
		listed++;
	}
	gpusort_service->machine_devices = count;
	pg_write_barrier();
	pg_atomic_write_u32(&gpusort_service->ndevices, listed);
}

/* Open the device library.  If it cannot be used, returns NULL and writes the reason. */
static const GsDeviceApi *
open_library(char *message, Size message_bytes)
{
	const char *path = gpusort_library_path;
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

/* Prepare a device that was just opened, and check that it sorts. */
static GsStatus
prepare_device(int d, char *message)
{
	static bool pool_is_pinned = false;
	GsDevice   *device = devices.use[d].device;
	GsStatus	status;

	/* An earlier process may have measured the speed. */
	status = gpusort_device_trial(devices.api, device, &device_at(d)->speed, message);
	gpusort_service_step();

	/* Memory is pinned for all devices, and cannot be pinned twice. */
	if (status == GPUSORT_OK && !pool_is_pinned)
		status = devices.api->host_register(device, gpusort_service->pool,
											gpusort_service->pool_bytes);
	if (status == GPUSORT_OK)
	{
		pool_is_pinned = true;
		status = query_memory(d);
	}
	if (status != GPUSORT_OK && message[0] == '\0')
		strlcpy(message, devices.api->device_message(device), GPUSORT_MESSAGE_BYTES);
	return status;
}

/* Open a device.  After a failure, 'message' may have the reason. */
static GsStatus
open_device(int d, char *message)
{
	GsServiceDevice *shared = device_at(d);
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

static GsDeviceFailure
failure_of_status(GsStatus status)
{
	return status == GPUSORT_DEVICE_MEMORY || status == GPUSORT_HOST_MEMORY ||
		status == GPUSORT_DEVICE_BUSY ? GS_DEVICE_TAKEN : GS_DEVICE_NOT_OPENED;
}

/*
 * Open a device if it is due, and log the result, unless it is the same failure as before.
 */
static void
try_device(int d)
{
	GsServiceDevice *shared = device_at(d);
	const		GsDeviceInfo *info = &shared->info;
	bool		has_failed = state_of(d) == GS_DEVICE_FAILED;
	char		message[GPUSORT_MESSAGE_BYTES] = "";
	GsStatus	status;

	if (devices.use[d].device != NULL || retry_of(d) > GetCurrentTimestamp())
		return;
	set_state(d, GS_DEVICE_OPENING);
	status = open_device(d, message);
	gpusort_service_step();
	if (status == GPUSORT_OK)
	{
		set_state(d, GS_DEVICE_USED);
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
	has_failed = has_failed && strcmp(shared->message, message) == 0;
	record_failure(d, failure_of_status(status), message);
	if (!has_failed)
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
gpusort_devices_open(void)
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
	list_devices(count);
	devices.count = device_count();
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
gpusort_devices_try_again(void)
{
	for (int d = 0; d < devices.count; d++)
		try_device(d);
}

void
gpusort_devices_close(void)
{
	for (int d = 0; d < devices.count; d++)
		devices.api->device_close(devices.use[d].device);
}

/* ----------------------------------------------------------------
 *		in the supervisor
 * ----------------------------------------------------------------
 */

void
gpusort_devices_process_ended(const char *cause)
{
	char		message[GPUSORT_MESSAGE_BYTES];

	snprintf(message, sizeof(message),
			 "the device process %s while it opened the GPU", cause);
	for (int d = 0; d < device_count(); d++)
	{
		GsServiceDevice *shared = device_at(d);

		pg_atomic_write_u32(&shared->sessions, 0);
		pg_atomic_write_u64(&shared->free_memory, 0);
		pg_atomic_write_u64(&shared->used_memory, 0);
		publish_health(d, unknown_health);
		if (state_of(d) == GS_DEVICE_OPENING && cause[0] != '\0')
			record_failure(d, GS_DEVICE_NOT_OPENED, message);
		else if (state_of(d) != GS_DEVICE_FAILED)
			set_state(d, GS_DEVICE_CLOSED);
	}
}

bool
gpusort_devices_any_opening(void)
{
	for (int d = 0; d < device_count(); d++)
		if (state_of(d) == GS_DEVICE_OPENING)
			return true;
	return false;
}

TimestampTz
gpusort_devices_next_try(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz first = DT_NOEND;

	/*
	 * Ignore a device that was due and was not tried: retrying sooner would
	 * not help, since no device could be opened.
	 */
	for (int d = 0; d < device_count(); d++)
		if (state_of(d) == GS_DEVICE_FAILED && retry_of(d) > now)
			first = Min(first, retry_of(d));
	return first == DT_NOEND ? TimestampTzPlusMilliseconds(now, RETRY_MS) : first;
}

void
gpusort_devices_try_all(void)
{
	for (int d = 0; d < device_count(); d++)
		set_retry(d, 0);
}
