/*-------------------------------------------------------------------------
 *
 * percentiles.c
 *		Percentiles and the mode.
 *
 * PostgreSQL's ordered-set aggregates put all values of a group into a sort of
 * their own.  Here they are rows of a group (agg_rows.c), which need no sort if they come in order.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "exec/gpusort_node.h"
#include "exec/presorted_agg.h"
#include "work.h"

static Oid
type_of_values(const Aggref *aggref)
{
	return exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr);
}

/* The transition function. */
static Datum
add_value(PG_FUNCTION_ARGS)
{
	GsAggRows  *rows = PG_ARGISNULL(0) ? gpusort_agg_rows_begin(fcinfo, fcinfo->flinfo->fn_extra) :
		(GsAggRows *) PG_GETARG_POINTER(0);

	if (!PG_ARGISNULL(1))
		gpusort_agg_rows_add(fcinfo, rows);
	PG_RETURN_POINTER(rows);
}

/* Returns the values of a group, in order, or NULL if there are none. */
static GsAggRows *
sorted_values(FunctionCallInfo fcinfo)
{
	GsAggRows  *rows = PG_ARGISNULL(0) ? NULL : (GsAggRows *) PG_GETARG_POINTER(0);

	if (rows == NULL)
		return NULL;
	gpusort_agg_rows_sort(rows);
	return gpusort_agg_rows_count(rows) > 0 ? rows : NULL;
}

static void
check_fraction(double fraction)
{
	if (isnan(fraction) || fraction < 0 || fraction > 1)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("percentile value %g is not between 0 and 1",
						fraction)));
}

/* Interpolates between two values. */
typedef Datum (*GsInterpolate) (Datum low, Datum high, double part);

static Datum
interpolate_float8(Datum low, Datum high, double part)
{
	double		step = DatumGetFloat8(high) - DatumGetFloat8(low);

	return Float8GetDatum(DatumGetFloat8(low) + part * step);
}

/* In the order of PostgreSQL's own operations, so that the fields are rounded alike. */
static Datum
interpolate_interval(Datum low, Datum high, double part)
{
	Datum		step = DirectFunctionCall2(interval_mi, high, low);
	Datum		up = DirectFunctionCall2(interval_mul, step, Float8GetDatum(part));

	return DirectFunctionCall2(interval_pl, up, low);
}

/*
 * Returns which part of the way from one value to the next a fraction of the values is,
 * where 'last' is the position of the last value.
 *
 * Where the processor has an instruction that multiplies and adds, such as on arm64,
 * compilers use it for a product that is needed for nothing but the difference.  The
 * product is not rounded then, which can change the last bit of a percentile.  The
 * percentiles have to be those of PostgreSQL, which computes this product anew if there
 * is one fraction, and uses it for floor() too if there is an array of them.  These two
 * functions do the same, and are not inlined so that they use no product of their caller.
 */
static pg_noinline double
part_of_one(double fraction, int64 last, double below)
{
	return fraction * last - below;
}

static pg_noinline double
part_of_many(double fraction, int64 last)
{
	return fraction * last - floor(fraction * last);
}

/* A final function of percentiles that is replaced. */
typedef struct GsPercentile
{
	Oid			final_oid;
	bool		many;			/* has it an array of fractions? */
	GsInterpolate interpolate;	/* NULL if the percentile is one of the values */
} GsPercentile;

static const GsPercentile percentiles[] = {
	{F_PERCENTILE_CONT_FLOAT8_FINAL, false, interpolate_float8},
	{F_PERCENTILE_CONT_FLOAT8_MULTI_FINAL, true, interpolate_float8},
	{F_PERCENTILE_CONT_INTERVAL_FINAL, false, interpolate_interval},
	{F_PERCENTILE_CONT_INTERVAL_MULTI_FINAL, true, interpolate_interval},
	{F_PERCENTILE_DISC_FINAL, false, NULL},
	{F_PERCENTILE_DISC_MULTI_FINAL, true, NULL},
};

static const GsPercentile *
find_percentile(Oid final_oid)
{
	for (int i = 0; i < lengthof(percentiles); i++)
		if (percentiles[i].final_oid == final_oid)
			return &percentiles[i];
	return NULL;
}

/* The first value that at least this fraction of the values do not exceed. */
static Datum
discrete_percentile(GsAggRows *rows, double fraction)
{
	int64		position = (int64) ceil(fraction * gpusort_agg_rows_count(rows)) - 1;

	return gpusort_agg_rows_copy(rows, Max(position, 0));
}

/* Interpolates between the two values that are next to the fraction. */
static Datum
continuous_percentile(GsAggRows *rows, double fraction, const GsPercentile *function)
{
	int64		last = gpusort_agg_rows_count(rows) - 1;
	double		below = floor(fraction * last);
	double		above = ceil(fraction * last);
	Datum		low = gpusort_agg_rows_copy(rows, (int64) below);

	return below == above ? low :
		function->interpolate(low, gpusort_agg_rows_get(rows, (int64) above),
							  function->many ? part_of_many(fraction, last) :
							  part_of_one(fraction, last, below));
}

static Datum
percentile(GsAggRows *rows, double fraction, const GsPercentile *function)
{
	return function->interpolate == NULL ? discrete_percentile(rows, fraction) :
		continuous_percentile(rows, fraction, function);
}

