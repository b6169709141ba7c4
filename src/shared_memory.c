/*-------------------------------------------------------------------------
 *
 * shared_memory.c
 *		Shared memory of the server in which this library keeps a structure.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "shared_memory.h"

#define MAX_STRUCTURES	8

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
