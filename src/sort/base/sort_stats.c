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
 * No locking is needed.  Every field is an atomic to which each sort adds once, and
 * no reader requires the fields to be consistent with each other.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "utils/timestamp.h"

#include "settings.h"
#include "shared_memory.h"
#include "sort/base/sort_stats.h"

typedef struct GsAtomicCounts
{
	pg_atomic_uint64 sorts;
	pg_atomic_uint64 rows;
	pg_atomic_uint64 bytes;
	pg_atomic_uint64 drain_us;
	pg_atomic_uint64 sort_us;
	pg_atomic_uint64 parallel_sorts;
	pg_atomic_uint64 page_scans;
	pg_atomic_uint64 index_builds;
	pg_atomic_uint64 array_sorts;
} GsAtomicCounts;

typedef struct GsStats
{
	GsAtomicCounts kinds[GS_SORT_KINDS];
	pg_atomic_uint64 fallbacks[GS_FALLBACK_COUNT];
	pg_atomic_uint64 validations;
	pg_atomic_uint64 errors;
	pg_atomic_uint64 reset_time;	/* a TimestampTz */
} GsStats;

static GsStats local_stats;
static GsStats *stats = &local_stats;

static const char *const kind_names[] = {
	[GS_KIND_GPU] = "gpu",
	[GS_KIND_CPU] = "cpu",
	[GS_KIND_EXTERNAL] = "external",
};

const char *
gpusort_stats_kind_name(GsSortKind kind)
{
	return kind_names[kind];
}

static void
init_stats(GsStats *target)
{
	for (int k = 0; k < GS_SORT_KINDS; k++)
	{
		GsAtomicCounts *counts = &target->kinds[k];

		pg_atomic_init_u64(&counts->sorts, 0);
		pg_atomic_init_u64(&counts->rows, 0);
		pg_atomic_init_u64(&counts->bytes, 0);
		pg_atomic_init_u64(&counts->drain_us, 0);
		pg_atomic_init_u64(&counts->sort_us, 0);
		pg_atomic_init_u64(&counts->parallel_sorts, 0);
		pg_atomic_init_u64(&counts->page_scans, 0);
		pg_atomic_init_u64(&counts->index_builds, 0);
		pg_atomic_init_u64(&counts->array_sorts, 0);
	}
	for (int r = 0; r < GS_FALLBACK_COUNT; r++)
		pg_atomic_init_u64(&target->fallbacks[r], 0);
	pg_atomic_init_u64(&target->validations, 0);
	pg_atomic_init_u64(&target->errors, 0);
	pg_atomic_init_u64(&target->reset_time, (uint64) GetCurrentTimestamp());
}

/* Most counters of a sort do not change.  Adding nothing takes as long as adding. */
static inline void
add(pg_atomic_uint64 *total, uint64 count)
{
	if (count > 0)
		pg_atomic_fetch_add_u64(total, count);
}

void
gpusort_stats_count_sort(GsSortKind kind, const GsSortCounts *counts)
{
	GsAtomicCounts *total = &stats->kinds[kind];

	add(&total->sorts, counts->sorts);
	add(&total->rows, counts->rows);
	add(&total->bytes, counts->bytes);
	add(&total->drain_us, counts->drain_us);
	add(&total->sort_us, counts->sort_us);
	add(&total->parallel_sorts, counts->parallel_sorts);
	add(&total->page_scans, counts->page_scans);
	add(&total->index_builds, counts->index_builds);
	add(&total->array_sorts, counts->array_sorts);
}

void
gpusort_stats_count_fallback(GsFallback reason)
{
	pg_atomic_fetch_add_u64(&stats->fallbacks[reason], 1);
}

void
gpusort_stats_count_validation(void)
{
	pg_atomic_fetch_add_u64(&stats->validations, 1);
}

void
gpusort_stats_count_error(void)
{
	pg_atomic_fetch_add_u64(&stats->errors, 1);
}

