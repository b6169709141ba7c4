/*-------------------------------------------------------------------------
 *
 * version.c
 *		Which build of the library this is.
 *
 * No other file includes gpusort_build.h, which scripts/lib/describe-build writes: with
 * another commit only this file is compiled anew.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "gpusort_build.h"
#include "version.h"

const char *
gpusort_version_commit(void)
{
	return GPUSORT_COMMIT;
}

const char *
gpusort_version_built(void)
{
	return GPUSORT_BUILT;
}

const char *
gpusort_version_text(void)
{
	return GPUSORT_VERSION " (commit " GPUSORT_COMMIT ", built " GPUSORT_BUILT ")";
}
