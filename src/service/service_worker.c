/*-------------------------------------------------------------------------
 *
 * service_worker.c
 *		The background worker "pg_gpusort service": supervises the device process.
 *
 * The driver can kill a process that uses CUDA, and so can the process's own
 * memory use.  When a process that PostgreSQL knows dies, all others are
 * restarted.  So this worker, which does nothing that could kill it, has a
 * child process that the postmaster does not know and that alone uses the
 * GPUs.  When the child ends, its sessions are declared lost, and a new one is
 * started.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "service/devices.h"
#include "service/service_shmem.h"
#include "settings.h"

extern PGDLLEXPORT void gpusort_service_main(Datum arg);

/*
 * Milliseconds until a new device process is started after a crash: the first
 * delay, which doubles with each crash soon after a start, and the longest
 * delay.
 */
#define FIRST_RESTART_MS	200
#define LAST_RESTART_MS		(10 * 1000)

/* A crash after this time is not soon after the start. */
#define STABLE_MS			(10 * 1000)

/*
 * How long to wait for the device process to exit when it is asked to, and again
 * when it has been killed.
 */
#define END_PATIENCE_MS		3000

/*
 * While devices are opened, a device process may take so many times as long for a
 * step as otherwise, since the driver may have to compile the kernels.
 */
#define OPENING_FACTOR		5

/* How often to update pg_stat_activity. */
#define LOOK_MS				1000

static pid_t child = 0;
static TimestampTz child_start;
static int	restart_ms = FIRST_RESTART_MS;
static TimestampTz next_start = 0;

/*
 * For how many microseconds the child has taken no step, how many steps it had taken
 * then, and when we looked last.  If it is hung, it has been killed for that.
 */
static int64 silent_us;
static uint32 steps_seen;
static TimestampTz last_look;
static bool hung = false;

/* A device process that the previous supervisor could not end, or 0. */
static pid_t left_over = 0;

/* The reason last logged since a device process was ready, or "". */
static char last_reason[GPUSORT_MESSAGE_BYTES];

static void
handle_sigchld(SIGNAL_ARGS)
{
	int			save_errno = errno;

	SetLatch(MyLatch);
	errno = save_errno;
}

/* ----------------------------------------------------------------
 *		start and end of the device process
 * ----------------------------------------------------------------
 */

/*
 * In the child: detach from everything that belongs to the worker.  All signals
 * are blocked until the child has handlers of its own.
 *
 * If the worker is killed, the child must not outlive it, since it would keep a
 * new server from starting.  Then it belongs to process 1.  In a container that can
 * be the postmaster, which takes any status but 0 and 1 for a crash, even of a
 * process that it does not know.  So the kernel sends SIGQUIT, at which the child
 * exits with status 0, and not SIGKILL.
 *
 * SIGQUIT alone does not end a process that is stopped.  The child therefore has a
 * process group of its own.  When its parent ends, that becomes an orphaned one, and
 * the kernel continues processes of such a group that are stopped.
 */
static void
become_device_process(void)
{
	pid_t		supervisor = MyProcPid;

	MyProcPid = getpid();
	on_exit_reset();
	MyProc = NULL;
	(void) setpgid(0, 0);
#ifdef __linux__
	(void) prctl(PR_SET_PDEATHSIG, SIGQUIT);

	/* Timer slack would lengthen its short naps. */
	(void) prctl(PR_SET_TIMERSLACK, 1000);
#endif
	if (getppid() != supervisor)
		gpusort_service_end_process(GS_END_ASKED);
	set_ps_display("opening devices");
	gpusort_device_process_main();
}

/*
 * Log why there is no device process, unless the same reason was logged last.
 */
static void
report_reason(const char *reason)
{
	if (strcmp(last_reason, reason) == 0)
		return;
	strlcpy(last_reason, reason, sizeof(last_reason));
	ereport(LOG,
			(errmsg("pg_gpusort sorts on the CPU: %s", last_reason)));
}

static void
start_child(void)
{
	pid_t		pid;
	sigset_t	all;
	sigset_t	usual;

	pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_STARTING);
	gpusort_service->message[0] = '\0';
	gpusort_service->end = GS_END_UNEXPECTED;
	child_start = GetCurrentTimestamp();
	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &usual);
	pid = fork();
	if (pid == 0)
		become_device_process();
	sigprocmask(SIG_SETMASK, &usual, NULL);
	if (pid < 0)
	{
		char		reason[GPUSORT_MESSAGE_BYTES];

		snprintf(reason, sizeof(reason), "could not fork the device process: %m");
		report_reason(reason);
		next_start = TimestampTzPlusMilliseconds(child_start, LAST_RESTART_MS);
		return;
	}
	child = pid;
	hung = false;
	silent_us = 0;
	last_look = child_start;
	pg_atomic_write_u32(&gpusort_service->device_pid, pid);
}

/* Notify all clients that their sessions are lost. */
static void
declare_sessions_lost(void)
{
	pg_atomic_fetch_add_u32(&gpusort_service->epoch, 1);
	pg_memory_barrier();
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
	{
		GsSlot	   *slot = &gpusort_service->slots[s];
		uint32		state = pg_atomic_read_u32(&slot->state);

		if (state != GS_SLOT_FREE && state != GS_SLOT_CLAIMED &&
			state != GS_SLOT_CLOSING)
			SetLatch(slot->client);
	}
}