void
gpusort_stats_read(GsStatsSnapshot *snapshot)
{
	for (int k = 0; k < GS_SORT_KINDS; k++)
	{
		GsAtomicCounts *counts = &stats->kinds[k];

		snapshot->kinds[k] = (GsSortCounts)
		{
			.sorts = pg_atomic_read_u64(&counts->sorts),
				.rows = pg_atomic_read_u64(&counts->rows),
				.bytes = pg_atomic_read_u64(&counts->bytes),
				.drain_us = pg_atomic_read_u64(&counts->drain_us),
				.sort_us = pg_atomic_read_u64(&counts->sort_us),
				.parallel_sorts = pg_atomic_read_u64(&counts->parallel_sorts),
				.page_scans = pg_atomic_read_u64(&counts->page_scans),
				.index_builds = pg_atomic_read_u64(&counts->index_builds),
				.array_sorts = pg_atomic_read_u64(&counts->array_sorts)
		};
	}
	for (int r = 0; r < GS_FALLBACK_COUNT; r++)
		snapshot->fallbacks[r] = pg_atomic_read_u64(&stats->fallbacks[r]);
	snapshot->validations = pg_atomic_read_u64(&stats->validations);
	snapshot->errors = pg_atomic_read_u64(&stats->errors);
	snapshot->reset_time = (TimestampTz) pg_atomic_read_u64(&stats->reset_time);
}

void
gpusort_stats_reset(void)
{
	for (int k = 0; k < GS_SORT_KINDS; k++)
	{
		GsAtomicCounts *counts = &stats->kinds[k];

		pg_atomic_write_u64(&counts->sorts, 0);
		pg_atomic_write_u64(&counts->rows, 0);
		pg_atomic_write_u64(&counts->bytes, 0);
		pg_atomic_write_u64(&counts->drain_us, 0);
		pg_atomic_write_u64(&counts->sort_us, 0);
		pg_atomic_write_u64(&counts->parallel_sorts, 0);
		pg_atomic_write_u64(&counts->page_scans, 0);
		pg_atomic_write_u64(&counts->index_builds, 0);
		pg_atomic_write_u64(&counts->array_sorts, 0);
	}
	for (int r = 0; r < GS_FALLBACK_COUNT; r++)
		pg_atomic_write_u64(&stats->fallbacks[r], 0);
	pg_atomic_write_u64(&stats->validations, 0);
	pg_atomic_write_u64(&stats->errors, 0);
	pg_atomic_write_u64(&stats->reset_time, (uint64) GetCurrentTimestamp());
}

bool
gpusort_stats_are_shared(void)
{
	return stats != &local_stats;
}

static Size
shared_bytes(void)
{
	return sizeof(GsStats);
}

static void
start_shared(void *memory, bool found)
{
	stats = memory;
	if (!found)
		init_stats(stats);
}

static const GsSharedMemory shared_memory = {
	.name = "pg_gpusort statistics",
	.bytes = shared_bytes,
	.start = start_shared,
};

void
gpusort_stats_init(void)
{
	init_stats(&local_stats);
	gpusort_shared_memory_add(&shared_memory);
}

/* ----------------------------------------------------------------
 *		what is left to stock PostgreSQL, and what tests require
 * ----------------------------------------------------------------
 */

#define REQUIRE_HINT	"This is an error because pg_gpusort.debug_require is set."

static const char *const left_messages[] = {
	[GS_LEFT_SORT] = "a sort is left to stock PostgreSQL",
	[GS_LEFT_INDEX_BUILD] = "an index build is left to stock PostgreSQL",
};

void
gpusort_requirement_leave(GsLeft what, GsFallback reason)
{
	if (reason != GS_FALLBACK_DISABLED &&
		reason != GS_FALLBACK_INDEX_DISABLED &&
		reason != GS_FALLBACK_FEW_ROWS &&
		reason != GS_FALLBACK_FEW_INDEX_ROWS)
		gpusort_stats_count_fallback(reason);
	if (gpusort_debug_require != GS_REQUIRE_OFF)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s", left_messages[what]),
				 errdetail("The reason is \"%s\".",
						   gpusort_fallback_text(reason)),
				 errhint(REQUIRE_HINT)));
}

void
gpusort_requirement_check(const GsSortReport *report)
{
	GsFallback	reason = report->fallback;

	if (reason == GS_FALLBACK_NONE)
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
			 reason == GS_FALLBACK_NONE ? 0 :
			 errdetail("The reason is \"%s\".",
					   gpusort_fallback_text(reason)),
			 errhint(REQUIRE_HINT)));
}
