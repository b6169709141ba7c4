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
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/memutils.h"

#include "key/catalog_changes.h"
#include "sqlfn/array_elements.h"
#include "sqlfn/element_order.h"
#include "work.h"

GPUSORT_SQL_FUNCTION(gpusort_array_sort);
GPUSORT_SQL_FUNCTION(gpusort_array_argsort);
GPUSORT_SQL_FUNCTION(gpusort_array_sort_pairs);

/*
 * State that a call site keeps between calls.  The element type may change
 * between calls if the argument is declared as anyarray, as in pg_stats.  The
 * order of a type may change, too.
 */
typedef struct CallSite
{
	MemoryContext context;
	Oid			type;
	uint64		catalog_changes;	/* when 'orders' were made */
	GsElementOrder *orders[2][2];	/* by SortDirection; NULL if not yet made */
} CallSite;

/* The direction of a sort, from the arguments. */
typedef struct SortDirection
{
	bool		descending;
	bool		nulls_first;
} SortDirection;

/*
 * Read the argument 'descending', whose number is given, and the next one,
 * 'nulls_first'.  Returns false if 'descending' is NULL.
 */
static bool
get_direction(FunctionCallInfo fcinfo, int argno, SortDirection *direction)
{
	if (PG_ARGISNULL(argno))
		return false;
	direction->descending = PG_GETARG_BOOL(argno);
	direction->nulls_first = PG_ARGISNULL(argno + 1) ?
		direction->descending : PG_GETARG_BOOL(argno + 1);
	return true;
}

/* Returns the order for an element type.  It is kept by the call site. */
static GsElementOrder *
get_order(FunctionCallInfo fcinfo, Oid type, const SortDirection *direction)
{
	CallSite   *site = fcinfo->flinfo->fn_extra;
	uint64		catalog_changes = gpusort_catalog_changes();
	GsElementOrder **order;

	if (site == NULL)
	{
		site = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
									  sizeof(CallSite));
		site->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt,
											  "pg_gpusort element order",
											  ALLOCSET_SMALL_SIZES);
		fcinfo->flinfo->fn_extra = site;
	}
	if (site->type != type || site->catalog_changes != catalog_changes)
	{
		memset(site->orders, 0, sizeof(site->orders));
		MemoryContextReset(site->context);
		site->type = type;
		site->catalog_changes = catalog_changes;
	}
	order = &site->orders[direction->descending][direction->nulls_first];
	if (*order == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(site->context);

		*order = gpusort_element_order_create(type, PG_GET_COLLATION(),
											  direction->descending,
											  direction->nulls_first);
		MemoryContextSwitchTo(caller);
	}
	return *order;
}

/*
 * Returns the sorted order of an array's elements, or of its 'nslices' slices,
 * allocated in the current memory context.
 */
static uint64 *
order_elements(FunctionCallInfo fcinfo, const GsArrayElements *elements,
			   int nslices, const SortDirection *direction)
{
	GsElementOrder *order = get_order(fcinfo, elements->type, direction);

	return gpusort_element_order_apply(order, elements, nslices);
}

/*
 * Begin a sort in a new memory context, which is for everything except the
 * result.  Returns the caller's context.
 */
static MemoryContext
begin_sort(void)
{
	return MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext,
													   "pg_gpusort array sort",
													   ALLOCSET_DEFAULT_SIZES));
}

static void
end_sort(MemoryContext caller)
{
	MemoryContext context = MemoryContextSwitchTo(caller);

	MemoryContextDelete(context);
}

/* Turn an order of slices into an order of their elements. */
static uint64 *
order_within_slices(const uint64 *order, int nslices, int slice_length)
{
	Size		count = (Size) nslices * slice_length;
	uint64	   *result = MemoryContextAllocHuge(CurrentMemoryContext,
												count * sizeof(uint64));
	uint64	   *next = result;

	for (int s = 0; s < nslices; s++)
	{
		uint64		first = (uint64) (uint32) order[s] * slice_length;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < slice_length; i++)
		{
			if (i > 0 && i % GPUSORT_ROWS_PER_LOOK == 0)
				CHECK_FOR_INTERRUPTS();
			gpusort_work_add(sizeof(uint64));
			*next++ = first + i;
		}
	}
	return result;
}

