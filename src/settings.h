/*-------------------------------------------------------------------------
 *
 * settings.h
 *		The pg_gpusort.* settings, described in docs/settings.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SETTINGS_H
#define GPUSORT_SETTINGS_H

typedef enum GsBackendSetting
{
	GS_BACKEND_AUTO,
	GS_BACKEND_GPU,
	GS_BACKEND_CPU
} GsBackendSetting;

typedef enum GsRequireSetting
{
	GS_REQUIRE_OFF,
	GS_REQUIRE_NODE,			/* every sort of the plan is done by a GpuSort
								 * node */
	GS_REQUIRE_GPU,				/* and its rows stay in a GPU session to the
								 * end */
	GS_REQUIRE_CPU				/* and its rows stay in a memory sort to the
								 * end */
} GsRequireSetting;

/* How many rows are compared with the row before as they are returned. */
typedef enum GsVerifySetting
{
	GS_VERIFY_OFF,
	GS_VERIFY_SAMPLE,			/* as many as cost next to nothing */
	GS_VERIFY_ALL
} GsVerifySetting;

typedef enum GsAutoSetting
{
	GS_AUTO,
	GS_ON,
	GS_OFF
} GsAutoSetting;

extern bool gpusort_enable;
extern bool gpusort_enable_index_build;
extern int	gpusort_backend;	/* GsBackendSetting */
extern int	gpusort_gpu_min_rows;	/* -1: as the service has measured */
extern int	gpusort_verify;		/* GsVerifySetting */
extern int	gpusort_min_rows;	/* -1: as many as make a sort long */
extern int	gpusort_min_index_rows; /* or gpusort_min_rows, if that is lower;
									 * -1: as many as make a build faster */
extern int	gpusort_work_mem;	/* kB, or -1 for work_mem */
extern int	gpusort_debug_require;	/* GsRequireSetting */
extern bool gpusort_debug_hide;
extern bool gpusort_debug_stock_ties;
extern int	gpusort_debug_divide;	/* GsAutoSetting */
extern int	gpusort_debug_whole_tuples; /* GsAutoSetting */

/* It is not an error if no library of this name exists. */
#define GPUSORT_DEFAULT_DEVICE_LIBRARY	"pg_gpusort_cuda"

/*
 * Settings of what the server has in common; they have no effect unless the library is
 * preloaded.
 */
extern char *gpusort_device_library;
extern char *gpusort_device_list;
extern int	gpusort_pool_size;	/* kB, or 0 for no GPU service */
extern int	gpusort_max_sessions_per_backend;	/* or -1 for half of them */
extern int	gpusort_max_sessions_per_role;	/* or -1 for no limit */
extern int	gpusort_max_device_memory_per_role; /* kB, or 0 for no limit */
extern int	gpusort_idle_session_timeout;	/* ms, or 0 for no limit */
extern int	gpusort_device_timeout; /* s, or 0 for no limit */
extern int	gpusort_warm_memory;	/* kB, or -1 for a part of the machine's */
extern int	gpusort_warm_memory_timeout;	/* s */
#ifdef GPUSORT_FAULTS
extern char *gpusort_debug_fault;
extern int	gpusort_debug_wrong;	/* GsWrongSetting */
#endif

/* What sorts rows into a wrong order, in builds for tests. */
typedef enum GsWrongSetting
{
	GS_WRONG_NOTHING,
	GS_WRONG_ENCODING,			/* some values are encoded as words of others */
	GS_WRONG_COMPARISON,		/* strings whose words are equal are compared
								 * the wrong way round */
	GS_WRONG_MERGE				/* some rows of a merge come too early */
} GsWrongSetting;

#ifdef GPUSORT_FAULTS
#define GPUSORT_IS_WRONG(what)	unlikely(gpusort_debug_wrong == (what))
#else
#define GPUSORT_IS_WRONG(what)	false
#endif

/*
 * The rows from which other plans than PostgreSQL's are considered, and from which sorts are
 * taken over that are not nodes of a plan.  A Sort can be taken over with fewer rows, which
 * changes nothing else.
 */
extern int	gpusort_settings_plan_rows(void);

/* Returns the host memory that one sort may use, in kB. */
extern int	gpusort_settings_work_mem(void);

/* Returns how much memory of a device one sort may use, in kB, or 0 for no limit. */
extern int	gpusort_settings_device_memory(void);

/* Does pg_gpusort.devices allow the device with this number? */
extern bool gpusort_settings_use_device(int ordinal);

extern void gpusort_settings_init(void);

#endif							/* GPUSORT_SETTINGS_H */
