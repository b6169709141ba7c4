/*-------------------------------------------------------------------------
 *
 * work.c
 *		Measures the work between two checks for interrupts, in builds for tests.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "work.h"

#ifdef GPUSORT_FAULTS

GsWork		gpusort_work;

const char *
gpusort_work_show(void)
{
	static char text[64];

	gpusort_work_check();
	snprintf(text, sizeof(text), UINT64_FORMAT " of " UINT64_FORMAT,
			 gpusort_work.longest, gpusort_work.total);
	return text;
}

void
gpusort_work_reset(const char *newval, void *extra)
{
	memset(&gpusort_work, 0, sizeof(gpusort_work));
}

#endif							/* GPUSORT_FAULTS */