/* Free the slots that clients have left, while there is no device process. */
static void
free_slots(void)
{
	for (uint32 s = 0; s < gpusort_service->nslots; s++)
		if (pg_atomic_read_u32(&gpusort_service->slots[s].state) == GS_SLOT_CLOSING)
			gpusort_slot_free(s);
}

/* Returns why a process with this status of waitpid() has ended. */
static GsProcessEnd
end_of(int status)
{
	return WIFEXITED(status) ? gpusort_service->end : GS_END_UNEXPECTED;
}

/* Says how a process has ended that should not have, as in "exited with exit code 1", or "". */
static void
describe_end(int status, char *text, Size bytes)
{
	text[0] = '\0';
	if (WIFSIGNALED(status))
		snprintf(text, bytes, "was terminated by signal %d", WTERMSIG(status));
	else if (end_of(status) == GS_END_UNEXPECTED)
		snprintf(text, bytes, "exited with exit code %d", WEXITSTATUS(status));
}

/*
 * Record the end for the devices.  If it was not expected, the device that was being
 * opened may be the cause, unless somebody has killed the process.
 */
static void
record_end(int status)
{
	char		cause[GPUSORT_MESSAGE_BYTES];

	describe_end(status, cause, sizeof(cause));
	if (hung)
		strlcpy(cause, "did not respond", sizeof(cause));
	else if (WIFSIGNALED(status) &&
			 (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM))
		cause[0] = '\0';
	gpusort_devices_process_ended(cause);
}

/* Log an end that was not requested. */
static void
report_end(int status)
{
	int			d = gpusort_service->lost_device;
	char		how[GPUSORT_MESSAGE_BYTES];

	describe_end(status, how, sizeof(how));
	if (how[0] != '\0')
		ereport(WARNING,
				(errmsg("the device process of pg_gpusort %s", how),
				 errdetail("Sorts in progress continue on the CPU.")));
	else if (end_of(status) == GS_END_LOST)
		ereport(WARNING,
				(errmsg("pg_gpusort lost GPU %d: %s",
						gpusort_service->devices[d].info.ordinal,
						gpusort_service->message),
				 gpusort_devices_left_out(d) ?
				 errdetail("Sorts in progress continue on the CPU. The GPU has failed %u times in a row, and is left out for an hour, or until the configuration is reloaded.",
						   pg_atomic_read_u32(&gpusort_service->devices[d].failures)) :
				 errdetail("Sorts in progress continue on the CPU.")));
	else if (end_of(status) != GS_END_AGAIN)
		ereport(LOG,
				(errmsg("the device process of pg_gpusort ended")));
}

/* Choose when to start again after an unexpected end. */
static void
plan_restart(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (TimestampDifferenceExceeds(child_start, now, STABLE_MS))
		restart_ms = FIRST_RESTART_MS;
	next_start = TimestampTzPlusMilliseconds(now, restart_ms);
	restart_ms = Min(2 * restart_ms, LAST_RESTART_MS);
	pg_atomic_fetch_add_u32(&gpusort_service->restarts, 1);
}

/* The child has ended: find out how, and choose when to start a new one. */
static void
child_ended(int status)
{
	child = 0;
	if (pg_atomic_read_u32(&gpusort_service->state) == GS_SERVICE_READY)
		last_reason[0] = '\0';
	pg_atomic_write_u32(&gpusort_service->device_pid, 0);
	record_end(status);
	if (end_of(status) == GS_END_NO_DEVICE)
	{
		pg_write_barrier();		/* who sees the state sees the message */
		pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_FAILED);
		report_reason(gpusort_service->message);
		next_start = gpusort_devices_next_try();
	}
	else
	{
		pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_STARTING);
		plan_restart();
		if (!hung)
			report_end(status);
	}
	if (!hung)
		declare_sessions_lost();
}

static void
reap_child(void)
{
	int			status;

	if (child != 0 && waitpid(child, &status, WNOHANG) == child)
		child_ended(status);
}

/* Why there is no service while a process cannot be ended. */
static void
set_not_responding(void)
{
	strlcpy(gpusort_service->message, "the device process does not respond",
			GPUSORT_MESSAGE_BYTES);
	pg_write_barrier();			/* who sees the state sees the message */
	pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_FAILED);
}

/*
 * Kill the child if it has taken no step for too long.  The time during which this
 * process does not look does not count: the whole machine may have been stopped.
 *
 * A process that waits in the driver may not end at once, or not at all, so its
 * sessions are lost from now on.  Their chunks are freed when it has ended.
 */
