/*-------------------------------------------------------------------------
 *
 * direct_scan.c
 *		Reads a plain sequential scan without going through the executor.
 *
 * What most large sorts read is a Seq Scan without a condition whose rows are
 * passed on as they are.  For such a node ExecProcNode() does nothing that the
 * table's access method has not done, but does it for every row: dispatch,
 * checks for EvalPlanQual() and projections, and resets of an expression
 * context that nothing uses.  Asking the access method itself saves that.
 *
 * The scan descriptor is the node's own, begun here as the node would begin it,
 * so that rescans and the end of the query are the node's business as ever.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "exec/direct_scan.h"

/*
 * With instrumentation, rows are to be counted by the node.  A parallel-aware
 * scan shares its blocks over the node's own state.
 */
bool
gpusort_direct_scan_applies(const PlanState *node)
{
	return IsA(node, SeqScanState) &&
		node->qual == NULL &&
		node->ps_ProjInfo == NULL &&
		node->instrument == NULL &&
		node->chgParam == NULL &&
		!node->plan->parallel_aware &&
		node->state->es_epq_active == NULL;
}

TupleTableSlot *
gpusort_direct_scan_next(PlanState *node)
{
	ScanState  *scan = (ScanState *) node;

	CHECK_FOR_INTERRUPTS();
	if (scan->ss_currentScanDesc == NULL)
		scan->ss_currentScanDesc = table_beginscan(scan->ss_currentRelation,
												   node->state->es_snapshot,
												   0, NULL);
	if (!table_scan_getnextslot(scan->ss_currentScanDesc, ForwardScanDirection,
								scan->ss_ScanTupleSlot))
		return NULL;
	return scan->ss_ScanTupleSlot;
}
