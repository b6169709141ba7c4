/*-------------------------------------------------------------------------
 *
 * array_sort.c
 *		SQL functions that sort arrays: gpu_sort, gpu_argsort, gpu_sort_pairs.
 *
 * All of them take (..., descending, nulls_first) as their last arguments.
 * They are not strict, since nulls_first may be NULL, which means its default.
 * The order of a type is kept by the call site, since a query can call it for
 * each of its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "loading.h"
#include "sqlfn/arrays.h"
#include "version.h"
#include "work.h"

GPUSORT_SQL_FUNCTION(gpusort_array_sort);
GPUSORT_SQL_FUNCTION(gpusort_array_argsort);
GPUSORT_SQL_FUNCTION(gpusort_array_sort_pairs);

static bool is_registered = false;
static uint64 changes = 0;

/* Callback for CacheRegisterSyscacheCallback(). */
static void
note_change(Datum arg, GPUSORT_SYSCACHE_ID cache, uint32 hash)
{
	changes++;
}

/*
 * Returns the number of changes that this backend has noticed of the catalogs that orders are
 * made from, since its first call.  The encoding of a type depends on its default operator
 * class, on the operators and functions of its operator family, and on what these functions
 * do.  All of them can change, and enums can get new labels.
 */
static uint64
count_catalog_changes(void)
{
	if (!is_registered)
	{
		CacheRegisterSyscacheCallback(CLAOID, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(AMOPOPID, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(AMPROCNUM, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(PROCOID, note_change, (Datum) 0);
		CacheRegisterSyscacheCallback(ENUMOID, note_change, (Datum) 0);
		is_registered = true;
	}
	return changes;
}

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
	GsElementOrder *orders[2][2];	/* by GsSortDirection; NULL if not yet
									 * made */
} CallSite;

/* Returns the order for an element type.  It is kept by the call site. */
static GsElementOrder *
get_order(FunctionCallInfo fcinfo, Oid type, const GsSortDirection *direction)
{
	CallSite   *site = fcinfo->flinfo->fn_extra;
	uint64		catalog_changes = count_catalog_changes();
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

bool
gpusort_sort_call_direction(FunctionCallInfo fcinfo, int argno,
							GsSortDirection *direction)
{
	int			nargs = PG_NARGS();

	if (nargs > argno + 2)
		gpusort_version_refuse(fcinfo, "The library expects fewer arguments.");
	if (argno < nargs && PG_ARGISNULL(argno))
		return false;
	direction->descending = argno < nargs && PG_GETARG_BOOL(argno);
	direction->nulls_first = argno + 1 < nargs && !PG_ARGISNULL(argno + 1) ?
		PG_GETARG_BOOL(argno + 1) : direction->descending;
	return true;
}

/*
 * Begin a sort in a new memory context, which is for everything except the
 * result.  Returns the caller's context, to be passed to end_sort().
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

/* Returns the sorted order of the elements.  Fewer than two need none. */
static const uint64 *
get_sorted_order(FunctionCallInfo fcinfo, const GsArrayElements *elements,
				 const GsSortDirection *direction)
{
	static const uint64 single = 0;

	return elements->count < 2 ? &single :
		gpusort_element_order_apply(get_order(fcinfo, elements->type, direction), elements);
}

/*
 * Make an array of the sorted elements in the memory context 'target', or of 'own', their array if
 * that may be overwritten.
 */
static ArrayType *
make_sorted(FunctionCallInfo fcinfo, const GsArrayElements *elements,
			const GsSortDirection *direction, ArrayType *own, MemoryContext target)
{
	ArrayType  *result = elements->count < 2 ? NULL :
		gpusort_element_order_sort(get_order(fcinfo, elements->type, direction),
								   elements, own, target);

	if (result == NULL)
		result = gpusort_elements_rearrange(elements,
											get_sorted_order(fcinfo, elements, direction),
											target);
	return result;
}

/*
 * Make a one-dimensional array of int4 with the lower bound 1 from an order.  There must be an
 * element.
 */
static ArrayType *
make_positions(const uint64 *order, int count, MemoryContext target)
{
	Size		size = ARR_OVERHEAD_NONULLS(1) + count * sizeof(int32);
	ArrayType  *result;
	int32	   *positions;

	result = MemoryContextAlloc(target, size);
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

Datum
gpusort_sort_call_return(FunctionCallInfo fcinfo, ArrayType *array,
						 const GsSortDirection *direction, bool positions)
{
	MemoryContext caller = begin_sort();
	bool		is_copy = (Pointer) array != PG_GETARG_POINTER(0);
	GsArrayElements elements;
	ArrayType  *result;

	gpusort_elements_open(&elements, array);
	result = positions ?
		make_positions(get_sorted_order(fcinfo, &elements, direction), elements.count, caller) :
		make_sorted(fcinfo, &elements, direction, is_copy ? array : NULL, caller);
	end_sort(caller);
	if (result != array)
		PG_FREE_IF_COPY(array, 0);
	PG_RETURN_ARRAYTYPE_P(result);
}

/* ----------------------------------------------------------------
 *		functions
 * ----------------------------------------------------------------
 */

/* Returns the sorted elements of an array, or their positions. */
static Datum
sort_array(FunctionCallInfo fcinfo, bool positions)
{
	ArrayType  *array;
	GsSortDirection direction;
	int			count;

	if (PG_ARGISNULL(0) || !gpusort_sort_call_direction(fcinfo, 1, &direction))
		PG_RETURN_NULL();
	array = PG_GETARG_ARRAYTYPE_P(0);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED), positions ?
				 errmsg("sorting positions in a multidimensional array is not supported") :
				 errmsg("sorting multidimensional arrays is not supported")));
	count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	if (positions && count == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(INT4OID));
	if (!positions && count < 2)
		PG_RETURN_ARRAYTYPE_P(array);
	return gpusort_sort_call_return(fcinfo, array, &direction, positions);
}

/* gpu_sort(anyarray, descending, nulls_first) */
Datum
gpusort_array_sort(PG_FUNCTION_ARGS)
{
	return sort_array(fcinfo, false);
}

/* gpu_argsort(anyarray, descending, nulls_first): positions are counted from 1. */
Datum
gpusort_array_argsort(PG_FUNCTION_ARGS)
{
	return sort_array(fcinfo, true);
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
	if (tupdesc->natts != lengthof(results))
		gpusort_version_refuse(fcinfo, "The library returns other columns.");
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
		const uint64 *order;

		gpusort_elements_open(&key_elements, keys);
		order = get_sorted_order(fcinfo, &key_elements, &direction);
		results[0] = PointerGetDatum(gpusort_elements_rearrange(&key_elements, order,
																caller));
		PG_FREE_IF_COPY(keys, 0);
		gpusort_elements_open(&val_elements, vals);
		results[1] = PointerGetDatum(gpusort_elements_rearrange(&val_elements, order,
																caller));
		PG_FREE_IF_COPY(vals, 1);
		end_sort(caller);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, results, nulls)));
}
