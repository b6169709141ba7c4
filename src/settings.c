/*-------------------------------------------------------------------------
 *
 * settings.c
 *		The pg_gpusort.* settings, described in docs/settings.md.
 *
 * All settings except those of the GPU service can be set in a session, so
 * that the library also works when it is loaded there, by LOAD or, for its functions,
 * by the first call of one of them.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <ctype.h>
#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

#include "settings.h"
#include "work.h"

bool		gpusort_enable = true;
bool		gpusort_enable_index_build = true;
int			gpusort_backend = GS_BACKEND_AUTO;
int			gpusort_gpu_min_rows = -1;
int			gpusort_verify = GS_VERIFY_SAMPLE;
int			gpusort_min_rows = -1;
int			gpusort_min_index_rows = -1;
int			gpusort_work_mem = -1;
int			gpusort_debug_require = GS_REQUIRE_OFF;
bool		gpusort_debug_hide = false;
bool		gpusort_debug_stock_ties = false;
int			gpusort_debug_divide = GS_AUTO;
int			gpusort_debug_whole_tuples = GS_AUTO;
char	   *gpusort_device_library = NULL;
char	   *gpusort_device_list = NULL;
int			gpusort_pool_size = 0;
static int	device_memory = 0;	/* kB, or 0 for no limit */
static int	max_device_memory = 0;	/* likewise */
int			gpusort_max_sessions_per_backend = -1;
int			gpusort_max_sessions_per_role = -1;
int			gpusort_max_device_memory_per_role = 0;
int			gpusort_idle_session_timeout = 0;
int			gpusort_device_timeout = 60;
int			gpusort_warm_memory = -1;
int			gpusort_warm_memory_timeout = 60;
#ifdef GPUSORT_FAULTS
char	   *gpusort_debug_fault = NULL;
int			gpusort_debug_wrong = GS_WRONG_NOTHING;
static char *debug_work = NULL;
#endif

/* Range of pg_gpusort.pool_size in kB, unless it is 0. */
#define MIN_POOL_SIZE		1024
#define MAX_POOL_SIZE		(64 * 1024 * 1024)
#define DEFAULT_POOL_SIZE	(256 * 1024)

/* Largest device number in pg_gpusort.devices. */
#define MAX_ORDINAL			1023

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

