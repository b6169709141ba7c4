/*-------------------------------------------------------------------------
 *
 * sort_stats.c
 *		Counts sorts, for pg_stat_gpusort and pg_stat_gpusort_fallbacks, and checks what
 *		tests require of them.
 *
 * If the library is in shared_preload_libraries, the counters are in shared memory
 * and cover the whole server since its start.  If it is loaded into a session, there
 * is no shared memory for it, and the counters cover only that backend.
 *
 * No locking is needed.  Every counter is an atomic to which each sort adds once, and
 * no reader requires them to be consistent with each other.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "utils/timestamp.h"

#include "preload.h"
#include "settings.h"
#include "sort/base/sort_stats.h"

/* The counters have the order of GsStatsSnapshot, all of whose members have 64 bits. */
#define NCOUNTERS			(sizeof(GsStatsSnapshot) / sizeof(uint64))
#define COUNTERS_OF_KIND	(sizeof(GsSortCounts) / sizeof(uint64))
#define COUNTER(member)		(&counters[offsetof(GsStatsSnapshot, member) / sizeof(uint64)])

static pg_atomic_uint64 local_counters[NCOUNTERS];
static pg_atomic_uint64 *counters = local_counters;

const char *const gpusort_stats_kind_names[] = {
	[GS_KIND_GPU] = "gpu",
	[GS_KIND_CPU] = "cpu",
	[GS_KIND_EXTERNAL] = "external",
};

void
gpusort_stats_count_sort(GsSortKind kind, const GsSortCounts *counts)
{
	pg_atomic_uint64 *totals = COUNTER(kinds) + kind * COUNTERS_OF_KIND;
	const uint64 *numbers = (const uint64 *) counts;

	/* Most of them are 0, and adding nothing takes as long as adding. */
	for (Size i = 0; i < COUNTERS_OF_KIND; i++)
		if (numbers[i] > 0)
			pg_atomic_fetch_add_u64(&totals[i], numbers[i]);
}

void
gpusort_stats_count_reason(GsReason reason)
{
	pg_atomic_fetch_add_u64(COUNTER(fallbacks) + reason, 1);
}

void
gpusort_stats_count_validation(void)
{
	pg_atomic_fetch_add_u64(COUNTER(validations), 1);
}

void
gpusort_stats_count_error(void)
{
	pg_atomic_fetch_add_u64(COUNTER(errors), 1);
}

void
gpusort_stats_read(GsStatsSnapshot *snapshot)
{
	uint64	   *numbers = (uint64 *) snapshot;

	for (Size i = 0; i < NCOUNTERS; i++)
		numbers[i] = pg_atomic_read_u64(&counters[i]);
}

void
gpusort_stats_reset(void)
{
	for (Size i = 0; i < NCOUNTERS; i++)
		pg_atomic_write_u64(&counters[i], 0);
	pg_atomic_write_u64(COUNTER(reset_time), (uint64) GetCurrentTimestamp());
}

bool
gpusort_stats_are_shared(void)
{
	return counters != local_counters;
}

static void
init_counters(void)
{
	for (Size i = 0; i < NCOUNTERS; i++)
		pg_atomic_init_u64(&counters[i], 0);
	gpusort_stats_reset();
}

static Size
shared_bytes(void)
{
	return sizeof(local_counters);
}

static void
start_shared(void *memory, bool found)
{
	counters = memory;
	if (!found)
		init_counters();
}

static const GsSharedMemory shared_memory = {
	.name = "pg_gpusort statistics",
	.bytes = shared_bytes,
	.start = start_shared,
};

void
gpusort_stats_init(void)
{
	init_counters();
	gpusort_shared_memory_add(&shared_memory);
}

/* ----------------------------------------------------------------
 *		what is left to stock PostgreSQL, and what tests require
 * ----------------------------------------------------------------
 */

#define REQUIRE_HINT	"This is an error because pg_gpusort.debug_require is set."

static const char *const left_messages[] = {
	[GS_TASK_SORT] = "a sort is left to stock PostgreSQL",
	[GS_TASK_INDEX_BUILD] = "an index build is left to stock PostgreSQL",
};

void
gpusort_requirement_leave(GsTask what, GsReason reason)
{
	if (reason != GS_REASON_DISABLED &&
		reason != GS_REASON_INDEX_DISABLED &&
		reason != GS_REASON_FEW_ROWS &&
		reason != GS_REASON_FEW_INDEX_ROWS)
		gpusort_stats_count_reason(reason);
	if (gpusort_debug_require != GS_REQUIRE_OFF)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s", left_messages[what]),
				 errdetail("The reason is \"%s\".",
						   gpusort_reason_text(reason)),
				 errhint(REQUIRE_HINT)));
}

void
gpusort_requirement_check(const GsSortReport *report)
{
	GsReason	reason = report->fallback;

	if (reason == GS_REASON_NONE)
		reason = report->gpu_reason;
	if (gpusort_debug_require == GS_REQUIRE_OFF ||
		gpusort_debug_require == GS_REQUIRE_NODE ||
		(gpusort_debug_require == GS_REQUIRE_CPU &&
		 report->kind == GS_KIND_CPU) ||
		(gpusort_debug_require == GS_REQUIRE_GPU &&
		 report->kind == GS_KIND_GPU))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 gpusort_debug_require == GS_REQUIRE_GPU ?
			 errmsg("a sort was not done on a GPU") :
			 errmsg("a sort was not done in memory on the CPU"),
			 reason == GS_REASON_NONE ? 0 :
			 errdetail("The reason is \"%s\".",
					   gpusort_reason_text(reason)),
			 errhint(REQUIRE_HINT)));
}