static Datum
one_percentile(FunctionCallInfo fcinfo, const GsPercentile *function)
{
	GsAggRows  *rows;

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	check_fraction(PG_GETARG_FLOAT8(1));
	rows = sorted_values(fcinfo);
	if (rows == NULL)
		PG_RETURN_NULL();
	return percentile(rows, PG_GETARG_FLOAT8(1), function);
}

/* Returns an array of the same shape as that of the fractions. */
static Datum
many_percentiles(FunctionCallInfo fcinfo, const GsPercentile *function)
{
	GsAggRows  *rows = sorted_values(fcinfo);
	Oid			type = type_of_values(AggGetAggref(fcinfo));
	ArrayType  *fractions;
	Datum	   *values;
	bool	   *nulls;
	int			count;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	if (rows == NULL || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	fractions = PG_GETARG_ARRAYTYPE_P(1);
	deconstruct_array(fractions, FLOAT8OID, sizeof(float8), true,
					  TYPALIGN_DOUBLE, &values, &nulls, &count);
	if (count == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(type));
	for (int i = 0; i < count; i++)
		if (!nulls[i])
			check_fraction(DatumGetFloat8(values[i]));
	for (int i = 0; i < count; i++)
		if (!nulls[i])
			values[i] = percentile(rows, DatumGetFloat8(values[i]), function);
	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls,
											 ARR_NDIM(fractions),
											 ARR_DIMS(fractions),
											 ARR_LBOUND(fractions),
											 type, typlen, typbyval,
											 typalign));
}

/* The final function of percentiles. */
static Datum
find_percentiles(PG_FUNCTION_ARGS)
{
	const GsPercentile *function = fcinfo->flinfo->fn_extra;

	return function->many ? many_percentiles(fcinfo, function) : one_percentile(fcinfo, function);
}

/* Finds the "=" by which an aggregate's values are equal. */
static void
look_up_equal(const Aggref *aggref, FmgrInfo *equal)
{
	const SortGroupClause *clause = linitial_node(SortGroupClause,
												  aggref->aggorder);

	fmgr_info(get_opcode(clause->eqop), equal);
}

/* The first of the values that occur most often. */
static Datum
mode(PG_FUNCTION_ARGS)
{
	GsAggRows  *rows = sorted_values(fcinfo);
	FmgrInfo	equal;
	Datum		value = 0;		/* the first of those that are equal */
	int64		first = 0;		/* its position */
	int64		best = 0;		/* that of the most frequent one */
	int64		most = 0;		/* how often that occurs */
	int64		count;
	int16		typlen;
	bool		typbyval;

	if (rows == NULL)
		PG_RETURN_NULL();
	count = gpusort_agg_rows_count(rows);
	look_up_equal(AggGetAggref(fcinfo), &equal);
	get_typlenbyval(type_of_values(AggGetAggref(fcinfo)), &typlen, &typbyval);
	for (int64 i = 0; i < count; i++)
	{
		Datum		next = gpusort_agg_rows_get(rows, i);

		if (i == 0 ||
			!DatumGetBool(FunctionCall2Coll(&equal, PG_GET_COLLATION(), value, next)))
		{
			first = i;
			if (!typbyval && i > 0)
				pfree(DatumGetPointer(value));
			value = datumCopy(next, typbyval, typlen);
		}
		if (i - first + 1 > most)
		{
			best = first;
			most = i - first + 1;
		}
		gpusort_work_add(sizeof(Datum));
		if (i % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	return gpusort_agg_rows_copy(rows, best);
}

bool
gpusort_percentiles_supports(const Aggref *aggref, Oid transition_oid,
							 Oid final_oid)
{
	return aggref->aggkind == AGGKIND_ORDERED_SET &&
		transition_oid == F_ORDERED_SET_TRANSITION &&
		(final_oid == F_MODE_FINAL || find_percentile(final_oid) != NULL);
}

bool
gpusort_percentiles_support(const AggState *state, int transno, bool all_values)
{
	const AggStatePerTrans pertrans = &state->pertrans[transno];

	for (int a = 0; a < state->numaggs; a++)
	{
		const AggStatePerAgg peragg = &state->peragg[a];

		if (peragg->transno == transno &&
			((!all_values && peragg->finalfn_oid == F_MODE_FINAL) ||
			 !gpusort_percentiles_supports(pertrans->aggref, pertrans->transfn_oid,
										   peragg->finalfn_oid)))
			return false;
	}
	return true;
}

static void
replace_final(AggStatePerAgg peragg)
{
	peragg->finalfn.fn_extra = unconstify(GsPercentile *, find_percentile(peragg->finalfn_oid));
	peragg->finalfn.fn_addr = peragg->finalfn.fn_extra != NULL ? find_percentiles : mode;
}

bool
gpusort_percentiles_connect(AggState *state, int transno, int nsorts, const PlanState *sorted)
{
	AggStatePerTrans pertrans = &state->pertrans[transno];
	GsAggRowOrder *order;

	if (!gpusort_percentiles_support(state, transno, true))
		return false;
	order = gpusort_agg_row_order_create(state, pertrans->aggref, nsorts, sorted);
	if (order == NULL)
		return false;
	pertrans->transfn.fn_addr = add_value;
	pertrans->transfn.fn_extra = order;
	for (int a = 0; a < state->numaggs; a++)
		if (state->peragg[a].transno == transno)
			replace_final(&state->peragg[a]);
	return true;
}
