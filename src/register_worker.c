/*-------------------------------------------------------------------------
 *
 * register_worker.c
 *		Registers the background workers of this library.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "postmaster/bgworker_internals.h"

#include "register_worker.h"

/* Seconds until the postmaster restarts a worker after it has ended. */
#define RESTART_S	5

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
