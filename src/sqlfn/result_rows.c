/*-------------------------------------------------------------------------
 *
 * result_rows.c
 *		The rows that a SQL function returns.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "funcapi.h"
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"

#include "sqlfn/result_rows.h"

static bool
has_columns(TupleDesc tupdesc, const Oid *types, int count)
{
	if (tupdesc->natts != count)
		return false;
	for (int c = 0; c < count; c++)
		if (TupleDescAttr(tupdesc, c)->atttypid != types[c])
			return false;
	return true;
}

void
gpusort_result_rows_begin(FunctionCallInfo fcinfo, const Oid *types, int count)
{
	InitMaterializedSRF(fcinfo, 0);
	if (!has_columns(((ReturnSetInfo *) fcinfo->resultinfo)->setDesc, types,
					 count))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("function %s was created for another build of the library \"pg_gpusort\"",
						get_func_name(fcinfo->flinfo->fn_oid)),
				 errdetail("The library returns other columns."),
				 errhint("Execute ALTER EXTENSION pg_gpusort UPDATE. If the version stays the same, drop the extension and create it again.")));
}
