/*-------------------------------------------------------------------------
 *
 * requirement.c
 *		Counts what is left to stock PostgreSQL, and checks what tests require.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "settings.h"
#include "sort/requirement.h"

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
