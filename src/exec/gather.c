/*-------------------------------------------------------------------------
 *
 * gather.c
 *		Executes a Gather whose input returns no rows.
 *
 * When the last of its queues ends, a Gather that is executed waits for the ends of its
 * workers.  So it cannot return while workers still sort, although the leader could read the
 * first rows.  gpusort_gather_start() does what ExecGather() does at its first call, but does not
 * read the queues, which remain empty.  All else, from rescan to EXPLAIN, goes by the state that it
 * sets, and is the Gather's own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "executor/execParallel.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"

#include "exec/gather.h"

static void
launch_workers(GatherState *gather)
{
	EState	   *estate = gather->ps.state;
	Gather	   *plan = castNode(Gather, gather->ps.plan);

	if (gather->pei == NULL)
		gather->pei = ExecInitParallelPlan(outerPlanState(gather), estate, plan->initParam,
										   plan->num_workers, gather->tuples_needed);
	else
		ExecParallelReinitialize(outerPlanState(gather), gather->pei, plan->initParam);
	LaunchParallelWorkers(gather->pei->pcxt);
	gather->nworkers_launched = gather->pei->pcxt->nworkers_launched;
	GPUSORT_COUNT_WORKERS(estate, gather->pei->pcxt);
}

/* Execute the input in this process, with what it shares with workers. */
static void
execute_input(GatherState *gather)
{
	EState	   *estate = gather->ps.state;
	TupleTableSlot *slot;

	estate->es_query_dsa = gather->pei != NULL ? gather->pei->area : NULL;
	slot = ExecProcNode(outerPlanState(gather));
	estate->es_query_dsa = NULL;
	if (!TupIsNull(slot))
		elog(ERROR, "the input of a Gather has returned a row, but should return none");
}

bool
gpusort_gather_start(GatherState *gather)
{
	PlanState  *state = &gather->ps;
	Gather	   *plan = castNode(Gather, state->plan);
	bool		takes_part;

	if (state->chgParam != NULL)
		ExecReScan(state);
	if (state->instrument != NULL)
		InstrStartNode(state->instrument);
	gather->nworkers_launched = 0;	/* those of an earlier scan have ended */
	if (plan->num_workers > 0 && state->state->es_use_parallel_mode)
		launch_workers(gather);
	gather->initialized = true;
	takes_part = gather->nworkers_launched == 0 || parallel_leader_participation;
	if (takes_part)
		execute_input(gather);
	else
		WaitForParallelWorkersToAttach(gather->pei->pcxt);
	if (state->instrument != NULL)
		InstrStopNode(state->instrument, 0);
	return takes_part;
}

void
gpusort_gather_await(GatherState *gather)
{
	if (gather->pei == NULL)
		return;
	if (gather->ps.instrument != NULL)
		InstrStartNode(gather->ps.instrument);
	ExecParallelFinish(gather->pei);
	if (gather->ps.instrument != NULL)
		InstrStopNode(gather->ps.instrument, 0);
}
