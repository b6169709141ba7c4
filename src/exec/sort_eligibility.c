/*-------------------------------------------------------------------------
 *
 * sort_eligibility.c
 *		Which sorts of a plan GpuSort takes over.
 *
 * The rule is never to be slower than stock PostgreSQL: small sorts, sorts
 * that a LIMIT turns into top-N heaps, and sorts that would not fit in memory
 * stay as they are.  pg_gpusort.min_rows = 0 sets the rules about size aside.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/limit_bound.h"
#include "exec/sort_eligibility.h"
#include "settings.h"
#include "sort/cpu_session.h"
#include "sort/gpu_session.h"

/* A GPU keeps rows in its own memory, of which it will say if it has enough. */
static GsFallback
check_size(const GsSortCandidate *candidate, const GsKeyPlan *key_plan)
{
	double		budget = (double) gpusort_settings_work_mem() * 1024;

	if (gpusort_min_rows > 0 &&
		gpusort_gpu_session_check(candidate->rows,
								  candidate->repeat) != GS_FALLBACK_NONE &&
		gpusort_cpu_session_estimate(key_plan, candidate->rows,
									 candidate->width) > budget)
		return GS_FALLBACK_ESTIMATED_MEMORY;
	return GS_FALLBACK_NONE;
}

GsFallback
gpusort_eligibility_check(const GsSortCandidate *candidate, unsigned *words)
{
	GsFallback	reason;
	GsKeyPlan  *key_plan;

	if (!gpusort_enable)
		return GS_FALLBACK_DISABLED;
	if (candidate->rows < gpusort_min_rows)
		return GS_FALLBACK_FEW_ROWS;
	if (gpusort_limit_bound_is_small(candidate->bound, candidate->rows))
		reason = GS_FALLBACK_LIMIT;
	else
	{
		key_plan = gpusort_key_plan_create(&candidate->keys, 1, &reason);
		if (key_plan != NULL)
		{
			*words = gpusort_key_plan_words(key_plan);
			reason = check_size(candidate, key_plan);
			gpusort_key_plan_free(key_plan);
		}
	}
	return reason;
}