static void
look_for_hang(void)
{
	TimestampTz now = GetCurrentTimestamp();
	int64		since_us = Min(Max(now - last_look, 0), LOOK_MS * 1000);
	int64		limit_us = (int64) gpusort_device_timeout * 1000000;
	uint32		steps = pg_atomic_read_u32(&gpusort_service->steps);

	last_look = now;
	if (hung)
		return;
	if (steps != steps_seen ||
		pg_atomic_read_u32(&gpusort_service->asleep) == GS_ASLEEP)
		since_us = silent_us = 0;
	steps_seen = steps;
	silent_us += since_us;
	if (pg_atomic_read_u32(&gpusort_service->state) == GS_SERVICE_STARTING ||
		gpusort_devices_any_opening())
		limit_us *= OPENING_FACTOR;
	if (limit_us == 0 || silent_us < limit_us)
		return;
	hung = true;
	(void) kill(child, SIGKILL);
	set_not_responding();
	declare_sessions_lost();
	ereport(WARNING,
			(errmsg("the device process of pg_gpusort has not responded for %lld seconds, and is killed",
					(long long) (silent_us / 1000000)),
			 errdetail("Sorts in progress continue on the CPU."),
			 errhint("Increase pg_gpusort.device_timeout if GPUs need more time.")));
}

/* Wait for the end of the child, but not for long.  Returns whether it has ended. */
static bool
child_ends(void)
{
	int			status;

	for (int waited = 0; waited < END_PATIENCE_MS; waited += 10)
	{
		if (waitpid(child, &status, WNOHANG) != 0)
			return true;
		pg_usleep(10 * 1000);
	}
	return false;
}

/*
 * before_shmem_exit callback: the child must not outlive this process.  If even
 * SIGKILL does not end it, it waits in the driver, for how long nobody knows.  The
 * server must be able to shut down nevertheless.
 */
static void
end_child(int code, Datum arg)
{
	bool		ended;

	gpusort_service->supervisor = NULL;
	if (child == 0)
		return;
	(void) kill(child, SIGTERM);
	ended = child_ends();
	if (!ended)
	{
		(void) kill(child, SIGKILL);
		ended = child_ends();
	}
	if (ended)
	{
		pg_atomic_write_u32(&gpusort_service->device_pid, 0);
		gpusort_devices_process_ended("");
		pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_OFF);
	}
	else
	{
		set_not_responding();
		ereport(WARNING,
				(errmsg("could not end the device process of pg_gpusort with PID %d",
						(int) child)));
	}
	child = 0;
	declare_sessions_lost();
}

/*
 * Is there still a device process that the previous supervisor could not end?  Until it
 * has ended, GPUs may still write to chunks of the pool.
 */
static bool
is_left_over(void)
{
	if (left_over == 0)
		return false;
	if (kill(left_over, 0) == 0 || errno != ESRCH)
		return true;
	left_over = 0;
	pg_atomic_write_u32(&gpusort_service->device_pid, 0);
	gpusort_devices_process_ended("");
	return false;
}

/* ----------------------------------------------------------------
 *		the worker
 * ----------------------------------------------------------------
 */

/* Show in pg_stat_activity what the service does. */
static void
report_activity(void)
{
	int			ndevices = 0;
	int			sessions = 0;
	char		activity[64];

	for (int d = 0; d < pg_atomic_read_u32(&gpusort_service->ndevices); d++)
	{
		GsServiceDevice *device = &gpusort_service->devices[d];

		ndevices += pg_atomic_read_u32(&device->state) == GS_DEVICE_USED;
		sessions += pg_atomic_read_u32(&device->sessions);
	}
	snprintf(activity, sizeof(activity), "GPUs: %d, sessions: %d", ndevices,
			 sessions);
	pgstat_report_activity(sessions > 0 ? STATE_RUNNING : STATE_IDLE,
						   activity);
}

/* Reloading the configuration also makes devices due that were left out. */
static void
reload(void)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	gpusort_devices_try_all();
	if (child == 0)
		next_start = GetCurrentTimestamp();
	else
		gpusort_service_wake();
}

/*
 * Returns the number of milliseconds to sleep until there is something to do.
 */
static long
time_to_sleep(void)
{
	long		ms = child != 0 || left_over != 0 ? LOOK_MS :
		TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next_start);

	return Min(Max(ms, 1), LOOK_MS);
}

void
gpusort_service_main(Datum arg)
{
	uint32		wait_event;

	if (gpusort_service == NULL)
		proc_exit(0);			/* not to be restarted: the system lacks
								 * something */

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGCHLD, handle_sigchld);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	SetConfigOption("application_name", MyBgworkerEntry->bgw_name, PGC_USERSET,
					PGC_S_SESSION);
	wait_event = GPUSORT_NEW_WAIT_EVENT("GpuSortServiceMain");

	left_over = pg_atomic_read_u32(&gpusort_service->device_pid);
	gpusort_service->supervisor = MyLatch;
	before_shmem_exit(end_child, (Datum) 0);

	while (!ShutdownRequestPending)
	{
		reap_child();
		if (ConfigReloadPending)
			reload();
		if (child != 0)
			look_for_hang();
		else if (!is_left_over())
		{
			free_slots();
			if (GetCurrentTimestamp() >= next_start)
				start_child();
		}
		report_activity();
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 time_to_sleep(), wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}

	/* Not 0, after which the worker would not be restarted. */
	proc_exit(1);
}
