/*-------------------------------------------------------------------------
 *
 * fallback.c
 *		The texts of the reasons why a sort is left to stock PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "key/fallback.h"

static const char *const fallback_texts[] = {
	[GS_FALLBACK_NONE] = "none",
	[GS_FALLBACK_DISABLED] = "pg_gpusort.enable is off",
	[GS_FALLBACK_FEW_ROWS] = "fewer rows than pg_gpusort.min_rows",
	[GS_FALLBACK_LIMIT] = "LIMIT needs only some of the rows",
	[GS_FALLBACK_TYPE] = "no encoding for the type of a sort key",
	[GS_FALLBACK_KEY_WIDTH] = "sort keys are too wide together",
	[GS_FALLBACK_ESTIMATED_MEMORY] = "estimated size exceeds pg_gpusort.work_mem",
	[GS_FALLBACK_WORK_MEM] = "rows exceeded pg_gpusort.work_mem",
	[GS_FALLBACK_OUT_OF_MEMORY] = "out of memory",
	[GS_FALLBACK_ROW_COUNT] = "more rows than a sort session can number",
	[GS_FALLBACK_NO_GPU] = "no GPU service",
};

StaticAssertDecl(lengthof(fallback_texts) == GS_FALLBACK_COUNT,
				 "every fallback reason has a text");

const char *
gpusort_fallback_text(GsFallback reason)
{
	Assert(reason >= 0 && reason < GS_FALLBACK_COUNT);
	return fallback_texts[reason];
}
