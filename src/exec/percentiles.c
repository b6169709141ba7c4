/*-------------------------------------------------------------------------
 *
 * percentiles.c
 *		Percentiles and the mode of values that come in order.
 *
 * PostgreSQL's ordered-set aggregates put all values of a group into a sort of
 * their own.  If the values come in order, an array of them is enough.  Beyond
 * work_mem the values continue in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "storage/buffile.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "exec/percentiles.h"
#include "work.h"

#define INITIAL_CAPACITY	16

/*
 * The values of a group that are not NULL, in order.  The first ones may be in
 * a file; the others are in memory.  NULL instead of this struct means that
 * there are none.
 */
typedef struct GsSortedValues
{
	BufFile    *file;			/* NULL if all are in memory */
	int64		in_file;
	Datum	   *values;
	int64		in_memory;
	int64		capacity;
	MemoryContext context;		/* of the group */
} GsSortedValues;

static int64
total(const GsSortedValues *sorted)
{
	return sorted->in_file + sorted->in_memory;
}

/* At the end of a group. */
static void
close_file(Datum sorted)
{
	BufFileClose(((GsSortedValues *) DatumGetPointer(sorted))->file);
}

/* Move the values in memory to the end of the file. */
static void
spill(FunctionCallInfo fcinfo, GsSortedValues *sorted)
{
	if (sorted->file == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(sorted->context);

		PrepareTempTablespaces();
		sorted->file = BufFileCreateTemp(false);
		AggRegisterCallback(fcinfo, close_file, PointerGetDatum(sorted));
		MemoryContextSwitchTo(caller);
	}
	BufFileWrite(sorted->file, sorted->values,
				 sorted->in_memory * sizeof(Datum));
	sorted->in_file += sorted->in_memory;
	sorted->in_memory = 0;
}

static void
make_room(FunctionCallInfo fcinfo, GsSortedValues *sorted)
{
	int64		limit = (int64) work_mem * 1024 / sizeof(Datum);

	if (2 * sorted->capacity > limit)
	{
		spill(fcinfo, sorted);
		return;
	}
	sorted->capacity *= 2;
	sorted->values = repalloc_huge(sorted->values,
								   sorted->capacity * sizeof(Datum));
}

static GsSortedValues *
create_values(FunctionCallInfo fcinfo)
{
	MemoryContext group;
	GsSortedValues *sorted;

	if (!AggCheckCallContext(fcinfo, &group))
		elog(ERROR, "pg_gpusort: aggregate function called in another context");
	sorted = MemoryContextAllocZero(group, sizeof(GsSortedValues));
	sorted->context = group;
	sorted->capacity = INITIAL_CAPACITY;
	sorted->values = MemoryContextAlloc(group,
										INITIAL_CAPACITY * sizeof(Datum));
	return sorted;
}

/* The transition function. */
static Datum
add_value(PG_FUNCTION_ARGS)
{
	GsSortedValues *sorted = PG_ARGISNULL(0) ? NULL :
		(GsSortedValues *) PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(1))
	{
		fcinfo->isnull = sorted == NULL;
		return PointerGetDatum(sorted);
	}
	if (sorted == NULL)
		sorted = create_values(fcinfo);
	else if (sorted->in_memory == sorted->capacity)
		make_room(fcinfo, sorted);
	sorted->values[sorted->in_memory++] = PG_GETARG_DATUM(1);
	PG_RETURN_POINTER(sorted);
}

