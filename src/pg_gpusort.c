/*-------------------------------------------------------------------------
 *
 * pg_gpusort.c
 *		Entry point of the library: starts its modules.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "exec/gpusort_node.h"
#include "exec/limit_bound.h"
#include "index/index_hook.h"
#include "key/distrust.h"
#include "loading.h"
#include "plan/plan_swap.h"
#include "plan/sort_paths.h"
#include "service/service_shmem.h"
#include "settings.h"
#include "sort/base/progress.h"
#include "sort/base/sort_stats.h"
#include "sort/base/warm_memory.h"
#include "version.h"

extern PGDLLEXPORT void _PG_init(void);

/*
 * In the log of a server that preloads the library: which one it is, and what it has.  The GPU
 * service logs what it finds later.
 */
static void
log_start(void)
{
	const char *no_service;
	GsWarmMemoryStatus memory;

	if (!process_shared_preload_libraries_in_progress)
		return;
	no_service = gpusort_service_absence();
	gpusort_warm_memory_status(&memory);
	ereport(LOG,
			(errmsg("pg_gpusort %s: %s; %s", gpusort_version_text,
					no_service == NULL ?
					psprintf("GPUs by library \"%s\"", gpusort_library_path) :
					psprintf("no GPUs: %s", no_service),
					memory.reason == NULL ?
					psprintf("up to %zu MB of warm memory", memory.limit >> 20) :
					psprintf("no warm memory: %s", memory.reason))));
}

void
_PG_init(void)
{
	gpusort_settings_init();
	gpusort_loading_init();
	gpusort_distrust_init();
	gpusort_stats_init();
	gpusort_progress_init();
	gpusort_warm_memory_init();
	gpusort_service_init();
	gpusort_node_init();
	gpusort_limit_bound_init();
	gpusort_plan_swap_init();
	gpusort_sort_paths_init();
	gpusort_join_paths_init();
	gpusort_index_hook_init();
	log_start();
}
