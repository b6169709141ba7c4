/*-------------------------------------------------------------------------
 *
 * test_c_function.c
 *		A function in C that calls one in another language, in builds for tests.
 *
 * Workers build a GIN index only if its functions are written in C.  Tests let processes wait
 * in functions, which are easier to write in PL/pgSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "parser/parse_func.h"
#include "utils/lsyscache.h"

#include "loading.h"

GPUSORT_SQL_FUNCTION(gpusort_test_call);

/* Find the function with the same arguments whose name has "_body" in addition. */
static FmgrInfo *
find_body(const FmgrInfo *function)
{
	FmgrInfo   *body = MemoryContextAlloc(function->fn_mcxt, sizeof(FmgrInfo));
	Oid			schema = get_func_namespace(function->fn_oid);
	char	   *name = psprintf("%s_body", get_func_name(function->fn_oid));
	Oid		   *types;
	int			ntypes;

	(void) get_func_signature(function->fn_oid, &types, &ntypes);
	fmgr_info_cxt(LookupFuncName(list_make2(makeString(get_namespace_name(schema)),
											makeString(name)),
								 ntypes, types, false),
				  body, function->fn_mcxt);
	return body;
}

Datum
gpusort_test_call(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	Datum		result;

	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra = find_body(fcinfo->flinfo);
	InitFunctionCallInfoData(*call, fcinfo->flinfo->fn_extra, PG_NARGS(),
							 PG_GET_COLLATION(), NULL, NULL);
	memcpy(call->args, fcinfo->args, PG_NARGS() * sizeof(NullableDatum));
	result = FunctionCallInvoke(call);
	fcinfo->isnull = call->isnull;
	return result;
}