/* Make the array that has this order, in the caller's memory context. */
static ArrayType *
rearrange(const GsArrayElements *elements, const uint64 *order,
		  MemoryContext caller)
{
	MemoryContext context = MemoryContextSwitchTo(caller);
	ArrayType  *result = gpusort_elements_rearrange(elements, order);

	MemoryContextSwitchTo(context);
	return result;
}

/*
 * gpu_sort(anyarray, descending, nulls_first): returns the array with its
 * elements sorted.  If it has several dimensions, the slices along the first
 * dimension are sorted.
 */
Datum
gpusort_array_sort(PG_FUNCTION_ARGS)
{
	ArrayType  *array;
	ArrayType  *result = NULL;
	int			nslices;
	SortDirection direction;
	GsArrayElements elements;
	MemoryContext caller;
	uint64	   *order;

	if (PG_ARGISNULL(0) || !get_direction(fcinfo, 1, &direction))
		PG_RETURN_NULL();
	array = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(array) == 0 || ARR_DIMS(array)[0] < 2)
		PG_RETURN_ARRAYTYPE_P(array);

	caller = begin_sort();
	nslices = ARR_DIMS(array)[0];
	gpusort_elements_open(&elements, array);
	if (nslices == elements.count)
		result = gpusort_element_order_sort(get_order(fcinfo, elements.type,
													  &direction),
											&elements, caller);
	if (result == NULL)
	{
		order = order_elements(fcinfo, &elements, nslices, &direction);
		if (nslices != elements.count)
			order = order_within_slices(order, nslices,
										elements.count / nslices);
		result = rearrange(&elements, order, caller);
	}
	end_sort(caller);

	PG_FREE_IF_COPY(array, 0);
	PG_RETURN_ARRAYTYPE_P(result);
}

/*
 * Make a one-dimensional array of int4 with the lower bound 1 from an order.
 */
static ArrayType *
make_positions(const uint64 *order, int count)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + count * sizeof(int32);
	ArrayType  *result;
	int32	   *positions;

	if (count == 0)
		return construct_empty_array(INT4OID);
	result = palloc(size);
	SET_VARSIZE(result, size);
	result->ndim = 1;
	result->dataoffset = 0;
	result->elemtype = INT4OID;
	ARR_DIMS(result)[0] = count;
	ARR_LBOUND(result)[0] = 1;
	positions = (int32 *) ARR_DATA_PTR(result);
	for (int i = 0; i < count; i++)
	{
		if (i % GPUSORT_ROWS_PER_LOOK == 0)
			CHECK_FOR_INTERRUPTS();
		gpusort_work_add(sizeof(uint64));
		positions[i] = (uint32) order[i] + 1;
	}
	return result;
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
	SortDirection direction;
	GsArrayElements elements;
	MemoryContext context;
	MemoryContext caller;
	uint64		single = 0;
	uint64	   *order = &single;

	if (PG_ARGISNULL(0) || !get_direction(fcinfo, 1, &direction))
		PG_RETURN_NULL();
	array = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("sorting positions in a multidimensional array is not supported")));

	caller = begin_sort();
	gpusort_elements_open(&elements, array);
	if (elements.count > 1)
		order = order_elements(fcinfo, &elements, elements.count, &direction);
	context = MemoryContextSwitchTo(caller);
	result = make_positions(order, elements.count);
	MemoryContextSwitchTo(context);
	end_sort(caller);

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
	SortDirection direction;
	GsArrayElements key_elements;
	TupleDesc	tupdesc;
	Datum		results[2];
	bool		nulls[2] = {false, false};

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) ||
		!get_direction(fcinfo, 2, &direction))
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
		MemoryContext caller = begin_sort();
		GsArrayElements val_elements;
		uint64	   *order;

		gpusort_elements_open(&key_elements, keys);
		order = order_elements(fcinfo, &key_elements, key_elements.count,
							   &direction);
		results[0] = PointerGetDatum(rearrange(&key_elements, order, caller));
		PG_FREE_IF_COPY(keys, 0);
		gpusort_elements_open(&val_elements, vals);
		results[1] = PointerGetDatum(rearrange(&val_elements, order, caller));
		PG_FREE_IF_COPY(vals, 1);
		end_sort(caller);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, results, nulls)));
}
