/*-------------------------------------------------------------------------
 *
 * test_custom_scan.c
 *		A custom scan of somebody else, in builds for tests.
 *
 * Other extensions have nodes of their own, such as scans of columnar tables.  A session
 * that calls the function below scans each table whose name begins with "custom" by this
 * node, which reads the table as a sequential scan does.  Its private expressions are a
 * list of lists, as those of Citus' columnar scans, of which one is empty.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "loading.h"

GPUSORT_SQL_FUNCTION(gpusort_test_custom_scan);

typedef struct GsTestScan
{
	CustomScanState css;
	TupleTableSlot *slot;		/* of the table's kind */
	TableScanDesc scan;
} GsTestScan;

static set_rel_pathlist_hook_type prev_set_rel_pathlist_hook = NULL;

/* ----------------------------------------------------------------
 *		executor
 * ----------------------------------------------------------------
 */

static void
begin_scan(CustomScanState *css, EState *estate, int eflags)
{
	GsTestScan *node = (GsTestScan *) css;

	node->slot = table_slot_create(css->ss.ss_currentRelation, &estate->es_tupleTable);
	node->scan = GPUSORT_BEGIN_SEQ_SCAN(&css->ss);
}

/* An ExecScanAccessMtd. */
static TupleTableSlot *
next_row(ScanState *ss)
{
	GsTestScan *node = (GsTestScan *) ss;

	if (!table_scan_getnextslot(node->scan, ForwardScanDirection, node->slot))
		return ExecClearTuple(ss->ss_ScanTupleSlot);
	return ExecCopySlot(ss->ss_ScanTupleSlot, node->slot);
}

/* An ExecScanRecheckMtd. */
static bool
recheck_row(ScanState *ss, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
scan(CustomScanState *css)
{
	return ExecScan(&css->ss, next_row, recheck_row);
}

static void
end_scan(CustomScanState *css)
{
	table_endscan(((GsTestScan *) css)->scan);
}

static void
rescan(CustomScanState *css)
{
	table_rescan(((GsTestScan *) css)->scan, NULL);
	ExecScanReScan(&css->ss);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "TestScan",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan
};

static Node *
create_state(CustomScan *plan)
{
	GsTestScan *node = palloc0(sizeof(GsTestScan));

	NodeSetTag(node, T_CustomScanState);
	node->css.methods = &exec_methods;
	return (Node *) node;
}

/* ----------------------------------------------------------------
 *		planner
 * ----------------------------------------------------------------
 */

static const CustomScanMethods scan_methods = {
	.CustomName = "TestScan",
	.CreateCustomScanState = create_state
};

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets,
		  List *clauses, List *children)
{
	CustomScan *plan = makeNode(CustomScan);

	plan->methods = &scan_methods;
	plan->scan.scanrelid = rel->relid;
	plan->scan.plan.targetlist = targets;
	plan->scan.plan.qual = extract_actual_clauses(clauses, false);
	plan->flags = path->flags;
	plan->custom_exprs = list_make2(NIL, list_make1(makeBoolConst(true, false)));
	return (Plan *) plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "TestScan",
	.PlanCustomPath = plan_path
};

static void
add_path_of_test(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CustomPath *path;
	char	   *name;

	if (prev_set_rel_pathlist_hook)
		prev_set_rel_pathlist_hook(root, rel, rti, rte);
	name = rte->rtekind == RTE_RELATION ? get_rel_name(rte->relid) : NULL;
	if (name == NULL || strncmp(name, "custom", strlen("custom")) != 0)
		return;
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = rel->rows;
	path->path.total_cost = rel->pages;
	path->methods = &path_methods;
#ifdef CUSTOMPATH_SUPPORT_PROJECTION
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
#endif
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	add_path(rel, &path->path);
}

Datum
gpusort_test_custom_scan(PG_FUNCTION_ARGS)
{
	if (set_rel_pathlist_hook != add_path_of_test)
	{
		prev_set_rel_pathlist_hook = set_rel_pathlist_hook;
		set_rel_pathlist_hook = add_path_of_test;
		RegisterCustomScanMethods(&scan_methods);
	}
	PG_RETURN_VOID();
}
