/*-------------------------------------------------------------------------
 *
 * gpusort_plan.c
 *		Makes the plan nodes GpuSort, GpuIncrementalSort and GpuSortSink.
 *
 * A GpuSort is a CustomScan that scans no relation.  Its input is in lefttree,
 * as in a Sort.  custom_scan_tlist is the Sort's target list and describes the
 * input rows; the node's own target list refers to those columns.
 * custom_private holds the Sort itself (see exec/gpusort_private.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "exec/gpusort_node.h"
#include "exec/gpusort_private.h"
#include "exec/incremental_node.h"
#include "exec/sink_node.h"
#include "plan/gpusort_plan.h"

static const CustomScanMethods plan_methods = {
	.CustomName = "GpuSort",
	.CreateCustomScanState = gpusort_node_create_state,
};

static const CustomScanMethods incremental_plan_methods = {
	.CustomName = "GpuIncrementalSort",
	.CreateCustomScanState = gpusort_incremental_create_state,
};

static const CustomScanMethods sink_plan_methods = {
	.CustomName = "GpuSortSink",
	.CreateCustomScanState = gpusort_sink_create_state,
};

/*
 * Make a target list of the columns of another target list, as Vars of the
 * scan tuple (INDEX_VAR) or of the input (OUTER_VAR).
 */
static List *
make_column_tlist(List *columns, int varno)
{
	List	   *tlist = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		TargetEntry *from = lfirst_node(TargetEntry, lc);
		Var		   *var = makeVar(varno, from->resno,
								  exprType((Node *) from->expr),
								  exprTypmod((Node *) from->expr),
								  exprCollation((Node *) from->expr), 0);
		TargetEntry *to = flatCopyTargetEntry(from);

		to->expr = (Expr *) var;
		tlist = lappend(tlist, to);
	}
	return tlist;
}

/* Make a node in the place of a Sort or an IncrementalSort. */
static CustomScan *
make_sort_node(const Sort *sort, bool repeatable, uint32 flags,
			   const CustomScanMethods *methods)
{
	CustomScan *node = makeNode(CustomScan);

	memcpy(&node->scan.plan, &sort->plan, sizeof(Plan));
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.targetlist = make_column_tlist(sort->plan.targetlist,
												   INDEX_VAR);
	node->scan.scanrelid = 0;
	node->flags = flags;
	node->custom_scan_tlist = sort->plan.targetlist;
	node->custom_private = gpusort_private_make(sort, repeatable);
	node->methods = methods;
	return node;
}

CustomScan *
gpusort_plan_from_sort(const Sort *sort, bool repeatable)
{
	return make_sort_node(sort, repeatable,
						  CUSTOMPATH_SUPPORT_BACKWARD_SCAN |
						  CUSTOMPATH_SUPPORT_MARK_RESTORE, &plan_methods);
}

CustomScan *
gpusort_plan_from_incremental_sort(const IncrementalSort * sort)
{
	return make_sort_node(&sort->sort, false, 0,
						  &incremental_plan_methods);
}

CustomScan *
gpusort_plan_sink(const Sort *sort, Plan *partial, int plan_node_id)
{
	CustomScan *sink = makeNode(CustomScan);
	Plan	   *plan = &sink->scan.plan;

	memcpy(plan, partial, sizeof(Plan));
	plan->type = T_CustomScan;
	plan->plan_node_id = plan_node_id;
	plan->parallel_aware = true;
	plan->targetlist = make_column_tlist(partial->targetlist, INDEX_VAR);
	plan->qual = NIL;
	plan->initPlan = NIL;
	plan->lefttree = partial;
	plan->righttree = NULL;
	sink->scan.scanrelid = 0;

	/*
	 * The expressions of the input refer to the input's own inputs, so they
	 * cannot be copied.
	 */
	sink->custom_scan_tlist = make_column_tlist(partial->targetlist, OUTER_VAR);
	sink->custom_private = gpusort_private_make(sort, false);
	sink->methods = &sink_plan_methods;
	return sink;
}

void
gpusort_plan_init(void)
{
	RegisterCustomScanMethods(&plan_methods);
	RegisterCustomScanMethods(&incremental_plan_methods);
	RegisterCustomScanMethods(&sink_plan_methods);
}
