/*-------------------------------------------------------------------------
 *
 * preload.c
 *		What a server that preloads this library gives it: shared memory and background workers.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "postmaster/bgworker_internals.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "preload.h"

#define MAX_STRUCTURES	8

/* Seconds until the postmaster restarts a worker after it has ended. */
#define RESTART_S	5

static GsSharedMemory structures[MAX_STRUCTURES];
static int	nstructures = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	for (int s = 0; s < nstructures; s++)
	{
		RequestAddinShmemSpace(CACHELINEALIGN(structures[s].bytes()));
		if (structures[s].lock != NULL)
			RequestNamedLWLockTranche(structures[s].lock, 1);
	}
}

static void
start_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int s = 0; s < nstructures; s++)
	{
		Size		bytes = structures[s].bytes();
		bool		found;
		void	   *memory;

		if (bytes == 0)
			continue;
		memory = ShmemInitStruct(structures[s].name, bytes, &found);
		structures[s].start(memory, found);
	}
	LWLockRelease(AddinShmemInitLock);
}

void
gpusort_shared_memory_add(const GsSharedMemory *memory)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	if (nstructures == 0)
	{
		prev_shmem_request_hook = shmem_request_hook;
		shmem_request_hook = request_shmem;
		prev_shmem_startup_hook = shmem_startup_hook;
		shmem_startup_hook = start_shmem;
	}
	Assert(nstructures < MAX_STRUCTURES);
	structures[nstructures++] = *memory;
}

/* PostgreSQL does not tell whether it has taken a worker. */
static bool
is_registered(const char *name)
{
	GPUSORT_WORKER_ITER iter;

	GPUSORT_FOREACH_WORKER(iter)
	{
		if (strcmp(GPUSORT_WORKER_AT(iter)->bgw_name, name) == 0)
			return true;
	}
	return false;
}

bool
gpusort_register_worker(const char *name, const char *function)
{
	BackgroundWorker worker = {0};

	strlcpy(worker.bgw_name, name, BGW_MAXLEN);
	strlcpy(worker.bgw_type, name, BGW_MAXLEN);
	strlcpy(worker.bgw_library_name, "pg_gpusort", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, function, sizeof(worker.bgw_function_name));

	/* pg_stat_activity shows only workers that have a connection. */
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = RESTART_S;
	RegisterBackgroundWorker(&worker);
	return is_registered(name);
}
