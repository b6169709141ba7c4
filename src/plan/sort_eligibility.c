/*-------------------------------------------------------------------------
 *
 * sort_eligibility.c
 *		Determines which sorts of a plan are taken over.
 *
 * No sort may become slower than in stock PostgreSQL.  So small sorts, and
 * sorts that a LIMIT turns into top-N heaps, stay as they are.  Sorts that
 * will not fit in memory are taken over, because writing sorted runs and
 * merging them is also faster here, whatever the size of memory.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/limit_bound.h"
#include "plan/sort_eligibility.h"
#include "settings.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/memory_sort.h"

bool
gpusort_eligibility_fits(const GsSortCandidate *candidate, unsigned words)
{
	/* A GPU keeps rows in its own memory, and will report if it lacks room. */
	return gpusort_gpu_session_check(candidate->rows,
									 candidate->repeat) == GS_FALLBACK_NONE ||
		gpusort_memory_sort_estimate(words, candidate->rows,
									 candidate->width) <=
		(double) gpusort_settings_work_mem() * 1024;
}

GsFallback
gpusort_eligibility_of_rows(const GsSortCandidate *candidate)
{
	if (!gpusort_enable)
		return GS_FALLBACK_DISABLED;
	if (candidate->rows < gpusort_min_rows)
		return GS_FALLBACK_FEW_ROWS;
	if (gpusort_limit_bound_is_small(candidate->bound, candidate->rows))
		return GS_FALLBACK_LIMIT;
	return GS_FALLBACK_NONE;
}

GsFallback
gpusort_eligibility_of_keys(const GsSortKeys *keys)
{
	GsFallback	reason;

	gpusort_key_plan_free(gpusort_key_plan_create(keys, 1, &reason));
	return reason;
}
