/*-------------------------------------------------------------------------
 *
 * array_sort.c
 *		SQL functions that sort arrays: gpu_sort, gpu_argsort, gpu_sort_pairs.
 *
 * All of them take (..., descending, nulls_first) as their last arguments.
 * They are not strict, since nulls_first may be NULL, which means its default.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"

#include "loading.h"
#include "sqlfn/sort_call.h"

GPUSORT_SQL_FUNCTION(gpusort_array_sort);
GPUSORT_SQL_FUNCTION(gpusort_array_argsort);
GPUSORT_SQL_FUNCTION(gpusort_array_sort_pairs);

/*
 * gpu_sort(anyarray, descending, nulls_first): returns the array with its
 * elements sorted.
 */
Datum
gpusort_array_sort(PG_FUNCTION_ARGS)
{
	ArrayType  *array;
	ArrayType  *result;
	GsSortDirection direction;
	GsArrayElements elements;
	MemoryContext caller;

	if (PG_ARGISNULL(0) || !gpusort_sort_call_direction(fcinfo, 1, &direction))
		PG_RETURN_NULL();
	array = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("sorting multidimensional arrays is not supported")));
	if (ARR_NDIM(array) == 0 || ARR_DIMS(array)[0] < 2)
		PG_RETURN_ARRAYTYPE_P(array);

	caller = gpusort_sort_call_begin();
	gpusort_elements_open(&elements, array);
	result = gpusort_sort_call_sort(fcinfo, &elements, &direction, caller);
	gpusort_sort_call_end(caller);

	PG_FREE_IF_COPY(array, 0);
	PG_RETURN_ARRAYTYPE_P(result);
}

/*
 * gpu_argsort(anyarray, descending, nulls_first): returns the positions of the
 * elements, counted from 1, in sorted order.
 */
Datum
gpusort_array_argsort(PG_FUNCTION_ARGS)
{
	ArrayType  *array;
	ArrayType  *result;
	GsSortDirection direction;
	GsArrayElements elements;
	MemoryContext caller;

	if (PG_ARGISNULL(0) || !gpusort_sort_call_direction(fcinfo, 1, &direction))
		PG_RETURN_NULL();
	array = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("sorting positions in a multidimensional array is not supported")));

	caller = gpusort_sort_call_begin();
	gpusort_elements_open(&elements, array);
	result = gpusort_sort_call_positions(fcinfo, &elements, &direction, caller);
	gpusort_sort_call_end(caller);

	PG_FREE_IF_COPY(array, 0);
	PG_RETURN_ARRAYTYPE_P(result);
}

static void
check_pairs(const ArrayType *keys, const ArrayType *vals)
{
	int			nkeys;
	int			nvals;

	if (ARR_NDIM(keys) > 1 || ARR_NDIM(vals) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("sorting pairs from multidimensional arrays is not supported")));
	nkeys = ArrayGetNItems(ARR_NDIM(keys), ARR_DIMS(keys));
	nvals = ArrayGetNItems(ARR_NDIM(vals), ARR_DIMS(vals));
	if (nkeys != nvals)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("keys and vals must have the same number of elements"),
				 errdetail("There are %d keys and %d vals.", nkeys, nvals)));
}

/*
 * gpu_sort_pairs(keys, vals, descending, nulls_first): returns the sorted
 * keys, and the vals in the order of their keys.
 */
Datum
gpusort_array_sort_pairs(PG_FUNCTION_ARGS)
{
	ArrayType  *keys;
	ArrayType  *vals;
	GsSortDirection direction;
	GsArrayElements key_elements;
	TupleDesc	tupdesc;
	Datum		results[2];
	bool		nulls[2] = {false, false};

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) ||
		!gpusort_sort_call_direction(fcinfo, 2, &direction))
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function returning record called in context that cannot accept type record")));
	tupdesc = BlessTupleDesc(tupdesc);

	keys = PG_GETARG_ARRAYTYPE_P(0);
	vals = PG_GETARG_ARRAYTYPE_P(1);
	check_pairs(keys, vals);
	results[0] = PointerGetDatum(keys);
	results[1] = PointerGetDatum(vals);

	if (ARR_NDIM(keys) == 1 && ARR_DIMS(keys)[0] > 1)
	{
		MemoryContext caller = gpusort_sort_call_begin();
		GsArrayElements val_elements;
		uint64	   *order;

		gpusort_elements_open(&key_elements, keys);
		order = gpusort_sort_call_order(fcinfo, &key_elements, &direction);
		results[0] = PointerGetDatum(gpusort_sort_call_rearrange(&key_elements, order,
																 caller));
		PG_FREE_IF_COPY(keys, 0);
		gpusort_elements_open(&val_elements, vals);
		results[1] = PointerGetDatum(gpusort_sort_call_rearrange(&val_elements, order,
																 caller));
		PG_FREE_IF_COPY(vals, 1);
		gpusort_sort_call_end(caller);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, results, nulls)));
}
