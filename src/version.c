/*-------------------------------------------------------------------------
 *
 * version.c
 *		Which build of the library this is.
 *
 * No other file includes gpusort_build.h, which scripts/lib/describe-build writes, or uses
 * GPUSORT_VERSION of the Makefile: with another commit or version only this file is
 * compiled anew.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "utils/lsyscache.h"

#include "gpusort_build.h"
#include "version.h"

GPUSORT_MODULE_MAGIC("pg_gpusort", GPUSORT_VERSION);

const char	gpusort_version_number[] = GPUSORT_VERSION;
const char	gpusort_version_commit[] = GPUSORT_COMMIT;
const char	gpusort_version_built[] = GPUSORT_BUILT;
const char	gpusort_version_text[] =
GPUSORT_VERSION " (commit " GPUSORT_COMMIT ", built " GPUSORT_BUILT ")";

void
gpusort_version_refuse(FunctionCallInfo fcinfo, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("function %s was created for another build of the library \"pg_gpusort\"",
					get_func_name(fcinfo->flinfo->fn_oid)),
			 errdetail_internal("%s", detail),
			 errhint("Execute ALTER EXTENSION pg_gpusort UPDATE. If the version stays the same, drop the extension and create it again.")));
}
