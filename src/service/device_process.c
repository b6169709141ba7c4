/*-------------------------------------------------------------------------
 *
 * device_process.c
 *		The process that owns the GPUs: its devices, its sleep and its end.
 *
 * The process is a child of the supervisor and not one of the server's own.
 * It must not use locks, memory contexts of a transaction, or anything else
 * that would have to be cleaned up; it may write to the server's log and set
 * latches.  It may die at any time: see service_shmem.h.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "utils/ps_status.h"

#include "service/device_check.h"
#include "service/device_library.h"
#include "service/device_process.h"
#include "service/device_record.h"
#include "service/device_sessions.h"
#include "service/service_shmem.h"

/*
 * How long to nap while there is work under way, and how long after the last
 * there was some; and how long to sleep without any.  Naps save clients the
 * waking, which costs them more than writing a thousand rows.
 */
#define NAP_US				50
#define NAPS_AFTER_WORK		40
#define IDLE_SECONDS		5

/* The rest of a device's memory: for what allocation rounds up. */
#define SPARE_MEMORY		((uint64) 64 * 1024 * 1024)

static GsOpenDevices devices;
static volatile sig_atomic_t end_requested = false;

/* ----------------------------------------------------------------
 *		ends
 * ----------------------------------------------------------------
 */

pg_noreturn static void
end_process(int code)
{
	for (int d = 0; d < devices.count && code == GPUSORT_EXIT_ASKED; d++)
		devices.api->device_close(devices.use[d].device);
	_exit(code);
}

/* End with a message for the supervisor. */
pg_noreturn static void
fail_process(int code, const char *message)
{
	strlcpy(gpusort_service->message, message, GPUSORT_MESSAGE_BYTES);
	end_process(code);
}

void
gpusort_device_process_lose(int d, const char *message)
{
	gpusort_device_record_failure(d, GS_DEVICE_LOST_IN_USE, message);
	gpusort_service->lost_device = d;
	fail_process(GPUSORT_EXIT_LOST, message);
}

static void
handle_sigterm(SIGNAL_ARGS)
{
	int			save_errno = errno;

	end_requested = true;
	(void) sem_post(&gpusort_service->wakeup);
	errno = save_errno;
}

static void
handle_sigquit(SIGNAL_ARGS)
{
	_exit(GPUSORT_EXIT_ASKED);
}

static void
set_up_signals(void)
{
	pqsignal(SIGTERM, handle_sigterm);
	pqsignal(SIGQUIT, handle_sigquit);
	pqsignal(SIGINT, PG_SIG_IGN);
	pqsignal(SIGHUP, PG_SIG_IGN);
	pqsignal(SIGUSR1, PG_SIG_IGN);
	pqsignal(SIGUSR2, PG_SIG_IGN);
	pqsignal(SIGURG, PG_SIG_IGN);
	pqsignal(SIGALRM, PG_SIG_IGN);
	pqsignal(SIGCHLD, PG_SIG_DFL);
	sigprocmask(SIG_SETMASK, &UnBlockSig, NULL);
}

/* ----------------------------------------------------------------
 *		devices
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
gpusort_device_process_memory(int d)
{
	GsServiceDevice *shared = &gpusort_service->devices[d];
	uint64		free_memory;

	/* This may be the first to notice that a device was lost. */
	if (query_memory(d) == GPUSORT_DEVICE_LOST)
		gpusort_device_process_lose(d, devices.api->device_message(devices.use[d].device));

	/* Without an answer, what it said before: allocations will show. */
	free_memory = pg_atomic_read_u64(&shared->free_memory);
	return free_memory > SPARE_MEMORY ? free_memory - SPARE_MEMORY : 0;
}

