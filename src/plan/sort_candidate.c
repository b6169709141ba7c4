/*-------------------------------------------------------------------------
 *
 * sort_candidate.c
 *		Describes a sort that the planner considers or has chosen.
 *
 * What a sort costs depends on the columns of its rows and on where they come
 * from.  The same description is made of a path, before the planner chooses,
 * and of the Sort that the path has become, so that both are judged alike.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "plan/sort_candidate.h"
#include "settings.h"
#include "sort/gpu/gpu_session.h"
#include "sort/memory/memory_sort.h"

/* Add the column at a position, counted from 1. */
static void
add_column(GsSortCandidate *candidate, const Node *expression, int position)
{
	const Var  *var = (const Var *) expression;

	if (get_typlen(exprType(expression)) < 0)
		candidate->variable_columns++;
	else
		candidate->fixed_columns++;
	if (!IsA(var, Var) || var->varattno != position)
		candidate->stored_rows = false;
}

static int
ncolumns(const GsSortCandidate *candidate)
{
	return candidate->fixed_columns + candidate->variable_columns;
}

GsSortCandidate
gpusort_sort_candidate_of_path(const Path *input, double bound)
{
	GsSortCandidate candidate = {
		.rows = input->rows,
		.width = input->pathtarget->width,
		.bound = bound,
		.stored_rows = true
	};
	const Path *scan = input;
	int			position = 0;
	ListCell   *lc;

	foreach(lc, input->pathtarget->exprs)
		add_column(&candidate, lfirst(lc), ++position);

	if (IsA(scan, GatherPath))
		scan = ((const GatherPath *) scan)->subpath;
	if (IsA(scan, ProjectionPath))
		scan = ((const ProjectionPath *) scan)->subpath;
	if (scan->pathtype != T_SeqScan)
	{
		candidate.stored_rows = false;
		return candidate;
	}
	candidate.all_rows = scan->parent->baserestrictinfo == NIL;
	if (ncolumns(&candidate) != scan->parent->max_attr)
		candidate.stored_rows = false;
	return candidate;
}

GsSortCandidate
gpusort_sort_candidate_of_plan(const Sort *sort, double bound,
							   const PlannedStmt *statement)
{
	GsSortCandidate candidate = {
		.rows = sort->plan.plan_rows,
		.width = sort->plan.plan_width,
		.bound = bound,
		.stored_rows = true
	};
	const Plan *scan = sort->plan.lefttree;
	const RangeTblEntry *table;
	ListCell   *lc;

	if (IsA(scan, Gather))
		scan = scan->lefttree;
	foreach(lc, scan->targetlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		add_column(&candidate, (const Node *) entry->expr, entry->resno);
	}
	if (!IsA(scan, SeqScan))
	{
		candidate.stored_rows = false;
		return candidate;
	}
	candidate.all_rows = scan->qual == NIL;
	table = rt_fetch(((const Scan *) scan)->scanrelid, statement->rtable);
	if (SearchSysCacheExists2(ATTNUM, ObjectIdGetDatum(table->relid),
							  Int16GetDatum(ncolumns(&candidate) + 1)))
		candidate.stored_rows = false;
	return candidate;
}

bool
gpusort_sort_candidate_fits(const GsSortCandidate *candidate, unsigned words)
{
	/* A GPU keeps rows in its own memory, and will report if it lacks room. */
	return gpusort_gpu_session_check(candidate->rows) == GS_FALLBACK_NONE ||
		gpusort_memory_sort_estimate(words, candidate->rows,
									 candidate->width) <=
		(double) gpusort_settings_work_mem() * 1024;
}