/* Get the value at a position, from 0. */
static Datum
value_at(GsSortedValues *sorted, int64 position)
{
	Datum		value;

	if (position >= sorted->in_file)
		return sorted->values[position - sorted->in_file];
	if (BufFileSeek(sorted->file, 0, position * sizeof(Datum), SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file: %m")));
	GPUSORT_BUFFILE_READ(sorted->file, &value, sizeof(value));
	return value;
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

/* The first value that at least this fraction of the values do not exceed. */
static Datum
discrete_percentile(GsSortedValues *sorted, double fraction)
{
	int64		position = (int64) ceil(fraction * total(sorted)) - 1;

	return value_at(sorted, Max(position, 0));
}

/* Interpolates between the two float8 values that are next to the fraction. */
static Datum
continuous_percentile(GsSortedValues *sorted, double fraction)
{
	double		position = fraction * (total(sorted) - 1);
	double		below = floor(position);
	double		above = ceil(position);
	Datum		low = value_at(sorted, (int64) below);
	double		step;

	if (below == above)
		return low;
	step = DatumGetFloat8(value_at(sorted, (int64) above)) -
		DatumGetFloat8(low);
	return Float8GetDatum(DatumGetFloat8(low) + (position - below) * step);
}

typedef Datum (*GsPercentile) (GsSortedValues *sorted, double fraction);

static Datum
one_percentile(FunctionCallInfo fcinfo, GsPercentile percentile)
{
	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	check_fraction(PG_GETARG_FLOAT8(1));
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	return percentile((GsSortedValues *) PG_GETARG_POINTER(0),
					  PG_GETARG_FLOAT8(1));
}

/* Returns an array of the same shape as that of the fractions. */
static Datum
many_percentiles(FunctionCallInfo fcinfo, GsPercentile percentile, Oid type)
{
	GsSortedValues *sorted;
	ArrayType  *fractions;
	Datum	   *values;
	bool	   *nulls;
	int			count;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	sorted = (GsSortedValues *) PG_GETARG_POINTER(0);
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
			values[i] = percentile(sorted, DatumGetFloat8(values[i]));
	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls,
											 ARR_NDIM(fractions),
											 ARR_DIMS(fractions),
											 ARR_LBOUND(fractions),
											 type, typlen, typbyval,
											 typalign));
}

/* The type of the values. */
static Oid
type_of_values(const Aggref *aggref)
{
	return exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr);
}

static Datum
percentile_cont(PG_FUNCTION_ARGS)
{
	return one_percentile(fcinfo, continuous_percentile);
}

static Datum
percentile_disc(PG_FUNCTION_ARGS)
{
	return one_percentile(fcinfo, discrete_percentile);
}

static Datum
percentiles_cont(PG_FUNCTION_ARGS)
{
	return many_percentiles(fcinfo, continuous_percentile, FLOAT8OID);
}

static Datum
percentiles_disc(PG_FUNCTION_ARGS)
{
	return many_percentiles(fcinfo, discrete_percentile,
							type_of_values(AggGetAggref(fcinfo)));
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
	GsSortedValues *sorted;
	FmgrInfo	equal;
	Datum		first = 0;		/* of the values that are equal */
	Datum		best = 0;
	int64		times = 0;
	int64		best_times = 0;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	sorted = (GsSortedValues *) PG_GETARG_POINTER(0);
	look_up_equal(AggGetAggref(fcinfo), &equal);
	for (int64 i = 0; i < total(sorted); i++)
	{
		Datum		value = value_at(sorted, i);

		if (times == 0 ||
			!DatumGetBool(FunctionCall2Coll(&equal, PG_GET_COLLATION(),
											first, value)))
		{
			first = value;
			times = 0;
		}
		if (++times > best_times)
		{
			best = first;
			best_times = times;
		}
		gpusort_work_add(sizeof(Datum));
		if (i % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	PG_RETURN_DATUM(best);
}

/* Returns the function that replaces a final function, or NULL. */
static PGFunction
replacement_of(Oid final_oid)
{
	switch (final_oid)
	{
		case F_PERCENTILE_CONT_FLOAT8_FINAL:
			return percentile_cont;
		case F_PERCENTILE_CONT_FLOAT8_MULTI_FINAL:
			return percentiles_cont;
		case F_PERCENTILE_DISC_FINAL:
			return percentile_disc;
		case F_PERCENTILE_DISC_MULTI_FINAL:
			return percentiles_disc;
		case F_MODE_FINAL:
			return mode;
		default:
			return NULL;
	}
}

bool
gpusort_percentiles_supports(const Aggref *aggref, Oid transition_oid,
							 Oid final_oid)
{
	return aggref->aggkind == AGGKIND_ORDERED_SET &&
		transition_oid == F_ORDERED_SET_TRANSITION &&
		get_typbyval(type_of_values(aggref)) &&
		replacement_of(final_oid) != NULL;
}

void
gpusort_percentiles_connect_transition(AggStatePerTrans pertrans)
{
	pertrans->transfn.fn_addr = add_value;
}

void
gpusort_percentiles_connect_final(AggStatePerAgg peragg)
{
	peragg->finalfn.fn_addr = replacement_of(peragg->finalfn_oid);
}
