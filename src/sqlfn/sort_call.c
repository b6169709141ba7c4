/*-------------------------------------------------------------------------
 *
 * sort_call.c
 *		What calls of the SQL functions that sort elements have in common.
 *
 * The order of a type is kept by the call site, since a query can call it for
 * each of its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/memutils.h"

#include "key/catalog_changes.h"
#include "sqlfn/element_order.h"
#include "sqlfn/sort_call.h"
#include "work.h"

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

bool
gpusort_sort_call_direction(FunctionCallInfo fcinfo, int argno,
							GsSortDirection *direction)
{
	int			nargs = PG_NARGS();

	if (argno < nargs && PG_ARGISNULL(argno))
		return false;
	direction->descending = argno < nargs && PG_GETARG_BOOL(argno);
	direction->nulls_first = argno + 1 < nargs && !PG_ARGISNULL(argno + 1) ?
		PG_GETARG_BOOL(argno + 1) : direction->descending;
	return true;
}

MemoryContext
gpusort_sort_call_begin(void)
{
	return MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext,
													   "pg_gpusort array sort",
													   ALLOCSET_DEFAULT_SIZES));
}

void
gpusort_sort_call_end(MemoryContext caller)
{
	MemoryContext context = MemoryContextSwitchTo(caller);

	MemoryContextDelete(context);
}

uint64 *
gpusort_sort_call_order(FunctionCallInfo fcinfo,
						const GsArrayElements *elements,
						const GsSortDirection *direction)
{
	return gpusort_element_order_apply(get_order(fcinfo, elements->type,
												 direction),
									   elements);
}

ArrayType *
gpusort_sort_call_rearrange(const GsArrayElements *elements,
							const uint64 *order, MemoryContext target)
{
	MemoryContext context = MemoryContextSwitchTo(target);
	ArrayType  *result = gpusort_elements_rearrange(elements, order);

	MemoryContextSwitchTo(context);
	return result;
}

ArrayType *
gpusort_sort_call_sort(FunctionCallInfo fcinfo,
					   const GsArrayElements *elements,
					   const GsSortDirection *direction, MemoryContext target)
{
	ArrayType  *result =
		gpusort_element_order_sort(get_order(fcinfo, elements->type, direction),
								   elements, target);

	if (result == NULL)
		result = gpusort_sort_call_rearrange(elements,
											 gpusort_sort_call_order(fcinfo, elements,
																	 direction),
											 target);
	return result;
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

ArrayType *
gpusort_sort_call_positions(FunctionCallInfo fcinfo,
							const GsArrayElements *elements,
							const GsSortDirection *direction,
							MemoryContext target)
{
	uint64		single = 0;
	uint64	   *order = &single;
	MemoryContext context;
	ArrayType  *result;

	if (elements->count > 1)
		order = gpusort_sort_call_order(fcinfo, elements, direction);
	context = MemoryContextSwitchTo(target);
	result = make_positions(order, elements->count);
	MemoryContextSwitchTo(context);
	return result;
}
