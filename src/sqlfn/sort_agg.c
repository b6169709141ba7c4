/*-------------------------------------------------------------------------
 *
 * sort_agg.c
 *		Aggregates that sort: gpu_sort_agg, gpu_argsort_agg.
 *
 * Both have the same state, the elements in the order in which they came, as array_agg() has
 * them.  They are sorted at the end, and stay as they are: a window asks for the result again
 * and again, and a query with both aggregates has one state for them.
 *
 * Processes of a parallel plan send their elements to the leader, which sorts all
 * of them.  All aggregates of a query combine their states in the same order, so
 * gpu_argsort_agg() fits the array_agg() beside it in a parallel plan, too.  In PostgreSQL 15
 * array_agg() is not parallel.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"

#include "agg_context.h"
#include "loading.h"
#include "sqlfn/arrays.h"
#include "work.h"

GPUSORT_SQL_FUNCTION(gpusort_sort_agg_add);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_combine);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_serialize);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_deserialize);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_sort);
GPUSORT_SQL_FUNCTION(gpusort_sort_agg_argsort);

/* The arguments of all rows must agree on the direction. */
typedef struct AggDirection
{
	bool		isnull;			/* "descending" is NULL, and so is the result */
	GsSortDirection sort;
} AggDirection;

typedef struct SortAggState
{
	AggDirection direction;
	ArrayBuildState *values;
} SortAggState;

static SortAggState *
create_state(MemoryContext context, Oid type, const AggDirection *direction)
{
	SortAggState *state = MemoryContextAlloc(context, sizeof(SortAggState));

	state->direction = *direction;
	state->values = initArrayResult(type, context, false);
	return state;
}

static ArrayType *
make_array(const SortAggState *state)
{
	return DatumGetArrayTypeP(makeArrayResult(state->values, CurrentMemoryContext));
}

static void
check_direction(const SortAggState *state, const AggDirection *direction)
{
	if (direction->isnull != state->direction.isnull ||
		direction->sort.descending != state->direction.sort.descending ||
		direction->sort.nulls_first != state->direction.sort.nulls_first)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("all rows of an aggregate must be sorted in the same direction"),
				 errhint("\"descending\" and \"nulls_first\" must have the same values in all rows.")));
}

/*
 * The state transition of (x), (x, descending) and (x, descending, nulls_first):
 * adds an element.
 */
Datum
gpusort_sort_agg_add(PG_FUNCTION_ARGS)
{
	SortAggState *state;
	AggDirection direction = {0};

	direction.isnull = !gpusort_sort_call_direction(fcinfo, 2,
													&direction.sort);
	if (PG_ARGISNULL(0))
	{
		Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 1);

		if (!OidIsValid(type))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("could not determine input data type")));
		state = create_state(gpusort_agg_context(fcinfo), type, &direction);
	}
	else
	{
		state = (SortAggState *) PG_GETARG_POINTER(0);
		check_direction(state, &direction);
	}
	CHECK_FOR_INTERRUPTS();
	(void) accumArrayResult(state->values, PG_GETARG_DATUM(1), PG_ARGISNULL(1),
							state->values->element_type, state->values->mcontext);
	PG_RETURN_POINTER(state);
}

/* ----------------------------------------------------------------
 *		parallel plans
 * ----------------------------------------------------------------
 */

/* Add the elements of the second state to the first one. */
Datum
gpusort_sort_agg_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = gpusort_agg_context(fcinfo);
	SortAggState *state;
	SortAggState *other;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	other = (SortAggState *) PG_GETARG_POINTER(1);
	state = PG_ARGISNULL(0) ?
		create_state(context, other->values->element_type, &other->direction) :
		(SortAggState *) PG_GETARG_POINTER(0);
	check_direction(state, &other->direction);
	for (int i = 0; i < other->values->nelems; i++)
	{
		CHECK_FOR_INTERRUPTS();
		gpusort_work_add(GPUSORT_WORK_ROW);
		(void) accumArrayResult(state->values, other->values->dvalues[i],
								other->values->dnulls[i], other->values->element_type, context);
	}
	PG_RETURN_POINTER(state);
}

/* Returns the direction, and then the elements as an array. */
Datum
gpusort_sort_agg_serialize(PG_FUNCTION_ARGS)
{
	const SortAggState *state = (SortAggState *) PG_GETARG_POINTER(0);
	ArrayType  *array = make_array(state);
	Size		size = VARHDRSZ + sizeof(AggDirection) + VARSIZE(array);
	bytea	   *result = palloc(size);

	(void) gpusort_agg_context(fcinfo);
	SET_VARSIZE(result, size);
	memcpy(VARDATA(result), &state->direction, sizeof(AggDirection));
	gpusort_work_copy(VARDATA(result) + sizeof(AggDirection), array, VARSIZE(array));
	pfree(array);
	PG_RETURN_BYTEA_P(result);
}

/* The elements of the state stay in a copy of the array, until they are combined with others. */
Datum
gpusort_sort_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Size		size = VARSIZE_ANY_EXHDR(bytes) - sizeof(AggDirection);
	ArrayType  *array = palloc(size);
	AggDirection direction;
	SortAggState *state;
	ArrayBuildState *values;

	(void) gpusort_agg_context(fcinfo);
	memcpy(&direction, VARDATA_ANY(bytes), sizeof(AggDirection));
	gpusort_work_copy(array, VARDATA_ANY(bytes) + sizeof(AggDirection), size);
	state = create_state(CurrentMemoryContext, ARR_ELEMTYPE(array), &direction);
	values = state->values;
	deconstruct_array(array, values->element_type, values->typlen, values->typbyval,
					  values->typalign, &values->dvalues, &values->dnulls, &values->nelems);
	values->alen = values->nelems;
	PG_RETURN_POINTER(state);
}

/* ----------------------------------------------------------------
 *		results
 * ----------------------------------------------------------------
 */

/* Returns the sorted elements or their positions, or NULL if there are no elements. */
static Datum
return_sorted(FunctionCallInfo fcinfo, bool positions)
{
	SortAggState *state = PG_ARGISNULL(0) ? NULL : (SortAggState *) PG_GETARG_POINTER(0);

	(void) gpusort_agg_context(fcinfo);
	if (state == NULL || state->direction.isnull)
		PG_RETURN_NULL();
	return gpusort_sort_call_return(fcinfo, make_array(state), &state->direction.sort, positions);
}

/* gpu_sort_agg(): returns what gpu_sort() makes of an array of the elements. */
Datum
gpusort_sort_agg_sort(PG_FUNCTION_ARGS)
{
	return return_sorted(fcinfo, false);
}

/* gpu_argsort_agg(): the same for gpu_argsort(). */
Datum
gpusort_sort_agg_argsort(PG_FUNCTION_ARGS)
{
	return return_sorted(fcinfo, true);
}
