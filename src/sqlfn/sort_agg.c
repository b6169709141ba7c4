/*-------------------------------------------------------------------------
 *
 * sort_agg.c
 *		Aggregates that sort: gpu_sort_agg, gpu_argsort_agg.
 *
 * Both have the same state, the elements in the order in which they came.  They
 * are sorted at the end, and stay as they are: a window asks for the result again
 * and again, and a query with both aggregates has one state for them.
 *
 * Processes of a parallel plan send their elements to the leader, which sorts all
 * of them.  All aggregates of a query combine their states in the same order, so
 * gpu_argsort_agg() fits the array_agg() beside it in a parallel plan, too.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"

#include "agg_context.h"
#include "loading.h"
#include "sqlfn/element_list.h"
#include "sqlfn/sort_call.h"

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
	GsElementList list;
} SortAggState;

static SortAggState *
create_state(FunctionCallInfo fcinfo, Oid type, const AggDirection *direction)
{
	MemoryContext context = gpusort_agg_context(fcinfo);
	SortAggState *state = MemoryContextAlloc(context, sizeof(SortAggState));

	state->direction = *direction;
	gpusort_element_list_init(&state->list, type, context);
	return state;
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
		state = create_state(fcinfo, type, &direction);
	}
	else
	{
		state = (SortAggState *) PG_GETARG_POINTER(0);
		check_direction(state, &direction);
	}
	gpusort_element_list_add(&state->list, PG_GETARG_DATUM(1),
							 PG_ARGISNULL(1));
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
	SortAggState *state;
	SortAggState *other;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	other = (SortAggState *) PG_GETARG_POINTER(1);
	if (PG_ARGISNULL(0))
		state = create_state(fcinfo, other->list.type, &other->direction);
	else
	{
		state = (SortAggState *) PG_GETARG_POINTER(0);
		check_direction(state, &other->direction);
	}
	gpusort_element_list_add_list(&state->list, &other->list);
	PG_RETURN_POINTER(state);
}

Datum
gpusort_sort_agg_serialize(PG_FUNCTION_ARGS)
{
	SortAggState *state = (SortAggState *) PG_GETARG_POINTER(0);
	Size		size = VARHDRSZ + sizeof(AggDirection) +
		gpusort_element_list_size(&state->list);
	bytea	   *result;
	char	   *next;

	(void) gpusort_agg_context(fcinfo);
	result = palloc(size);
	SET_VARSIZE(result, size);
	next = VARDATA(result);
	memcpy(next, &state->direction, sizeof(AggDirection));
	gpusort_element_list_write(&state->list, next + sizeof(AggDirection));
	PG_RETURN_BYTEA_P(result);
}

/* The state has the elements where they are, until it is combined with another one. */
Datum
gpusort_sort_agg_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *written = PG_GETARG_BYTEA_PP(0);
	SortAggState *state = palloc(sizeof(SortAggState));
	char	   *next = VARDATA_ANY(written);

	(void) gpusort_agg_context(fcinfo);
	memcpy(&state->direction, next, sizeof(AggDirection));
	gpusort_element_list_read(&state->list, next + sizeof(AggDirection));
	PG_RETURN_POINTER(state);
}

/* ----------------------------------------------------------------
 *		results
 * ----------------------------------------------------------------
 */

/* Returns the state whose elements are to be sorted, or NULL if the result is NULL. */
static SortAggState *
state_of_result(FunctionCallInfo fcinfo)
{
	SortAggState *state;

	(void) gpusort_agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		return NULL;
	state = (SortAggState *) PG_GETARG_POINTER(0);
	return state->direction.isnull ? NULL : state;
}

/*
 * gpu_sort_agg(): returns what gpu_sort() makes of an array of the elements, NULL if
 * there is none.
 */
Datum
gpusort_sort_agg_sort(PG_FUNCTION_ARGS)
{
	SortAggState *state = state_of_result(fcinfo);
	GsArrayElements elements;
	MemoryContext caller;
	ArrayType  *result;

	if (state == NULL)
		PG_RETURN_NULL();

	caller = gpusort_sort_call_begin();
	gpusort_element_list_open(&state->list, &elements);
	if (elements.count > 1)
		result = gpusort_sort_call_sort(fcinfo, &elements, &state->direction.sort, caller);
	else
	{
		uint64		first = 0;

		result = gpusort_sort_call_rearrange(&elements, &first, caller);
	}
	gpusort_sort_call_end(caller);
	PG_RETURN_ARRAYTYPE_P(result);
}

/* gpu_argsort_agg(): the same for gpu_argsort(). */
Datum
gpusort_sort_agg_argsort(PG_FUNCTION_ARGS)
{
	SortAggState *state = state_of_result(fcinfo);
	GsArrayElements elements;
	MemoryContext caller;
	ArrayType  *result;

	if (state == NULL)
		PG_RETURN_NULL();

	caller = gpusort_sort_call_begin();
	gpusort_element_list_open(&state->list, &elements);
	result = gpusort_sort_call_positions(fcinfo, &elements,
										 &state->direction.sort, caller);
	gpusort_sort_call_end(caller);
	PG_RETURN_ARRAYTYPE_P(result);
}