/* Prepare a device that is open, and see that it sorts. */
static GsStatus
prepare_device(int d, char *message)
{
	static bool pool_is_pinned = false;
	GsDevice   *device = devices.use[d].device;
	GsStatus	status;

	status = gpusort_device_check_run(devices.api, device, message,
									  GPUSORT_MESSAGE_BYTES);
	if (status != GPUSORT_OK)
		return status;

	/* What is pinned is so for all devices, and cannot be pinned again. */
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

/* Open a device; a reason why not goes to 'message'. */
static GsStatus
open_device(int d, char *message)
{
	GsServiceDevice *shared = &gpusort_service->devices[d];
	GsDeviceOptions options = {
		.struct_size = sizeof(GsDeviceOptions),
		.ordinal = shared->info.ordinal
	};
	GsDeviceInfo info;
	GsStatus	status;

	status = devices.api->device_info(options.ordinal, &info, message,
									  GPUSORT_MESSAGE_BYTES);
	if (status != GPUSORT_OK)
		return status;
	shared->info = info;
	status = devices.api->device_open(&options, &devices.use[d].device, message,
									  GPUSORT_MESSAGE_BYTES);
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

/* Open a device, if it is time, and say what came of it. */
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
								  status == GPUSORT_HOST_MEMORY ?
								  GS_DEVICE_NO_MEMORY : GS_DEVICE_NOT_OPENED,
								  message);
	if (gpusort_device_record_is_news(d, message))
		ereport(WARNING,
				(errmsg("could not use GPU %d: %s", info->ordinal, message)));

	/* What this process could do with other devices now is not known. */
	if (status == GPUSORT_DEVICE_LOST)
		fail_process(GPUSORT_EXIT_AGAIN, message);
}

static bool
any_is_open(void)
{
	for (int d = 0; d < devices.count; d++)
		if (devices.use[d].device != NULL)
			return true;
	return false;
}

static void
open_devices(void)
{
	char		message[GPUSORT_MESSAGE_BYTES] = "";
	GsStatus	status;
	int			count = 0;

	devices.api = gpusort_device_library_open(message, sizeof(message));
	if (devices.api == NULL)
		fail_process(GPUSORT_EXIT_NO_DEVICE, message);
	status = devices.api->device_count(&count, message, sizeof(message));
	if (status != GPUSORT_OK)
		fail_process(GPUSORT_EXIT_NO_DEVICE, message[0] != '\0' ? message :
					 devices.api->status_text(status));
	gpusort_device_record_list(count);
	devices.count = (int) pg_atomic_read_u32(&gpusort_service->ndevices);
	for (int d = 0; d < devices.count; d++)
		try_device(d);
	if (!any_is_open())
		fail_process(GPUSORT_EXIT_NO_DEVICE, devices.count > 0 ?
					 gpusort_service->devices[0].message :
					 "no GPU is to be used");
	strlcpy(gpusort_service->build, devices.api->build, sizeof(gpusort_service->build));
}

/* ----------------------------------------------------------------
 *		the loop
 * ----------------------------------------------------------------
 */

static void
nap(void)
{
	struct timespec pause = {.tv_nsec = NAP_US * 1000};

	(void) nanosleep(&pause, NULL);
}

/* Sleep until a client has something to do, but not for ever. */
static void
sleep_until_woken(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += IDLE_SECONDS;
	while (sem_timedwait(&gpusort_service->wakeup, &until) != 0 &&
		   errno == EINTR && !end_requested)
		;
}

void
gpusort_device_process_main(void)
{
	pid_t		supervisor = getppid();
	bool		flying;
	int			naps = 0;

	set_up_signals();
	open_devices();
	gpusort_device_sessions_init(&devices);
	set_ps_display("serving");
	pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_READY);

	while (!end_requested && getppid() == supervisor)
	{
		bool		worked = gpusort_device_sessions_serve(&flying);

		if (worked || flying)
			naps = NAPS_AFTER_WORK;
		if (worked)
			continue;
		if (naps > 0)
		{
			naps--;
			nap();
			continue;
		}

		/* Whoever writes from now on wakes us; what was written we see. */
		pg_atomic_write_u32(&gpusort_service->asleep, 1);
		pg_memory_barrier();
		if (!gpusort_device_sessions_serve(&flying))
			sleep_until_woken();
		pg_atomic_write_u32(&gpusort_service->asleep, 0);

		/* Opening a device takes time, and may end this process. */
		if (!gpusort_device_sessions_any())
			for (int d = 0; d < devices.count; d++)
				try_device(d);
	}
	end_process(GPUSORT_EXIT_ASKED);
}
