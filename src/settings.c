/*-------------------------------------------------------------------------
 *
 * settings.c
 *		The pg_gpusort.* settings, described in docs/settings.md.
 *
 * All of them can be set in a session, so that the library works when it is
 * loaded there, with LOAD or by the first call of one of its functions.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#include "settings.h"

bool		gpusort_enable = true;
int			gpusort_backend = GS_BACKEND_AUTO;
int			gpusort_min_rows = 100000;
int			gpusort_work_mem = -1;
int			gpusort_debug_require = GS_REQUIRE_OFF;
bool		gpusort_debug_hide = false;
bool		gpusort_debug_stock_ties = false;

static const struct config_enum_entry backend_options[] = {
	{"auto", GS_BACKEND_AUTO, false},
	{"gpu", GS_BACKEND_GPU, false},
	{"cpu", GS_BACKEND_CPU, false},
	{NULL, 0, false}
};

static const struct config_enum_entry require_options[] = {
	{"off", GS_REQUIRE_OFF, false},
	{"node", GS_REQUIRE_NODE, false},
	{"gpu", GS_REQUIRE_GPU, false},
	{"cpu", GS_REQUIRE_CPU, false},
	{NULL, 0, false}
};

/* As work_mem, the setting starts at 64kB; -1 means "the value of work_mem". */
static bool
check_work_mem(int *newval, void **extra, GucSource source)
{
	if (*newval == -1 || *newval >= 64)
		return true;
	GUC_check_errdetail("The value must be -1 or at least 64kB.");
	return false;
}

int
gpusort_settings_work_mem(void)
{
	return gpusort_work_mem == -1 ? work_mem : gpusort_work_mem;
}

void
gpusort_settings_init(void)
{
	DefineCustomBoolVariable("pg_gpusort.enable",
							 "Enables the planner's use of GpuSort in place of Sort.",
							 NULL,
							 &gpusort_enable,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.backend",
							 "Sets where sorts are done.",
							 "\"auto\" uses a GPU where there is one and it pays; \"gpu\" uses it for every sort.",
							 &gpusort_backend,
							 GS_BACKEND_AUTO, backend_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.min_rows",
							"Sets the estimated number of rows from which a sort is done by GpuSort.",
							"0 means every sort that can be, whatever its estimated size in memory.",
							&gpusort_min_rows,
							100000, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.work_mem",
							"Sets the host memory that one sort may use.",
							"-1 means the value of work_mem.",
							&gpusort_work_mem,
							-1, -1, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN,
							check_work_mem, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.debug_require",
							 "Raises an error when a sort is not done in the given way.",
							 "For tests, which could otherwise pass without having tested anything.",
							 &gpusort_debug_require,
							 GS_REQUIRE_OFF, require_options,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_gpusort.debug_hide",
							 "Keeps GpuSort out of plans as EXPLAIN shows them.",
							 "For tests: the plan is changed when its execution starts.",
							 &gpusort_debug_hide,
							 false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_gpusort.debug_stock_ties",
							 "Returns rows with equal keys in the order of PostgreSQL's in-memory sort.",
							 "For tests: slow, since each sort is done a second time to compare.",
							 &gpusort_debug_stock_ties,
							 false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	MarkGUCPrefixReserved("pg_gpusort");
}
