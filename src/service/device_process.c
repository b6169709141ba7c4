/*-------------------------------------------------------------------------
 *
 * device_process.c
 *		Main loop of the process that owns the GPUs, with its signals and its end.
 *
 * The process is a child of the supervisor, and the postmaster does not know
 * it.  It must not use locks, memory contexts of a transaction, or anything
 * else that would need cleanup; it may write to the server's log and set
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

#include "service/devices.h"
#include "service/service_shmem.h"

/*
 * NAP_US is how long to nap while work is in progress, and for NAPS_AFTER_WORK
 * naps after the last work.  Otherwise the process sleeps for up to
 * IDLE_MS.  While it naps, clients need not wake it up, which costs them
 * more than writing a thousand rows.
 */
#define NAP_US				50
#define NAPS_AFTER_WORK		40
#define IDLE_MS				5000

static volatile sig_atomic_t end_requested = false;

/* ----------------------------------------------------------------
 *		signals
 * ----------------------------------------------------------------
 */

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
	gpusort_service_end_process(GS_END_ASKED);
}

static void
set_up_signals(void)
{
	pqsignal(SIGTERM, handle_sigterm);
	pqsignal(SIGQUIT, handle_sigquit);
	pqsignal(SIGINT, GPUSORT_SIG_IGN);
	pqsignal(SIGHUP, GPUSORT_SIG_IGN);
	pqsignal(SIGUSR1, GPUSORT_SIG_IGN);
	pqsignal(SIGUSR2, GPUSORT_SIG_IGN);
	pqsignal(SIGURG, GPUSORT_SIG_IGN);
	pqsignal(SIGALRM, GPUSORT_SIG_IGN);
	pqsignal(SIGCHLD, GPUSORT_SIG_DFL);
	sigprocmask(SIG_SETMASK, &UnBlockSig, NULL);
}

/* ----------------------------------------------------------------
 *		the loop
 * ----------------------------------------------------------------
 */

/*
 * Sleep until a client has something to do, or the time is over; returns true in that
 * case.  If a client has woken us already, the semaphore says so.
 */
static bool
sleep_until_woken(void)
{
	long		ms = gpusort_device_sessions_idle_ms(IDLE_MS);
	struct timespec until;
	int			result;
	uint32		dozing = GS_DOZING;

	(void) pg_atomic_compare_exchange_u32(&gpusort_service->asleep, &dozing, GS_ASLEEP);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while ((result = sem_timedwait(&gpusort_service->wakeup, &until)) != 0 &&
		   errno == EINTR && !end_requested)
		;
	return result != 0 && errno == ETIMEDOUT;
}

void
gpusort_device_process_main(void)
{
	pid_t		supervisor = getppid();
	bool		transferring;
	bool		idle = false;
	int			naps = 0;

	set_up_signals();
	gpusort_device_sessions_init(gpusort_devices_open());
	set_ps_display("serving");
	pg_write_barrier();			/* who sees the state sees the devices */
	pg_atomic_write_u32(&gpusort_service->state, GS_SERVICE_READY);

	while (!end_requested && getppid() == supervisor)
	{
		bool		worked = gpusort_device_sessions_serve(&transferring);

		gpusort_service_step();
		if (worked || transferring)
			naps = NAPS_AFTER_WORK;
		if (worked)
			continue;
		gpusort_devices_look_at_health();
		if (naps > 0)
		{
			naps--;
			pg_usleep(NAP_US);
			continue;
		}

		/*
		 * We see what was written before the barrier.  Whoever writes later
		 * sees that we are asleep, and wakes us up.
		 */
		pg_atomic_write_u32(&gpusort_service->asleep, GS_DOZING);
		pg_memory_barrier();
		if (!gpusort_device_sessions_serve(&transferring))
			idle = sleep_until_woken();
		pg_atomic_write_u32(&gpusort_service->asleep, GS_AWAKE);

		/*
		 * Opening a device takes time, and may end this process, so there
		 * must be no sessions.
		 */
		if (!gpusort_device_sessions_any())
		{
			/* Not at the end of each session, as the next one takes it again. */
			if (idle)
				gpusort_devices_trim();
			gpusort_devices_try_again();
		}
		idle = false;
	}
	gpusort_devices_close();
	gpusort_service_end_process(GS_END_ASKED);
}
