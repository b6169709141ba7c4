/*-------------------------------------------------------------------------
 *
 * async_append.c
 *		Tells whether an Append can ask several foreign servers at the same time.
 *
 * An Append can scan foreign tables asynchronously: each server prepares rows
 * while those of another one are read.  A MergeAppend of rows that the servers
 * have sorted cannot.  It waits for the first row of each server, and so for the
 * whole sort there, before it asks the next one.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "foreign/fdwapi.h"
#include "optimizer/cost.h"

#include "plan/async_append.h"

static const Path *
without_projection(const Path *path)
{
	return IsA(path, ProjectionPath) ?
		((const ProjectionPath *) path)->subpath : path;
}

/*
 * Is this a foreign scan that can be asynchronous?  The planner looks at the same when it
 * makes the plan.
 */
static bool
is_async_scan(Path *path)
{
	const FdwRoutine *routine = path->parent->fdwroutine;

	return IsA(path, ForeignPath) && routine != NULL &&
		routine->IsForeignPathAsyncCapable != NULL &&
		routine->IsForeignPathAsyncCapable((ForeignPath *) path);
}

bool
gpusort_async_append_check(const Path *path)
{
	const AppendPath *append = (const AppendPath *) without_projection(path);
	Oid			first = InvalidOid;
	ListCell   *lc;

	if (!enable_async_append || !IsA(append, AppendPath) ||
		append->path.parallel_safe || append->path.pathkeys != NIL)
		return false;
	foreach(lc, append->subpaths)
	{
		Path	   *input = unconstify(Path *, without_projection(lfirst(lc)));

		if (!is_async_scan(input))
			continue;
		/* Tables of one server are scanned one after the other. */
		if (OidIsValid(first) && input->parent->serverid != first)
			return true;
		first = input->parent->serverid;
	}
	return false;
}