static const struct config_enum_entry verify_options[] = {
	{"off", GS_VERIFY_OFF, false},
	{"sample", GS_VERIFY_SAMPLE, false},
	{"all", GS_VERIFY_ALL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry auto_options[] = {
	{"auto", GS_AUTO, false},
	{"on", GS_ON, false},
	{"off", GS_OFF, false},
	{NULL, 0, false}
};

#ifdef GPUSORT_FAULTS
static const struct config_enum_entry wrong_options[] = {
	{"", GS_WRONG_NOTHING, false},
	{"encoding", GS_WRONG_ENCODING, false},
	{"comparison", GS_WRONG_COMPARISON, false},
	{"merge", GS_WRONG_MERGE, false},
	{NULL, 0, false}
};
#endif

/* See gpusort_settings_plan_rows(). */
#define PLAN_ROWS			100000

/* The minimum is 64kB, as for work_mem; -1 means "the value of work_mem". */
static bool
check_work_mem(int *newval, void **extra, GucSource source)
{
	if (*newval == -1 || *newval >= 64)
		return true;
	GUC_check_errdetail("The value must be -1 or at least 64kB.");
	return false;
}

static bool
check_pool_size(int *newval, void **extra, GucSource source)
{
	if (*newval == 0 || *newval >= MIN_POOL_SIZE)
		return true;
	GUC_check_errdetail("The value must be 0 or at least 1MB.");
	return false;
}

/*
 * Read the next number of a list like "0,2".  Returns false at the end of the
 * list.  Also returns false, with *valid set to false, at anything else.
 */
static bool
next_device(const char **list, int *ordinal, bool *valid)
{
	char	   *end;
	long		number;

	*valid = true;
	while (isspace((unsigned char) **list))
		(*list)++;
	if (**list == '\0')
		return false;
	number = strtol(*list, &end, 10);
	*valid = end != *list && number >= 0 && number <= MAX_ORDINAL;
	*ordinal = (int) number;
	while (isspace((unsigned char) *end))
		end++;
	if (*end == ',')
		end++;
	else if (*end != '\0')
		*valid = false;
	*list = end;
	return *valid;
}

static bool
check_devices(char **newval, void **extra, GucSource source)
{
	const char *list = *newval;
	bool		valid;
	int			ordinal;

	if (pg_strcasecmp(*newval, "all") == 0)
		return true;
	while (next_device(&list, &ordinal, &valid))
		;
	if (!valid)
		GUC_check_errdetail("The value must be \"all\" or a list of device numbers.");
	return valid;
}

bool
gpusort_settings_use_device(int wanted)
{
	const char *list = gpusort_device_list;
	bool		valid;
	int			ordinal;

	if (pg_strcasecmp(list, "all") == 0)
		return true;
	while (next_device(&list, &ordinal, &valid))
		if (ordinal == wanted)
			return true;
	return false;
}

/*
 * Prepared statements and functions keep their plans.  Those made under the old value must
 * not outlive it: a reload with pg_gpusort.enable = off has to stop our sorts in sessions
 * that are connected, too.
 */
static void
assign_enable(bool newval, void *extra)
{
	if (newval != gpusort_enable)
		ResetPlanCache();
}

static void
assign_min_rows(int newval, void *extra)
{
	if (newval != gpusort_min_rows)
		ResetPlanCache();
}

int
gpusort_settings_plan_rows(void)
{
	return gpusort_min_rows >= 0 ? gpusort_min_rows : PLAN_ROWS;
}

int
gpusort_settings_work_mem(void)
{
	return gpusort_work_mem == -1 ? work_mem : gpusort_work_mem;
}

/* Returns the lower one of two limits, of which 0 is none. */
static int
lower_limit(int a, int b)
{
	return a == 0 || b == 0 ? Max(a, b) : Min(a, b);
}

int
gpusort_settings_device_memory(void)
{
	return lower_limit(lower_limit(device_memory, max_device_memory),
					   gpusort_max_device_memory_per_role);
}

/*
 * What the server has in common, the GPU service and the warm memory, reads its
 * settings when the server starts.  If the library is loaded later there is neither,
 * but the values in postgresql.conf are accepted.
 */
static void
define_server_settings(void)
{
	GucContext	context = process_shared_preload_libraries_in_progress ?
		PGC_POSTMASTER : PGC_SIGHUP;

	DefineCustomStringVariable("pg_gpusort.device_library",
							   "Sets the name of the library that sorts on GPUs.",
							   "A name without a path is looked up in PostgreSQL's library directory. If the library does not exist, there is no GPU service.",
							   &gpusort_device_library,
							   GPUSORT_DEFAULT_DEVICE_LIBRARY,
							   context, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("pg_gpusort.devices",
							   "Sets which GPUs may be used.",
							   "The value is \"all\" or a comma-separated list of device numbers.",
							   &gpusort_device_list,
							   "all",
							   context, 0,
							   check_devices, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.pool_size",
							"Sets the size of the shared memory used to transfer rows to and from GPUs.",
							"0 disables the GPU service.",
							&gpusort_pool_size,
							DEFAULT_POOL_SIZE, 0, MAX_POOL_SIZE,
							context, GUC_UNIT_KB,
							check_pool_size, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.device_timeout",
							"Sets the time after which a device process that does not respond is ended.",
							"0 means that it is never ended.",
							&gpusort_device_timeout,
							60, 0, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.warm_memory",
							"Sets the maximum memory that the server keeps for sorts to come.",
							"-1 means an eighth of the machine's memory, and at most 8GB. 0 means none.",
							&gpusort_warm_memory,
							-1, -1, INT_MAX,
							context, GUC_UNIT_KB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.warm_memory_timeout",
							"Sets the time after which kept memory that no sort has used is given back.",
							"0 means as soon as no sort uses it.",
							&gpusort_warm_memory_timeout,
							60, 0, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
}

void
gpusort_settings_init(void)
{
	DefineCustomBoolVariable("pg_gpusort.enable",
							 "Enables the planner's use of GpuSort nodes.",
							 "If it is off, PostgreSQL sorts, and plans that were kept are made anew.",
							 &gpusort_enable,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, assign_enable, NULL);
	DefineCustomBoolVariable("pg_gpusort.enable_index_build",
							 "Enables building btree and GIN indexes by radix sort.",
							 "If it is off, PostgreSQL builds them.",
							 &gpusort_enable_index_build,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.backend",
							 "Sets where sorts are performed.",
							 "If a GPU is available, \"auto\" uses it for large sorts, \"gpu\" for all sorts, and \"cpu\" for none.",
							 &gpusort_backend,
							 GS_BACKEND_AUTO, backend_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.gpu_min_rows",
							"Sets the minimum estimated number of rows for a sort to use a GPU, if pg_gpusort.backend is \"auto\".",
							"-1 means as many as make a GPU faster than the CPU, as measured when the GPU was opened.",
							&gpusort_gpu_min_rows,
							-1, -1, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.verify",
							 "Sets how many sorted rows are compared with the row before, to find out whether they are in order.",
							 "If they are not, a query ends with an error, and an index is built by PostgreSQL.",
							 &gpusort_verify,
							 GS_VERIFY_SAMPLE, verify_options,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.min_rows",
							"Sets the minimum estimated number of rows for a sort to be taken over.",
							"-1 means as many as PostgreSQL needs some milliseconds for, 0 that every eligible sort is taken over.",
							&gpusort_min_rows,
							-1, -1, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, assign_min_rows, NULL);
	DefineCustomIntVariable("pg_gpusort.min_index_rows",
							"Sets the minimum estimated number of rows for an index build to be taken over.",
							"-1 means as many as make it faster. If pg_gpusort.min_rows is lower, that is the minimum.",
							&gpusort_min_index_rows,
							-1, -1, INT_MAX,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.work_mem",
							"Sets the maximum host memory to be used for one sort.",
							"-1 means to use the value of work_mem.",
							&gpusort_work_mem,
							-1, -1, MAX_KILOBYTES,
							PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN,
							check_work_mem, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.debug_require",
							 "Raises an error if a sort is not performed in the given way.",
							 "This is for tests, which could otherwise pass without testing anything.",
							 &gpusort_debug_require,
							 GS_REQUIRE_OFF, require_options,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_gpusort.debug_hide",
							 "Hides GpuSort nodes from EXPLAIN.",
							 "This is for tests. Sort nodes are replaced when the execution of a plan starts.",
							 &gpusort_debug_hide,
							 false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_gpusort.debug_stock_ties",
							 "Returns rows with equal keys in the order of PostgreSQL's in-memory sort.",
							 "This is for tests. It is slow, because PostgreSQL sorts the keys before.",
							 &gpusort_debug_stock_ties,
							 false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.debug_divide",
							 "Sets whether sorts below a Gather are divided among its processes.",
							 "For tests, since the choice is made for speed.",
							 &gpusort_debug_divide,
							 GS_AUTO, auto_options,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.debug_whole_tuples",
							 "Sets whether sorts keep rows as whole tuples.",
							 "For tests, since the choice is made for speed.",
							 &gpusort_debug_whole_tuples,
							 GS_AUTO, auto_options,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.device_memory",
							"Sets the maximum device memory to be used for one sort.",
							"0 means that only the device's memory is the limit.",
							&device_memory,
							0, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_KB | GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.max_device_memory",
							"Sets the maximum of pg_gpusort.device_memory.",
							"0 means that users can set any value.",
							&max_device_memory,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_KB | GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.max_sessions_per_backend",
							"Sets the maximum number of sessions of the GPU service that a backend can use at the same time.",
							"-1 means half of all sessions.",
							&gpusort_max_sessions_per_backend,
							-1, -1, INT_MAX,
							PGC_SUSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.max_sessions_per_role",
							"Sets the maximum number of sessions of the GPU service that all backends of a role can use at the same time.",
							"-1 means no limit.",
							&gpusort_max_sessions_per_role,
							-1, -1, INT_MAX,
							PGC_SUSET, GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.max_device_memory_per_role",
							"Sets the maximum device memory that all sorts of a role can use at the same time.",
							"0 means no limit.",
							&gpusort_max_device_memory_per_role,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_KB | GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pg_gpusort.idle_session_timeout",
							"Sets for how long sorted rows that nobody reads stay on a device.",
							"After this time they are written to a temporary file. 0 means that they stay.",
							&gpusort_idle_session_timeout,
							0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
#ifdef GPUSORT_FAULTS
	DefineCustomStringVariable("pg_gpusort.debug_fault",
							   "Makes the GPU service or a memory allocation fail at some point of a sort.",
							   "This is for tests. The value has the form \"point:action[:number]\".",
							   &gpusort_debug_fault,
							   "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_gpusort.debug_wrong",
							 "Sorts some rows into a wrong order.",
							 "This is for tests.",
							 &gpusort_debug_wrong,
							 GS_WRONG_NOTHING, wrong_options,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);
	DefineCustomStringVariable("pg_gpusort.debug_work",
							   "Shows the maximum number of bytes processed between two checks for interrupts, and the total.",
							   "This is for tests. Setting it to any value resets both numbers.",
							   &debug_work,
							   "",
							   PGC_USERSET,
							   GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, gpusort_work_reset, gpusort_work_show);
#endif
	define_server_settings();

	MarkGUCPrefixReserved("pg_gpusort");
}
