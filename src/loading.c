/*-------------------------------------------------------------------------
 *
 * loading.c
 *		Whether the library was loaded for its sorts, or for its functions only.
 *
 * Everyone may call our functions, and the first call loads the library.  That must not
 * change the plans of the session: only shared_preload_libraries,
 * session_preload_libraries, local_preload_libraries and LOAD do.
 *
 * PostgreSQL calls _PG_init() in all of these cases, and does not say in which.  It is
 * still in its init mode when it preloads a library.  LOAD and a function differ in what
 * comes next.  For a function, PostgreSQL asks for the function's record
 * (fetch_finfo_record()) right after _PG_init().  After LOAD, a function can be asked for
 * only by a later statement, which is planned, started or executed first and so calls
 * one of our hooks.
 *
 * A later LOAD does not call _PG_init() again, so we watch for it.
 *
 * A parallel worker loads what its leader has loaded, and cannot know why.  Its plan is
 * the leader's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"

#include "loading.h"

/*
 * Why the library was loaded.
 *
 *		UNKNOWN --function's record--> FOR_FUNCTIONS --LOAD--> FOR_SORTS
 *		   \--------------hook------------------------------------^
 */
typedef enum GsLoading
{
	GS_LOADED_UNKNOWN,			/* by LOAD or by a function */
	GS_LOADED_FOR_FUNCTIONS,
	GS_LOADED_FOR_SORTS
} GsLoading;

static GsLoading loading = GS_LOADED_UNKNOWN;

static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

bool
gpusort_loading_is_wanted(void)
{
	if (loading == GS_LOADED_UNKNOWN)
		loading = GS_LOADED_FOR_SORTS;
	return loading == GS_LOADED_FOR_SORTS;
}

void
gpusort_loading_note_function(void)
{
	if (loading == GS_LOADED_UNKNOWN)
		loading = GS_LOADED_FOR_FUNCTIONS;
}

bool
gpusort_loading_is_our_file(const char *file)
{
	const char *directories_end = last_dir_separator(file);
	const char *name = directories_end != NULL ? directories_end + 1 : file;

	return strcmp(name, "pg_gpusort") == 0 ||
		strcmp(name, "pg_gpusort" DLSUFFIX) == 0;
}

static void
watch_for_load(PlannedStmt *statement, const char *query_string,
			   bool read_only_tree, ProcessUtilityContext context,
			   ParamListInfo params, QueryEnvironment *environment,
			   DestReceiver *dest, QueryCompletion *completion)
{
	const Node *utility = statement->utilityStmt;
	bool		is_load = IsA(utility, LoadStmt) &&
		gpusort_loading_is_our_file(((const LoadStmt *) utility)->filename);

	(void) gpusort_loading_is_wanted();
	if (prev_ProcessUtility_hook)
		prev_ProcessUtility_hook(statement, query_string, read_only_tree, context,
								 params, environment, dest, completion);
	else
		standard_ProcessUtility(statement, query_string, read_only_tree, context,
								params, environment, dest, completion);
	if (is_load)
		loading = GS_LOADED_FOR_SORTS;
}

void
gpusort_loading_init(void)
{
	if (IsInitProcessingMode())
		loading = GS_LOADED_FOR_SORTS;
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = watch_for_load;
}
