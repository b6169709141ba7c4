/*-------------------------------------------------------------------------
 *
 * device_record.c
 *		Keeps a record of each device's failures, over several device processes.
 *
 * A device that cannot be opened does not affect the others: it is tried again
 * while no sort is in progress.  But a device that is lost ends the device
 * process, and so all sessions on all devices.  If that happens each time it
 * is used, it is better not to use it.  So consecutive failures are counted
 * here.  The count is reset when a session with rows has completed on the
 * device.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "service/device_record.h"
#include "settings.h"

/* A device with this many consecutive failures is left out for LEFT_OUT_MS. */
#define MOST_FAILURES		3

/*
 * Time until a failed device is tried again, normally and if it is left out.
 * Messages call the latter an hour.
 */
#define RETRY_MS			(60 * 1000)
#define LEFT_OUT_MS			(60 * 60 * 1000)

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

/* ----------------------------------------------------------------
 *		in the device process
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
	shared->logged[0] = '\0';
	set_retry(device, 0);
	set_state(device, GS_DEVICE_CLOSED);
}

void
gpusort_device_record_list(int count)
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

bool
gpusort_device_record_is_due(int device)
{
	return retry_of(device) <= GetCurrentTimestamp();
}

void
gpusort_device_record_opening(int device)
{
	set_state(device, GS_DEVICE_OPENING);
}

void
gpusort_device_record_opened(int device)
{
	device_at(device)->logged[0] = '\0';
	set_state(device, GS_DEVICE_USED);
}

void
gpusort_device_record_success(int device)
{
	GsServiceDevice *shared = device_at(device);

	if (pg_atomic_read_u32(&shared->failures) == 0)
		return;
	pg_atomic_write_u32(&shared->failures, 0);
	shared->message[0] = '\0';
}

void
gpusort_device_record_failure(int device, GsDeviceFailure failure,
							  const char *message)
{
	GsServiceDevice *shared = device_at(device);
	TimestampTz now = GetCurrentTimestamp();

	strlcpy(shared->message, message, sizeof(shared->message));
	if (failure != GS_DEVICE_TAKEN)
		pg_atomic_fetch_add_u32(&shared->failures, 1);
	if (failure != GS_DEVICE_TAKEN && gpusort_device_record_left_out(device))
		set_retry(device, TimestampTzPlusMilliseconds(now, LEFT_OUT_MS));
	else if (failure == GS_DEVICE_LOST_IN_USE)
		set_retry(device, 0);
	else
		set_retry(device, TimestampTzPlusMilliseconds(now, RETRY_MS));
	set_state(device, GS_DEVICE_FAILED);
}

bool
gpusort_device_record_is_news(int device, const char *message)
{
	GsServiceDevice *shared = device_at(device);

	if (strcmp(shared->logged, message) == 0)
		return false;
	strlcpy(shared->logged, message, sizeof(shared->logged));
	return true;
}

bool
gpusort_device_record_left_out(int device)
{
	return pg_atomic_read_u32(&device_at(device)->failures) >= MOST_FAILURES;
}

/* ----------------------------------------------------------------
 *		in the supervisor
 * ----------------------------------------------------------------
 */

void
gpusort_device_record_process_ended(const char *cause)
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
		if (state_of(d) == GS_DEVICE_OPENING && cause[0] != '\0')
			gpusort_device_record_failure(d, GS_DEVICE_NOT_OPENED, message);
		else if (state_of(d) != GS_DEVICE_FAILED)
			set_state(d, GS_DEVICE_CLOSED);
	}
}

bool
gpusort_device_record_any_opening(void)
{
	for (int d = 0; d < device_count(); d++)
		if (state_of(d) == GS_DEVICE_OPENING)
			return true;
	return false;
}

TimestampTz
gpusort_device_record_next_try(void)
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
gpusort_device_record_try_all(void)
{
	for (int d = 0; d < device_count(); d++)
		set_retry(d, 0);
}
