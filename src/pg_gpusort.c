/*-------------------------------------------------------------------------
 *
 * pg_gpusort.c
 *		Entry point of the library: starts its modules.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"

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

GPUSORT_MODULE_MAGIC("pg_gpusort", GPUSORT_VERSION);

extern PGDLLEXPORT void _PG_init(void);

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
}
