/*-------------------------------------------------------------------------
 *
 * agg_of_sort.c
 *		Aggregates of all rows that ask the sort below, instead of reading its rows.
 *
 * An Agg without GROUP BY over a GpuSort may only want to know how many different keys there are,
 * or which keys are at some positions:
 *
 *		SELECT count(*), count(DISTINCT x) FROM ...
 *		SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM ...
 *
 * Then the GpuSort returns a single row.  Keys are counted in all processes that sort, each of
 * which has whole groups of equal ones.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_aggregate.h"
#include "utils/fmgroids.h"

#include "exec/agg_private.h"
#include "exec/gpusort_node.h"

/* The transition function of count(*), which is called once. */
static Datum
count_rows(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(gpusort_node_counts(fcinfo->flinfo->fn_extra).rows);
}

/* That of count(DISTINCT x). */
static Datum
count_groups(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(gpusort_node_counts(fcinfo->flinfo->fn_extra).groups);
}

/* Returns the function that counts what an aggregate wants to know, or NULL. */
static PGFunction
counter_of(const AggStatePerTransData * pertrans)
{
	if (pertrans->transfn_oid == F_INT8INC)
		return count_rows;
	if (pertrans->transfn_oid == F_INT8INC_ANY && pertrans->aggref->aggdistinct != NIL)
		return count_groups;
	return NULL;
}

/* Do all final functions of a transition need some of the keys, and not all, as mode() does? */
static bool
needs_some_keys(const AggState *state, int transno)
{
	const		AggStatePerTransData *pertrans = &state->pertrans[transno];

	for (int a = 0; a < state->numaggs; a++)
		if (state->peragg[a].transno == transno &&
			(state->peragg[a].finalfn_oid == F_MODE_FINAL ||
			 !gpusort_percentiles_supports(pertrans->aggref, pertrans->transfn_oid,
										   state->peragg[a].finalfn_oid)))
			return false;
	return true;
}

/* Does a transition only need what the sort withholds for 'wanted'? */
static bool
is_answered(const AggState *state, int transno, const GsSortKeys *keys, GsWanted wanted)
{
	const		AggStatePerTransData *pertrans = &state->pertrans[transno];
	const Aggref *aggref = pertrans->aggref;

	if (aggref->aggfilter != NULL)
		return false;
	if (wanted == GS_WANTS_COUNTS && pertrans->transfn_oid == F_INT8INC)
		return true;
	return (wanted == GS_WANTS_KEYS ? needs_some_keys(state, transno) :
			counter_of(pertrans) != NULL) &&
		gpusort_agg_order_is_of_first_key(aggref, keys);
}

/*
 * Returns what all aggregates of an Agg want of the sort below it, whose keys these are.  That is
 * rows if not all want the same, or if all they want is count(*).
 */
static GsWanted
find_wanted(const AggState *state, const GsSortKeys *keys)
{
	GsWanted	wanted = AGGKIND_IS_ORDERED_SET(state->pertrans[0].aggref->aggkind) ?
		GS_WANTS_KEYS : GS_WANTS_COUNTS;
	bool		first_key = false;

	for (int transno = 0; transno < state->numtrans; transno++)
	{
		if (!is_answered(state, transno, keys, wanted))
			return GS_WANTS_ROWS;
		first_key |= state->pertrans[transno].numTransInputs > 0;
	}
	return first_key ? wanted : GS_WANTS_ROWS;
}

/* Replace the transition function of a count. */
static void
connect_counter(AggStatePerTrans pertrans, PlanState *sort)
{
	pertrans->transfn.fn_addr = counter_of(pertrans);
	pertrans->transfn.fn_extra = sort;
	pertrans->transfn.fn_strict = false;	/* the row has NULLs */
	gpusort_agg_order_drop(pertrans);
}

bool
gpusort_agg_of_sort_connect(AggState *state, const GsSortKeys *keys)
{
	PlanState  *sort = outerPlanState(state);
	GsWanted	wanted;

	if (((const Agg *) state->ss.ps.plan)->aggstrategy != AGG_PLAIN)
		return false;
	wanted = find_wanted(state, keys);
	if (wanted == GS_WANTS_ROWS || !gpusort_node_withhold(sort, wanted))
		return false;
	for (int transno = 0; transno < state->numtrans; transno++)
	{
		if (wanted == GS_WANTS_KEYS)
			gpusort_percentiles_connect(state, transno, sort);
		else
			connect_counter(&state->pertrans[transno], sort);
	}
	return true;
}
